/** Error texts for viewers: one sentence each, without any part of the request. */
import type { DeliveryExchange } from './view.ts';

const TYPE = ['Content-Type: text/plain'];
const encoder = new TextEncoder();
const words = (sentence: string): readonly Uint8Array[] => [encoder.encode(`${sentence}\n`)];

/** The sentences as bytes. */
export const ErrorTexts = {
  NOT_YET: words('the stream is starting: its first segments are not complete yet'),
  LATE: words('the requested media is not ready yet: try again'),
  NO_PLAYLIST: words('the stream has no playlist of this name'),
  NO_TRACK: words('the stream has no such track, or has restarted since the playlist was loaded'),
  NO_MEDIA: words('this part of the stream has expired, or is not available yet'),
  NO_NAME: words('the stream has no file of this name'),
  NO_SESSION: words('the viewer session in the URL has ended: request the playlist of the stream again'),
  SENT_AWAY: words('this viewer session was terminated'),
  TOO_MANY: words('too many viewers from this address'),
} as const;

/** Answers `status` with a text. `headers`: further complete lines. */
export function respondText(
  exchange: DeliveryExchange,
  status: number,
  body: readonly Uint8Array[],
  headers: readonly string[] = [],
): void {
  exchange.respond(status, headers.length === 0 ? TYPE : [...TYPE, ...headers], body);
}
