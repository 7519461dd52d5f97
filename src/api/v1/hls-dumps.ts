import type { Dump } from '../../services/hls/dump/dump.ts';
import { DumpRefused } from '../../services/hls/dump/dumper.ts';
import type { SegmentSource } from '../../services/hls/packager/segment-observer.ts';
import { PathRefused } from '../../util/allowed-folders.ts';
import { Type } from '../../util/typebox.ts';
import { type Answer, ok } from '../envelope.ts';
import { ApiError, causedBy } from '../errors.ts';
import { itemsIn, textIn } from '../json/json-value.ts';
import { refuseMembers } from '../json/member-check.ts';
import { requireObject } from '../refusals.ts';
import type { Route, StreamRequest } from '../route.ts';
import { DumpRequestSchema, DumpSchema, DumpSelectionSchema } from '../schemas.ts';

const NAMES = Type.Array(Type.String());

/** Dumps of LL-HLS streams (`startHlsDump`, `stopHlsDump`, `hlsDumps`); dumps of plain HLS exist in the configuration only. */
export const hlsDumpRoutes: readonly Route[] = [
  action('startHlsDump', 'Store the LL-HLS output of a stream as files', startDump, { body: DumpRequestSchema, response: NAMES }),
  action('stopHlsDump', 'End one dump, or all dumps of an output stream', stopDump, { body: DumpSelectionSchema, response: NAMES }),
  action('hlsDumps', 'All dumps of an output stream, or the dump of an id', listDumps, {
    reads: true,
    body: DumpSelectionSchema,
    response: Type.Array(DumpSchema),
  }),
];

function action(
  name: string,
  summary: string,
  handle: (request: StreamRequest) => Answer | Promise<Answer>,
  more: Pick<Route, 'body' | 'response' | 'reads'>,
): Route {
  return { method: 'POST', path: `/v1/vhosts/{vhost}/apps/{app}/streams/{stream}:${name}`, level: 'stream', summary, ...more, handle };
}

async function startDump(request: StreamRequest): Promise<Answer> {
  const body = requireObject(request.body);
  const [id, name, outputPath] = [textIn(body, 'id'), textIn(body, 'outputStreamName'), textIn(body, 'outputPath')];
  if (id === '' || name === '' || outputPath === '') throw new ApiError('DUMP_INCOMPLETE');
  refuseMembers(body, DumpRequestSchema);
  const stream = outputOf(request, name);
  const playlists = itemsIn(body, 'playlist').filter((item) => typeof item === 'string');
  const wanted = { id, outputPath, playlists, infoFile: textIn(body, 'infoFile'), userData: textIn(body, 'userData') };
  try {
    await request.control.dumps.start(stream, wanted);
  } catch (error) {
    throw refusedDump(error, 'DUMP_START_FAILED', request, name);
  }
  return ok([name]);
}

function stopDump(request: StreamRequest): Answer {
  const { name, id, stream } = selectionOf(request);
  try {
    request.control.dumps.stop(stream, id);
  } catch (error) {
    throw refusedDump(error, 'DUMP_STOP_FAILED', request, name);
  }
  return ok([name]);
}

function listDumps(request: StreamRequest): Answer {
  const { name, id, stream } = selectionOf(request);
  const dumps = request.control.dumps.list(stream).filter((dump) => id === null || dump.request.id === id);
  return ok(dumps.map((dump) => dumpInformation(dump, name)));
}

function selectionOf(request: StreamRequest): { readonly name: string; readonly id: string | null; readonly stream: SegmentSource } {
  const body = requireObject(request.body);
  const name = textIn(body, 'outputStreamName');
  if (name === '') throw new ApiError('DUMP_STREAM_MISSING');
  return { name, id: textIn(body, 'id') || null, stream: outputOf(request, name) };
}

/** The LL-HLS output `name` of the stream in the path. */
function outputOf({ vhost, app, stream, control }: StreamRequest, name: string): SegmentSource {
  if (!stream.outputs.some((output) => output.name === name)) throw new ApiError('DUMP_OUTPUT_NOT_FOUND', vhost.name, app.name, name);
  const served = control.dumps.find({ vhost: vhost.name, app: app.name, stream: name });
  if (served === undefined) throw new ApiError('DUMP_LLHLS_NOT_FOUND', vhost.name, app.name, name);
  return served;
}

function dumpInformation({ request, enabled }: Dump, outputStreamName: string) {
  const { id, infoFile, outputPath, playlists, userData } = request;
  return {
    enabled,
    id,
    ...(infoFile !== '' && { infoFile }),
    outputPath,
    outputStreamName,
    ...(playlists.length > 0 && { playlist: playlists }),
    ...(userData !== '' && { userData }),
  };
}

function refusedDump(error: unknown, code: 'DUMP_START_FAILED' | 'DUMP_STOP_FAILED', { vhost, app }: StreamRequest, name: string): unknown {
  if (error instanceof PathRefused) return new ApiError('DUMP_PATH_REFUSED', error.message);
  if (!(error instanceof DumpRefused)) return error;
  return causedBy(new ApiError(code, vhost.name, app.name, name, error.message), error.cause);
}
