/** The viewers of a stream, one by one. */
import type { Clock } from '../util/clock.ts';
import { ByteMeter } from './byte-meter.ts';
import type { PublisherKind } from './kinds.ts';
import type { EgressMeter, SessionHandle, SessionRequest } from './publishing.ts';

/** One viewer of a stream, over any publisher. */
export class Session implements SessionHandle {
  readonly id: string;
  readonly kind: PublisherKind;
  readonly client: string | undefined;
  /** Wall clock, ms. */
  readonly createdAt: number;
  readonly out: ByteMeter;
  readonly #registry: SessionRegistry;

  constructor({ id, kind, client }: SessionRequest, clock: Clock, registry: SessionRegistry) {
    this.id = id;
    this.kind = kind;
    this.client = client;
    this.createdAt = clock.now();
    this.out = new ByteMeter(clock);
    this.#registry = registry;
  }

  countBytes(bytes: number): void {
    this.out.add(bytes);
  }

  close(reason = 'it has ended'): void {
    this.#registry.forget(this, reason);
  }
}

interface Entry {
  readonly session: Session;
  readonly onTerminate: SessionRequest['onTerminate'];
}

/** The viewer sessions of an inbound stream over all its outputs. Publishers open the sessions and limit their number. */
export class SessionRegistry {
  readonly #clock: Clock;
  readonly #meter: EgressMeter;
  readonly #entries = new Map<string, Entry>();
  readonly #onOpened: (session: Session) => void;
  readonly #onEnded: (session: Session, reason: string) => void;

  /** `onOpened` is called at the start of each session, `onEnded` at its end. */
  constructor(
    clock: Clock,
    meter: EgressMeter,
    onOpened: (session: Session) => void = () => undefined,
    onEnded: (session: Session, reason: string) => void = () => undefined,
  ) {
    this.#clock = clock;
    this.#onOpened = onOpened;
    this.#onEnded = onEnded;
    this.#meter = meter;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The sessions, oldest first. */
  get all(): Session[] {
    return Array.from(this.#entries.values(), ({ session }) => session);
  }

  find(id: string): Session | undefined {
    return this.#entries.get(id)?.session;
  }

  open(request: SessionRequest): Session {
    const session = new Session(request, this.#clock, this);
    // Two sessions of one name would be a mistake of a publisher. The count stays right even then.
    this.#entries.get(request.id)?.session.close('another session has taken its name');
    this.#entries.set(session.id, { session, onTerminate: request.onTerminate });
    this.#meter.connect(session.kind);
    this.#onOpened(session);
    return session;
  }

  /** Disconnects a viewer; false if there is none with this id. */
  terminate(id: string, reason: string): boolean {
    const entry = this.#entries.get(id);
    if (entry === undefined) return false;
    entry.session.close(reason);
    entry.onTerminate(reason);
    return true;
  }

  /** Called by sessions that have ended. */
  forget(session: Session, reason: string): void {
    if (this.#entries.get(session.id)?.session !== session) return;
    this.#entries.delete(session.id);
    this.#meter.disconnect(session.kind);
    this.#onEnded(session, reason);
  }
}
