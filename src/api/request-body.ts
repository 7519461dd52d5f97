import type { IncomingMessage } from 'node:http';
import { ApiError } from './errors.ts';

/** Largest request body accepted, bytes. */
const MAX_BODY_BYTES = 1_048_576;

/** The client left before its body was complete, so there is no response. */
export class BodyAborted extends Error {
  override readonly name = 'BodyAborted';
}

/**
 * Reads the body as text; bytes that are not UTF-8 become U+FFFD.
 * @throws ApiError BODY_TOO_LARGE (the rest of the body is discarded), ApiError REQUEST_TIMEOUT after `limit` ms, BodyAborted
 */
export function readBody(request: IncomingMessage, limit: number): Promise<string> {
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > MAX_BODY_BYTES) {
    request.resume();
    return Promise.reject(tooLarge());
  }
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const giveUp = (error: Error): void => {
      request.off('data', onData);
      request.resume();
      reject(error);
    };
    const deadline = setTimeout(() => giveUp(new ApiError('REQUEST_TIMEOUT')), limit);
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size <= MAX_BODY_BYTES) {
        chunks.push(chunk);
        return;
      }
      giveUp(tooLarge());
    };
    request.on('data', onData);
    request.once('close', () => clearTimeout(deadline));
    request.once('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
    request.once('close', () => reject(new BodyAborted()));
    request.once('error', () => reject(new BodyAborted()));
  });
}

function tooLarge(): ApiError {
  return new ApiError('BODY_TOO_LARGE', String(MAX_BODY_BYTES));
}
