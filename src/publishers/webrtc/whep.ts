/** WHEP: playing over plain HTTP (draft-ietf-wish-whep), by the rules that the reference server has for WHIP. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { randomWord } from '../../protocols/ice/ice-credentials.ts';
import type { Logger } from '../../util/logger.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { PlaySession } from './play-session.ts';
import type { RequestPlace } from './request-place.ts';
import type { PlayTarget, WebrtcPublisher } from './webrtc-publisher.ts';

const BODY_LIMIT = 64 * 1024;
const KEY_LENGTH = 16;
const ETAG_LENGTH = 8;
const METHODS = 'OPTIONS, POST, PATCH, DELETE';

export interface WhepOptions {
  readonly publisher: WebrtcPublisher;
  readonly logger: Logger;
}

export class WhepServer {
  readonly #options: WhepOptions;
  readonly #sessions = new Map<string, PlaySession>();

  constructor(options: WhepOptions) {
    this.#options = options;
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  /** Answers, whatever the request. */
  handle(request: IncomingMessage, response: ServerResponse, place: RequestPlace, client: string): void {
    this.#allowOrigins(request, response);
    const { method } = request;
    if (method === 'OPTIONS') answer(response, place.target === null ? 404 : 200, '');
    else if (method === 'POST') this.#withBody(request, response, (body) => this.#open(response, place, body, client));
    else if (method === 'PATCH') this.#withBody(request, response, (body) => this.#trickle(response, place, body));
    else if (method === 'DELETE') this.#delete(response, place);
    else answer(response, 405, `${method} is not allowed here`);
  }

  #open(response: ServerResponse, place: RequestPlace, offer: string, client: string): void {
    const { publisher } = this.#options;
    if (place.target === null) {
      answer(response, 404, 'no virtual host serves this host name, or the path names no stream');
      return;
    }
    const { target } = place;
    const fetched = publisher.fetch(target);
    if (fetched === null) this.#accept(response, place, target, offer, client);
    else {
      void fetched.then(() => {
        if (!response.destroyed) this.#guard(response, () => this.#accept(response, place, target, offer, client));
      });
    }
  }

  #accept(response: ServerResponse, place: RequestPlace, target: PlayTarget, offer: string, client: string): void {
    const { publisher, logger } = this.#options;
    const key = randomWord(KEY_LENGTH);
    let session: PlaySession;
    try {
      session = publisher.openSession(target, { client, onEnded: () => this.#sessions.delete(key) });
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      logger.info({ peer: client, reason: error.message }, 'a viewer over WHEP was refused');
      answer(response, error.code === 'WEBRTC_FULL' ? 503 : 404, error.message);
      return;
    }
    try {
      const description = session.accept(offer);
      this.#sessions.set(key, session);
      response.setHeader('Content-Type', 'application/sdp');
      response.setHeader('ETag', randomWord(ETAG_LENGTH));
      response.setHeader('Location', `/${place.app}/${place.stream}/${key}?direction=whep`);
      response.statusCode = 201;
      response.end(description);
    } catch (error) {
      session.close('the offer was refused');
      if (!(error instanceof ProtocolError)) throw error;
      logger.info({ peer: client, reason: error.message }, 'an offer over WHEP was refused');
      answer(response, error.code === 'SDP_CODECS' ? 406 : 400, error.message);
    }
  }

  /** Peers reach us: their candidates are read and not needed. */
  #trickle(response: ServerResponse, place: RequestPlace, fragment: string): void {
    if (!this.#sessions.has(place.file)) answer(response, 404, 'there is no such session');
    else if (!/^a=(?:ice-ufrag|candidate|end-of-candidates|mid|ice-pwd)/m.test(fragment))
      answer(response, 400, 'the body is no trickle-ice-sdpfrag');
    else {
      response.setHeader('Content-Type', 'application/trickle-ice-sdpfrag');
      response.statusCode = 204;
      response.end();
    }
  }

  #delete(response: ServerResponse, place: RequestPlace): void {
    const session = this.#sessions.get(place.file);
    this.#sessions.delete(place.file);
    session?.close('the player left');
    answer(response, session === undefined ? 404 : 200, session === undefined ? 'there is no such session' : '');
  }

  #withBody(request: IncomingMessage, response: ServerResponse, use: (body: string) => void): void {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= BODY_LIMIT) chunks.push(chunk);
    });
    request.on('error', () => response.destroy());
    request.on('end', () => {
      if (size > BODY_LIMIT) {
        answer(response, 413, `the body is longer than ${BODY_LIMIT} bytes`);
        return;
      }
      this.#guard(response, () => use(Buffer.concat(chunks).toString()));
    });
  }

  #guard(response: ServerResponse, action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#options.logger.error({ err: error }, 'a WHEP request failed');
      if (!response.headersSent) answer(response, 500, 'the server failed on this request');
    }
  }

  #allowOrigins(request: IncomingMessage, response: ServerResponse): void {
    response.setHeader('Server', 'Millrace');
    response.setHeader('Access-Control-Allow-Origin', '*');
    response.setHeader('Access-Control-Allow-Methods', METHODS);
    response.setHeader('Access-Control-Allow-Private-Network', 'true');
    response.setHeader('Access-Control-Expose-Headers', 'Location, Link, ETag');
    const asked = request.headers['access-control-request-headers'];
    if (asked !== undefined) response.setHeader('Access-Control-Allow-Headers', asked);
  }
}

function answer(response: ServerResponse, status: number, text: string): void {
  response.statusCode = status;
  if (text !== '') response.setHeader('Content-Type', 'text/plain');
  response.end(text === '' ? '' : `${text}\n`);
}
