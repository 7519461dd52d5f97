/** The request of a push task, from the API, a map file or the state folder. */

import { secretsOf } from '../../config/index.ts';
import { storedTaskRequest, type TaskRequest } from '../../core/tasks/task-request.ts';
import { hasHiddenCharacter } from '../../util/hidden-characters.ts';
import { parsePublishUrl } from '../../wire/rtmp/publish-url.ts';
import { DEFAULT_PORTS } from './host-url.ts';

/** Protocol names of the API; `mpegts` is a transport stream over UDP or TCP, depending on the URL. */
export const PushProtocol = { RTMP: 'rtmp', SRT: 'srt', MPEGTS: 'mpegts' } as const;
/** Any of these words. */
export type PushProtocol = (typeof PushProtocol)[keyof typeof PushProtocol];

/** Without a selection the protocol decides which tracks are sent. */
export interface PushRequest extends TaskRequest {
  readonly protocol: PushProtocol;
  /** Without a slash at its end. */
  readonly url: string;
  /** Empty for none. */
  readonly streamKey: string;
}

/** Why a URL is no valid destination. */
export type UrlFault = 'malformed' | 'scheme' | 'port' | 'mode' | 'listen';

/** Characters; far longer than any real key, and within the limits of AMF0 texts and SRT URLs. */
const MAX_STREAM_KEY = 4096;
/** The last part of an RTMP URL is a name where it is shorter, and a stream key otherwise. */
const MIN_KEY_IN_URL = 12;
const RTMP_PORT = 1935;
const MAX_PORT = 65_535;
const SCHEMES: Readonly<Record<PushProtocol, readonly string[]>> = { rtmp: ['rtmp', 'rtmps'], srt: ['srt'], mpegts: ['udp', 'tcp'] };
const URL_PATTERN =
  /^(?<scheme>[a-z][a-z0-9+.-]*):\/\/(?:\[[0-9a-f:.]+\]|[^\s/?#:@[\]]+)(?::(?<port>\d{1,5}))?(?:\/[^\s?]*)?(?:\?(?<query>\S*))?$/i;

/** The protocol that `text` names, in any case, or null. */
export function pushProtocolOf(text: string): PushProtocol | null {
  const wanted = text.trim().toLowerCase();
  return Object.values(PushProtocol).find((protocol) => protocol === wanted) ?? null;
}

/** `url` as requests hold it. */
export function trimUrl(url: string): string {
  return url.trim().replace(/\/+$/, '');
}

/** The part of a URL that logs may hold: paths and queries have stream keys and passphrases. */
export function receiverOf(url: string): string {
  return /^[a-z]+:\/\/[^/?]*/i.exec(url)?.[0] ?? '';
}

/** Secrets with which others could send to the receiver. */
export function secretsOfPush({ url, streamKey }: Pick<PushRequest, 'url' | 'streamKey'>): string[] {
  const last = parsePublishUrl(url, streamKey)?.stream ?? '';
  return [...secretsOf({ url, streamKey }), ...(last.length >= MIN_KEY_IN_URL ? [last] : [])];
}

/** Null when `url` fits the protocol. */
export function faultOfUrl(protocol: PushProtocol, url: string): UrlFault | null {
  const groups = URL_PATTERN.exec(url)?.groups;
  if (groups === undefined || hasHiddenCharacter(url)) return 'malformed';
  const scheme = (groups['scheme'] ?? '').toLowerCase();
  if (!SCHEMES[protocol].includes(scheme)) return 'scheme';
  const port = Number(groups['port'] ?? DEFAULT_PORTS[scheme] ?? RTMP_PORT);
  if (port < 1 || port > MAX_PORT) return 'port';
  const query = new URLSearchParams(groups['query'] ?? '');
  if (protocol === PushProtocol.SRT && !['', 'caller'].includes(query.get('mode') ?? '')) return 'mode';
  return scheme === 'tcp' && (query.has('listen') || url.endsWith('listen')) ? 'listen' : null;
}

/** Whether a stream key can be sent: a short text of one line. */
export function isStreamKey(text: string): boolean {
  return text.length <= MAX_STREAM_KEY && !hasHiddenCharacter(text);
}

/** A request that the state folder holds, or null. */
export function storedPushRequest(value: unknown): PushRequest | null {
  if (typeof value !== 'object' || value === null) return null;
  const common = storedTaskRequest(value as Record<string, unknown>);
  const { protocol, url, streamKey } = value as Record<string, unknown>;
  if (common === null) return null;
  if (typeof protocol !== 'string' || typeof url !== 'string' || typeof streamKey !== 'string') return null;
  const known = pushProtocolOf(protocol);
  if (known === null || faultOfUrl(known, url) !== null || !isStreamKey(streamKey)) return null;
  return { ...common, protocol: known, url, streamKey };
}
