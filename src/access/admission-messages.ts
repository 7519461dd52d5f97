/** Requests about admissions to a control server, and its answers. */
import { plainLine } from '../util/plain-text.ts';
import { formatTimestamp } from '../util/timestamp.ts';
import type { AccessProtocol, AccessRequest } from './access-check.ts';
import { readNewUrl } from './new-url.ts';

/** Words of the reference server, which control servers may compare by case. It never asks for HLS over MPEG-TS. */
const PROTOCOLS: Readonly<Record<AccessProtocol, string>> = {
  rtmp: 'RTMP',
  srt: 'SRT',
  webrtc: 'WebRTC',
  llhls: 'LLHLS',
  hls: 'HLS',
  thumbnail: 'Thumbnail',
};
const MAX_REASON = 200;

/** A control server's decision. */
export interface AdmissionAnswer {
  readonly allowed: boolean;
  /** Unchanged; `readNewUrl` can parse it. */
  readonly newUrl?: string;
  /** How long the client may stay, ms; infinite: no limit. */
  readonly lifetimeMs: number;
  /** One short line without hidden characters. */
  readonly reason?: string;
}

/** The members are in the order of the reference server, so that bodies are equal byte for byte. `now`: wall clock ms. */
export function openingMessage(request: AccessRequest, now: number): object {
  return message(request, { status: 'opening', now });
}

/** `newUrl` is sent even if it equals the URL, as the reference server does. */
export function closingMessage(request: AccessRequest, newUrl: string, now: number): object {
  return message(request, { status: 'closing', newUrl, now });
}

function message(
  { client, direction, protocol, url }: AccessRequest,
  { status, newUrl, now }: { readonly status: string; readonly newUrl?: string; readonly now: number },
): object {
  const { address, port, realIp, userAgent } = client;
  return {
    client: { address, port, real_ip: realIp, ...(userAgent !== undefined && userAgent !== '' && { user_agent: userAgent }) },
    request: {
      direction,
      ...(newUrl !== undefined && { new_url: newUrl }),
      protocol: PROTOCOLS[protocol],
      status,
      time: formatTimestamp(now),
      url,
    },
  };
}

/** The decision in an answer, or a text that names the missing or invalid member. */
export function readAdmissionAnswer(answer: Readonly<Record<string, unknown>>): AdmissionAnswer | string {
  const { allowed, new_url: newUrl = null, lifetime = null, reason } = answer;
  if (typeof allowed !== 'boolean') return 'allowed is not true or false';
  const said = typeof reason === 'string' && reason !== '' ? { reason: plainLine(reason.toWellFormed().slice(0, MAX_REASON)) } : {};
  if (!allowed) return { allowed, lifetimeMs: 0, ...said };
  // An unknown member might have restricted the client.
  if (lifetime !== null && !(typeof lifetime === 'number' && Number.isFinite(lifetime) && lifetime >= 0))
    return 'lifetime is no number of milliseconds';
  const lifetimeMs = lifetime === null || lifetime === 0 ? Number.POSITIVE_INFINITY : Number(lifetime);
  if (newUrl === null || newUrl === '') return { allowed, lifetimeMs, ...said };
  if (typeof newUrl !== 'string' || readNewUrl(newUrl) === null) return 'new_url is no URL of a stream: scheme://host[:port]/app/stream';
  return { allowed, lifetimeMs, newUrl, ...said };
}
