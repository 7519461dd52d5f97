/**
 * The HTTP side of WHIP (RFC 9725) and WHEP (draft-ietf-wish-whep): a POST exchanges session descriptions and makes a session, a DELETE
 * ends it. Both follow the rules that the reference server has for WHIP.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Admitted, type Judgement, OPEN, shownReason, type Verdict, whenJudged } from '../../../access/access-check.ts';
import type { CloseReason } from '../../../core/ingest.ts';
import type { Logger } from '../../../util/logger.ts';
import { type Newcomer, NO_TURNS, type Turns } from '../../../util/newcomer-turns.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';
import { logRefused } from '../../../util/refused.ts';
import type { TimeoutScale } from '../../../util/timeout-scale.ts';
import { randomWord } from '../../../wire/ice/ice-credentials.ts';
import type { AskedPlace } from './asked-place.ts';
import { type IceServersFor, relayLinks } from './ice-server.ts';
import { noSuchStream, placeFields, type RequestPlace, type StreamTarget } from './request-place.ts';

const MAX_BODY = 64 * 1024;
/** Time for a body to arrive, ms. */
const BODY_TIME_MS = 10_000;
const KEY_LENGTH = 16;
const ETAG_LENGTH = 8;
/** Methods for `Allow`, and for CORS preflights. */
export const EXCHANGE_METHODS = 'OPTIONS, POST, PATCH, DELETE';

/** A request that is answered with this status and text. */
export class ExchangeRefused extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** A session, which the peer's DELETE ends. */
export interface ExchangeSession {
  /** Answers the offer. Throws as `open`, and ProtocolError for an unusable offer; the session is then closed. */
  accept(offer: string): string;
  /** Candidates that the peer adds. */
  announced(candidates: string): void;
  close(reason: string, code?: CloseReason['code']): void;
}

/** Options of a session; the offer follows by `accept`. */
export interface OpenRequest {
  readonly target: StreamTarget;
  readonly place: RequestPlace;
  readonly client: string;
  /** `Oven-Capabilities` of the request; empty without one. */
  readonly capabilities: string;
  /** The session has ended by itself; once. */
  readonly onEnded: (reason: string) => void;
}

/** The particulars of WHIP or WHEP. */
export interface ExchangeOptions {
  /** For answers: `WHIP` or `WHEP`. */
  readonly name: 'WHIP' | 'WHEP';
  /** Name of the clients, for the log. */
  readonly peer: 'publisher' | 'viewer';
  /** Access control of an offer; absent: open. The gatekeeper logs refusals. */
  readonly admit?: (place: AskedPlace) => Judgement;
  /** The place of an admitted client; absent: the requested one. */
  readonly targetOf?: (admitted: Admitted, target: StreamTarget | null) => StreamTarget | null;
  /** Must be over before `open`; null if there is no preparation. */
  readonly prepare?: (target: StreamTarget, client: string) => Promise<unknown> | null;
  /** Throws ExchangeRefused, or what `refusal` knows. */
  readonly open: (request: OpenRequest) => ExchangeSession;
  /** Answers to errors of its own kind, from `open` and its sessions; null for any other error. */
  readonly refusal?: (error: unknown) => ExchangeRefused | null;
  /** Headers that let pages of other origins ask. */
  readonly crossOrigin: (request: IncomingMessage, place: RequestPlace) => readonly (readonly [name: string, value: string])[];
  readonly iceServersFor: IceServersFor;
  /** Sessions are opened when it is their turn; absent: at once. */
  readonly turns?: Turns | undefined;
  readonly logger: Logger;
  readonly timeoutScale?: TimeoutScale | undefined;
}

/** WHIP and WHEP have one each. Remembers sessions by the URL that it gave them, until they end. */
export class DescriptionExchange {
  readonly #options: ExchangeOptions;
  /** By the paths of their resources. */
  readonly #sessions = new Map<string, { readonly session: ExchangeSession; readonly stay: Admitted }>();

  constructor(options: ExchangeOptions) {
    this.#options = options;
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  /** Answers every request. */
  handle(request: IncomingMessage, response: ServerResponse, place: AskedPlace, client: string): void {
    this.#guard(response, () => this.#handle(request, response, place, client));
  }

  #handle(request: IncomingMessage, response: ServerResponse, place: AskedPlace, client: string): void {
    response.setHeader('Server', 'Millrace');
    for (const [name, value] of this.#options.crossOrigin(request, place)) response.setHeader(name, value);
    response.setHeader('Access-Control-Expose-Headers', 'Location, Link, ETag');
    const { method } = request;
    if (method === 'OPTIONS') {
      response.setHeader('Access-Control-Allow-Private-Network', 'true');
      answer(response, place.target === null ? 404 : 200, '');
    } else if (method === 'POST')
      this.#withBody(request, response, (offer) => {
        const capabilities = [request.headers['oven-capabilities'] ?? ''].flat().join(',');
        this.#admit(response, place, (stay) => {
          const { targetOf } = this.#options;
          const goal: RequestPlace = targetOf === undefined ? place : { ...place, target: targetOf(stay, place.target) };
          const open = (): void => this.#open(response, { place: goal, offer, client, capabilities, stay });
          this.#prepare(response, { place: goal, client }, () => this.#takeTurn(response, client, open));
        });
      });
    else if (method === 'PATCH') this.#withBody(request, response, (body) => this.#trickle(response, place, body));
    else if (method === 'DELETE') this.#delete(response, place);
    else {
      response.setHeader('Allow', EXCHANGE_METHODS);
      answer(response, 405, `${method} is not allowed here`);
    }
  }

  /** Continues with an admitted client; if the client leaves before there is a session, its admission ends. */
  #admit(response: ServerResponse, place: AskedPlace, next: (stay: Admitted) => void): void {
    const { admit } = this.#options;
    const judged = (verdict: Verdict): void => {
      if (!verdict.admitted) {
        if (verdict.challenge !== undefined) response.setHeader('WWW-Authenticate', verdict.challenge);
        answer(response, 401, shownReason(verdict));
        return;
      }
      // An opened session keeps the admission.
      if (verdict !== OPEN) response.once('close', () => (response.statusCode === 201 ? undefined : verdict.close()));
      this.#guard(response, () => next(verdict));
    };
    const cancel = whenJudged(admit?.(place) ?? OPEN, judged, (error) =>
      this.#guard(response, () => {
        throw error;
      }),
    );
    if (cancel !== null) response.once('close', cancel);
  }

  #prepare(response: ServerResponse, { place: { target }, client }: { place: RequestPlace; client: string }, open: () => void): void {
    const prepared = target === null ? null : (this.#options.prepare?.(target, client) ?? null);
    if (prepared === null) {
      open();
      return;
    }
    const go = (action: () => void): void => {
      if (!response.destroyed) this.#guard(response, action);
    };
    prepared.then(
      () => go(open),
      (error: unknown) =>
        go(() => {
          throw error;
        }),
    );
  }

  /** Opens a session at the turn of its client; a client that has left gives up its turn. */
  #takeTurn(response: ServerResponse, client: string, open: () => void): void {
    const newcomer: Newcomer = {
      client,
      enter: () => {
        if (!response.destroyed) this.#guard(response, open);
      },
      failed: () => response.destroy(),
      refused: (reason) => answer(response, 503, reason),
    };
    const { turns = NO_TURNS } = this.#options;
    turns.take(newcomer);
    response.once('close', () => turns.leave(newcomer));
  }

  #open(
    response: ServerResponse,
    {
      place,
      offer,
      client,
      capabilities,
      stay,
    }: { place: RequestPlace; offer: string; client: string; capabilities: string; stay: Admitted },
  ): void {
    const { name, peer, logger } = this.#options;
    const resource = resourceOf({ ...place, file: randomWord(KEY_LENGTH) });
    let session: ExchangeSession | null = null;
    try {
      if (place.target === null) throw new ExchangeRefused(404, noSuchStream().message);
      session = this.#options.open({ target: place.target, place, client, capabilities, onEnded: () => this.#forget(resource) });
      const description = session.accept(offer);
      this.#keep(resource, session, stay);
      response.setHeader('Content-Type', 'application/sdp');
      response.setHeader('ETag', randomWord(ETAG_LENGTH));
      response.setHeader('Location', `${resource}?direction=${name.toLowerCase()}`);
      const links = relayLinks(this.#options.iceServersFor(place) ?? []);
      if (links.length > 0) response.setHeader('Link', links);
      response.statusCode = 201;
      response.end(description);
    } catch (error) {
      session?.close('the offer was refused');
      const refusal = this.#options.refusal?.(error) ?? error;
      const status = statusOf(refusal);
      if (status === null || !(error instanceof Error) || !(refusal instanceof Error)) throw error;
      const { code = `status ${status}` } = error as Error & { readonly code?: string };
      logRefused(logger, peer, { code, reason: error.message, peer: client, over: name, ...placeFields(place.target) });
      answer(response, status, refusal.message);
    }
  }

  #keep(resource: string, session: ExchangeSession, stay: Admitted): void {
    this.#sessions.set(resource, { session, stay });
    stay.begin((reason) => {
      this.#forget(resource);
      session.close(reason, 'expired');
    });
  }

  #forget(resource: string): void {
    this.#sessions.get(resource)?.stay.close();
    this.#sessions.delete(resource);
  }

  /** Peers connect to us: their candidates are only logged. */
  #trickle(response: ServerResponse, place: RequestPlace, fragment: string): void {
    const session = this.#sessions.get(resourceOf(place))?.session;
    if (place.file === '') answer(response, 400, 'the path names no session');
    else if (session === undefined) answer(response, 404, 'there is no such session');
    else if (!/^a=(?:ice-ufrag|candidate|end-of-candidates|mid|ice-pwd)/m.test(fragment))
      answer(response, 400, 'the body is no trickle-ice-sdpfrag');
    else {
      session.announced(fragment);
      response.setHeader('Content-Type', 'application/trickle-ice-sdpfrag');
      response.statusCode = 204;
      response.end();
    }
  }

  #delete(response: ServerResponse, place: RequestPlace): void {
    const resource = resourceOf(place);
    const session = this.#sessions.get(resource)?.session;
    this.#forget(resource);
    session?.close('the peer left');
    answer(response, session === undefined ? 404 : 200, session === undefined ? 'there is no such session' : '');
  }

  #withBody(request: IncomingMessage, response: ServerResponse, use: (body: string) => void): void {
    const chunks: Buffer[] = [];
    let size = 0;
    let isLate = false;
    const limit = BODY_TIME_MS * (this.#options.timeoutScale ?? 1);
    const deadline = setTimeout(() => {
      isLate = true;
      answer(response, 408, `the body did not arrive within ${limit} ms`);
    }, limit);
    request.on('close', () => clearTimeout(deadline));
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= MAX_BODY) chunks.push(chunk);
    });
    request.on('error', () => response.destroy());
    request.on('end', () => {
      clearTimeout(deadline);
      if (isLate) return;
      if (size > MAX_BODY) {
        answer(response, 413, `the body is longer than ${MAX_BODY} bytes`);
        return;
      }
      this.#guard(response, () => use(Buffer.concat(chunks).toString()));
    });
  }

  #guard(response: ServerResponse, action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#options.logger.limited.error({ err: error }, `a ${this.#options.name} request failed`);
      if (!response.headersSent) answer(response, 500, 'the server failed on this request');
      else if (!response.writableEnded) response.destroy();
    }
  }
}

/** The path of a session: that of its stream, with an unguessable word that is invalid for other streams. */
function resourceOf({ app, stream, file }: RequestPlace): string {
  return `/${app}/${stream}/${file}`;
}

/** Null: the fault is not the peer's. */
function statusOf(error: unknown): number | null {
  if (error instanceof ExchangeRefused) return error.status;
  if (!(error instanceof ProtocolError)) return null;
  if (error.code === 'WEBRTC_FULL') return 503;
  return error.code === 'SDP_CODECS' ? 406 : 400;
}

function answer(response: ServerResponse, status: number, text: string): void {
  response.statusCode = status;
  if (text !== '') response.setHeader('Content-Type', /^[ -~]*$/.test(text) ? 'text/plain' : 'text/plain; charset=utf-8');
  response.end(text === '' ? '' : `${text}\n`);
}
