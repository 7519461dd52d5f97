/**
 * Access control of SRT callers, publishers and players alike. A handshake cannot wait: a caller whose verdict takes time is connected
 * before it is admitted.
 */
import { type Admitted, type Direction, type Gatekeeper, OPEN, type Verdict, whenJudged } from '../../access/access-check.ts';
import { plainAddress } from '../../util/client-address.ts';
import type { SrtCloseReason, SrtConnection } from '../../wire/srt/connection.ts';
import type { SrtCall, SrtSession } from '../../wire/srt/multiplexer.ts';
import { describeRejection, RejectionCode } from '../../wire/srt/rejection.ts';
import { parseStreamId, type SrtTarget } from '../../wire/srt/stream-id.ts';

/** Maximum that a caller may send before it is admitted; beyond that everything so far is dropped, because live media can begin later. */
const MAX_HELD_BYTES = 512 * 1024;

/** A session that can be ended when its time is over. */
export interface LimitedSession extends SrtSession {
  expire(reason: string): void;
}

/** A caller, and how its admission ends. */
export interface AdmissionRequest {
  readonly direction: Direction;
  readonly call: SrtCall;
  readonly target: SrtTarget;
  /** Time of the connection, µs. */
  readonly now: () => number;
  /** Serves an admitted caller at `target`, which may differ from the requested one, or returns the reason for a refusal. */
  readonly open: (target: SrtTarget) => LimitedSession | RejectionCode;
  /** The server failed on the caller. */
  readonly onFault: (error: unknown) => void;
}

/** The session of a caller, or the reason for none; the gatekeeper has logged its own refusals. */
export function admitCaller(access: Gatekeeper, request: AdmissionRequest): SrtSession | RejectionCode {
  const { direction, call, target } = request;
  const address = plainAddress(call.peer.address);
  const { host, app, stream, key } = target;
  const authorization = key === undefined ? undefined : `Bearer ${key}`;
  const client = { address, port: call.peer.port, realIp: address, authorization };
  const judgement = access.admit({ host, vhost: host, app, stream }, { direction, protocol: 'srt', url: target.url, client });
  if (judgement === OPEN) return request.open(target);
  const session = new AdmittedSession(request);
  if (judgement instanceof Promise) {
    session.await(judgement);
    return session;
  }
  if (!judgement.admitted) return RejectionCode.UNAUTHORIZED;
  const refused = session.enter(judgement);
  return refused ?? session;
}

/** The target that a control server names for a caller; a URL without a playlist leaves the requested playlist. */
function redirected(newUrl: string, { playlist }: SrtTarget): SrtTarget {
  const target = parseStreamId(newUrl.replace(/^[^:]*:/, 'srt:'));
  // Calls without a stream name are refused earlier.
  if (target === null) throw new TypeError('a control server gave a URL that names no stream');
  return { ...target, playlist: target.playlist ?? playlist };
}

/** Stands between a connection and its session: holds data until there is a session, which ends with the admission. */
class AdmittedSession implements SrtSession {
  readonly #request: AdmissionRequest;
  #session: LimitedSession | null = null;
  #stay: Admitted | null = null;
  #connection: SrtConnection | null = null;
  #cancel: (() => void) | null = null;
  #held: Uint8Array[] = [];
  #heldBytes = 0;

  constructor(request: AdmissionRequest) {
    this.#request = request;
  }

  /** Opens the session when there is a verdict; a refused caller loses its connection. */
  await(judgement: Promise<Verdict>): void {
    const { now, onFault } = this.#request;
    const close = (detail: string): void => this.#connection?.close(detail, now());
    this.#cancel = whenJudged(
      judgement,
      (verdict) => {
        this.#cancel = null;
        const refused = verdict.admitted ? this.enter(verdict) : verdict.reason;
        if (refused !== null) close(typeof refused === 'string' ? refused : describeRejection(refused));
        else if (this.#connection !== null) this.#begin(this.#connection);
      },
      (error) => {
        onFault(error);
        close('internal error');
      },
    );
  }

  /** Opens the session of an admitted caller; returns the reason if that is impossible. */
  enter(stay: Admitted): RejectionCode | null {
    try {
      const { open, target } = this.#request;
      const session = open(stay.newUrl === undefined ? target : redirected(stay.newUrl, target));
      if (typeof session === 'number') return session;
      this.#session = session;
      this.#stay = stay;
      return null;
    } finally {
      if (this.#stay === null) stay.close();
    }
  }

  onOpen(connection: SrtConnection): void {
    this.#connection = connection;
    if (this.#session !== null) this.#begin(connection);
  }

  onData(payload: Uint8Array): void {
    if (this.#session !== null) {
      this.#session.onData(payload);
      return;
    }
    if (this.#heldBytes + payload.length > MAX_HELD_BYTES) {
      this.#held = [];
      this.#heldBytes = 0;
    }
    this.#held.push(payload);
    this.#heldBytes += payload.length;
  }

  onClosed(reason: SrtCloseReason): void {
    this.#cancel?.();
    this.#stay?.close();
    this.#held = [];
    this.#session?.onClosed(reason);
  }

  #begin(connection: SrtConnection): void {
    const session = this.#session;
    session?.onOpen(connection);
    this.#stay?.begin((reason) => session?.expire(reason));
    const held = this.#held;
    this.#held = [];
    for (const payload of held) session?.onData(payload);
  }
}
