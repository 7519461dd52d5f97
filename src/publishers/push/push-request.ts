/** What a push task is asked to do, as the API, a map file or the state folder say it. */

export const PushProtocol = { RTMP: 'rtmp', SRT: 'srt', MPEGTS: 'mpegts' } as const;
export type PushProtocol = (typeof PushProtocol)[keyof typeof PushProtocol];

export interface PushRequest {
  readonly id: string;
  /** Name of the outbound stream. */
  readonly streamName: string;
  /** Both select tracks; when both are empty, the protocol decides. */
  readonly trackIds: readonly number[];
  readonly variantNames: readonly string[];
  readonly protocol: PushProtocol;
  /** Without a slash at its end. */
  readonly url: string;
  /** Empty for none. */
  readonly streamKey: string;
  /** Made by a map file. */
  readonly isConfig: boolean;
}

/** Why a URL cannot be pushed to. */
export type UrlFault = 'malformed' | 'scheme' | 'mode' | 'listen';

const SCHEMES: Readonly<Record<PushProtocol, readonly string[]>> = { rtmp: ['rtmp', 'rtmps'], srt: ['srt'], mpegts: ['udp', 'tcp'] };
const URL_PATTERN = /^(?<scheme>[a-z][a-z0-9+.-]*):\/\/(?:\[[0-9a-f:.]+\]|[^\s/?#:@[\]]+)(?::\d{1,5})?(?:\/[^\s?]*)?(?:\?(?<query>\S*))?$/i;

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

/** Null when `url` fits the protocol. */
export function faultOfUrl(protocol: PushProtocol, url: string): UrlFault | null {
  const groups = URL_PATTERN.exec(url)?.groups;
  if (groups === undefined) return 'malformed';
  const scheme = (groups['scheme'] ?? '').toLowerCase();
  if (!SCHEMES[protocol].includes(scheme)) return 'scheme';
  const query = new URLSearchParams(groups['query'] ?? '');
  if (protocol === PushProtocol.SRT && !['', 'caller'].includes(query.get('mode') ?? '')) return 'mode';
  return scheme === 'tcp' && (query.has('listen') || url.endsWith('listen')) ? 'listen' : null;
}

/** A request that the state folder holds, or null. */
export function storedPushRequest(value: unknown): PushRequest | null {
  if (typeof value !== 'object' || value === null) return null;
  const { id, streamName, trackIds, variantNames, protocol, url, streamKey } = value as Record<string, unknown>;
  if (typeof id !== 'string' || typeof streamName !== 'string' || id === '' || streamName === '') return null;
  if (!Array.isArray(trackIds) || !trackIds.every((trackId) => Number.isInteger(trackId))) return null;
  if (!Array.isArray(variantNames) || !variantNames.every((name) => typeof name === 'string')) return null;
  if (typeof protocol !== 'string' || typeof url !== 'string' || typeof streamKey !== 'string') return null;
  const known = pushProtocolOf(protocol);
  if (known === null || faultOfUrl(known, url) !== null) return null;
  return { id, streamName, trackIds, variantNames, protocol: known, url, streamKey, isConfig: false };
}
