/** Error texts for viewers: one sentence each, which repeats nothing of the request. */
import type { DeliveryExchange } from './view.ts';

const TYPE = ['Content-Type: text/plain'];
const encoder = new TextEncoder();
const words = (sentence: string): readonly Uint8Array[] => [encoder.encode(`${sentence}\n`)];

/** The sentences, ready to be sent. */
export const ErrorTexts = {
  NOT_YET: words('the stream has begun and cannot be played yet: its segments are still being made'),
  LATE: words('what was asked for is still being made: come again'),
  NO_PLAYLIST: words('the stream has no playlist of this name'),
  NO_TRACK: words('the stream has no such track, or has begun anew since the playlist was loaded'),
  NO_MEDIA: words('this piece of the stream is not there any more, or is still to come'),
  NO_NAME: words('this is no name of a file of the stream'),
  NO_SESSION: words('the viewer session in the address has ended: begin with the playlist of the stream'),
  SENT_AWAY: words('this viewer was sent away'),
  TOO_MANY: words('too many viewers of this address'),
} as const;

/** Answers `status` in words. `headers`: further complete lines. */
export function respondText(
  exchange: DeliveryExchange,
  status: number,
  body: readonly Uint8Array[],
  headers: readonly string[] = [],
): void {
  exchange.respond(status, headers.length === 0 ? TYPE : [...TYPE, ...headers], body);
}
