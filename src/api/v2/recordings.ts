/** Recorded files of an application: a list, and the files for players. An extension of Millrace. */

import type { IndexedRecording } from '../../services/record/indexed-recording.ts';
import { LibraryBusy } from '../../services/record/recording-library.ts';
import { type VodFile, vodPlaylist } from '../../services/record/vod-playlist.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { formatTimestamp } from '../../util/timestamp.ts';
import { Type } from '../../util/typebox.ts';
import { readRange } from '../../wire/http/byte-range.ts';
import { type Answer, failure, ok } from '../envelope.ts';
import { ApiError } from '../errors.ts';
import { type FilePart, rangeOf } from '../file-answer.ts';
import type { AppRequest, Route } from '../route.ts';
import { RecordedFilesSchema } from '../schemas.ts';

const ROOT = '/v2/vhosts/{vhost}/apps/{app}/recordings';
const TYPES = { mp4: 'video/mp4', ts: 'video/mp2t', playlist: 'application/vnd.apple.mpegurl' } as const;
/** Limits of files in a list, and of files played one after the other. */
const MAX_LISTED = 1000;
const MAX_SPAN_FILES = 200;
/** Lifetimes of URLs, seconds. */
const LIFE = { standard: 4 * 3600, least: 60, most: 7 * 24 * 3600 };
const ISO_TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$/;

const SPAN_QUERY = {
  from: 'Only files with media after this time, ISO 8601 or ms since the epoch',
  to: 'Only files with media before this time, ISO 8601 or ms since the epoch',
  stream: 'Only files of this output stream',
};

/** Recorded files. Clients that cannot send headers use the `token` in the list's URLs. */
export const recordingRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: ROOT,
    level: 'app',
    summary: 'Recorded files, with URLs to watch them',
    query: {
      ...SPAN_QUERY,
      lifetime: `Time for which the URLs are valid, seconds from ${LIFE.least} to ${LIFE.most}; default ${LIFE.standard}`,
    },
    response: RecordedFilesSchema,
    handle: list,
  },
];

/** Routes of the files themselves. */
export const recordedFileRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: `${ROOT}/playlist.m3u8`,
    level: 'app',
    signed: true,
    summary: 'The recorded files of a stream in a time span, in sequence, as HLS',
    query: { ...SPAN_QUERY, token: 'Token of a URL, instead of authentication' },
    plain: { 200: Type.String() },
    type: TYPES.playlist,
    handle: (request) => guarded(() => span(request)),
  },
  {
    method: 'GET',
    path: `${ROOT}/{recording}/{file}`,
    level: 'app',
    signed: true,
    summary: 'A recorded file: `file.mp4` or `file.ts` with ranges, `playlist.m3u8` as HLS of byte ranges, `init.mp4` their init segment',
    query: { token: 'Token of a URL, instead of authentication' },
    plain: { 200: Type.String(), 206: Type.String() },
    type: Object.values(TYPES),
    handle: (request) => guarded(() => watch(request)),
  },
];

async function list(request: AppRequest): Promise<Answer> {
  const { control, vhost, app } = request;
  const { library } = control.recordings;
  const wanted = spanOf(request);
  const found = library.find({ vhost: vhost.name, app: app.name }, wanted);
  const expires = expiryOf(request);
  const there = await library.present(found.slice(0, MAX_LISTED));
  const recordings = there.map((entry) => described(request, entry, expires));
  const playlist = wanted.stream === '' || there.length === 0 ? {} : { playlist: spanUrl(request, wanted, expires) };
  return ok({ expires: formatTimestamp(expires * 1000), more: found.length > MAX_LISTED, ...playlist, recordings });
}

function described(request: AppRequest, entry: IndexedRecording, expires: number) {
  const { key, stream, task, container, bytes, startTime, durationMs } = entry;
  const token = `?token=${request.control.recordings.library.tokens.sign(scopeOf(entry), expires)}`;
  const base = `${baseOf(request)}/${key}`;
  return {
    bytes,
    container,
    durationMs,
    endTime: formatTimestamp(startTime + durationMs),
    file: `${base}/file.${container}${token}`,
    id: key,
    playlist: `${base}/playlist.m3u8${token}`,
    startTime: formatTimestamp(startTime),
    stream,
    task,
  };
}

async function span(request: AppRequest): Promise<Answer> {
  const { control, vhost, app } = request;
  const { library } = control.recordings;
  const wanted = spanOf(request);
  if (wanted.stream === '') throw new ApiError('MEMBER_INVALID', 'stream', 'the name of an output stream');
  const expires = admitted(request, spanScope(request, wanted));
  const known = library.find({ vhost: vhost.name, app: app.name }, wanted);
  if (known.length > MAX_SPAN_FILES) throw new ApiError('RECORDING_SPAN', `it has ${known.length} files, more than ${MAX_SPAN_FILES}`);
  const found = await library.present(known);
  if (new Set(found.map(({ container }) => container)).size > 1) throw new ApiError('RECORDING_SPAN', 'it has files of MP4 and of MPEG-TS');
  const files: VodFile[] = [];
  for (const entry of found) {
    const file = await vodFileOf(request, entry, expires);
    if (file !== null) files.push(file);
  }
  return playlistAnswer(vodPlaylist(files, wanted.from, wanted.to));
}

async function watch(request: AppRequest): Promise<Answer> {
  const { control, vhost, app } = request;
  const { library } = control.recordings;
  const entry = library.get({ vhost: vhost.name, app: app.name }, request.parameter('recording'));
  const token = request.query('token');
  // A client with a token must not learn which recordings exist.
  if (entry === null) throw token === undefined ? missing(request) : new ApiError('RECORDING_TOKEN');
  const expires = admitted(request, scopeOf(entry));
  const name = request.parameter('file');
  if (name === 'playlist.m3u8') {
    const file = await vodFileOf(request, entry, expires);
    return playlistAnswer(file === null ? null : vodPlaylist([file]));
  }
  if (name === 'init.mp4' && entry.container === 'mp4') {
    const layout = await library.layout(entry);
    const opened = layout === null ? null : await library.open(entry);
    if (layout?.init == null || opened === null) throw missing(request);
    return await fileAnswer(request, { file: opened.file, ranges: layout.init }, TYPES.mp4);
  }
  if (name !== `file.${entry.container}`) throw missing(request);
  const opened = await library.open(entry);
  if (opened === null) throw missing(request);
  return await fileAnswer(request, { file: opened.file, ranges: [{ offset: 0, length: opened.size }] }, TYPES[entry.container]);
}

async function fileAnswer(request: AppRequest, part: FilePart, type: string): Promise<Answer> {
  const size = part.ranges.reduce((sum, { length }) => sum + length, 0);
  const range = readRange(request.header('range'), size);
  const accepts = ['Accept-Ranges', 'bytes'] as const;
  if (range === 'unsatisfiable') {
    await part.file.close();
    const answer = failure(new ApiError('RANGE_OUTSIDE', String(size)));
    return { ...answer, headers: [accepts, ['Content-Range', `bytes */${size}`]] };
  }
  if (range === null) return { status: 200, body: '', type, file: part, size, headers: [accepts] };
  const told = ['Content-Range', `bytes ${range.offset}-${range.offset + range.length - 1}/${size}`] as const;
  return { status: 206, body: '', type, file: rangeOf(part, range), size: range.length, headers: [accepts, told] };
}

async function vodFileOf(request: AppRequest, entry: IndexedRecording, expires: number): Promise<VodFile | null> {
  const { library } = request.control.recordings;
  const layout = await library.layout(entry);
  if (layout === null) return null;
  const token = `?token=${library.tokens.sign(scopeOf(entry), expires)}`;
  const base = `${baseOf(request)}/${entry.key}`;
  return { layout, startTime: entry.startTime, uri: `${base}/file.${entry.container}${token}`, initUri: `${base}/init.mp4${token}` };
}

function playlistAnswer(text: string | null): Answer {
  if (text === null) throw new ApiError('RECORDING_EMPTY');
  return { status: 200, body: text, type: TYPES.playlist };
}

/** When the URLs of a response expire: with the token, or after a while for an authenticated client. Throws for an invalid token. */
function admitted(request: AppRequest, scope: string): number {
  const token = request.query('token');
  if (token === undefined) return expiryOf(request);
  const expires = request.control.recordings.library.tokens.verify(scope, token, request.control.now());
  if (expires === null) throw new ApiError('RECORDING_TOKEN');
  return expires;
}

function expiryOf(request: AppRequest): number {
  const text = request.query('lifetime') ?? '';
  const lifetime = text === '' ? LIFE.standard : Number(text);
  if (!Number.isInteger(lifetime) || lifetime < LIFE.least || lifetime > LIFE.most)
    throw new ApiError('MEMBER_INVALID', 'lifetime', `a whole number of seconds from ${LIFE.least} to ${LIFE.most}`);
  return Math.floor(request.control.now() / 1000) + lifetime;
}

interface Span {
  readonly from: number;
  readonly to: number;
  readonly stream: string;
}

function spanOf(request: AppRequest): Span {
  const from = timeOf(request, 'from', Number.NEGATIVE_INFINITY);
  const to = timeOf(request, 'to', Number.POSITIVE_INFINITY);
  if (to <= from) throw new ApiError('MEMBER_INVALID', 'to', 'a time behind that of [from]');
  return { from, to, stream: request.query('stream') ?? '' };
}

function timeOf(request: AppRequest, name: string, absent: number): number {
  const text = request.query(name) ?? '';
  if (text === '') return absent;
  const time = /^\d{1,15}$/.test(text) ? Number(text) : ISO_TIME.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time)) throw new ApiError('MEMBER_INVALID', name, 'a time in ISO 8601, or in ms since the epoch');
  return time;
}

function scopeOf({ vhost, app, key }: IndexedRecording): string {
  return JSON.stringify([vhost, app, key]);
}

function spanScope({ vhost, app }: AppRequest, { from, to, stream }: Span): string {
  return JSON.stringify([vhost.name, app.name, stream, String(from), String(to)]);
}

function spanUrl(request: AppRequest, wanted: Span, expires: number): string {
  const token = request.control.recordings.library.tokens.sign(spanScope(request, wanted), expires);
  const query = new URLSearchParams({ stream: wanted.stream });
  if (Number.isFinite(wanted.from)) query.set('from', String(wanted.from));
  if (Number.isFinite(wanted.to)) query.set('to', String(wanted.to));
  query.set('token', token);
  return `${baseOf(request)}/playlist.m3u8?${query.toString().replaceAll('+', '%20')}`;
}

/** The path with the names as the client wrote them. */
function baseOf(request: AppRequest): string {
  return `/v2/vhosts/${request.parameter('vhost')}/apps/${request.parameter('app')}/recordings`;
}

function missing(request: AppRequest): ApiError {
  return new ApiError('RECORDING_NOT_FOUND', request.parameter('recording'));
}

async function guarded(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof LibraryBusy) throw new ApiError('RECORDING_BUSY');
    if (error instanceof ProtocolError) throw new ApiError('RECORDING_UNPLAYABLE', error.message);
    throw error;
  }
}
