/** HTTP viewers admitted by control servers: detects when they have left all threads, and when they return. */
import type { AccessRequest, Denied, Passed } from '../../access/access-check.ts';
import { AdmissionLease } from '../../access/admission-lease.ts';
import type { AdmissionRecord } from '../../access/admission-webhooks.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import type { AdmissionText, SessionEvent, SessionSighting } from '../thread-protocol.ts';
import { AdmissionRegistry } from './admission-registry.ts';

/** Maximum of departed viewers that may return with their session, and of returned ones whose answer is pending. */
const MAX_GONE = 10_000;
/** Forgotten in one step, oldest first: their sessions are revoked in one message. */
const MAX_FORGOTTEN_AT_ONCE = 1000;
/** Maximum size of a record, characters: 4096 from the viewer's request, and the members around them. */
const MAX_RECORD = 5120;
/** Time from an end to the request about a returning viewer, ms: a control server that counts viewers gets the end first. */
const TELLING_MS = 500;
/** Limit of simultaneous repeated requests: half of a control server's requests, so that new viewers do not wait. */
const MAX_ASKING = 32;
const NOT_ASKED: Denied = { admitted: false, code: 'webhook-failed', reason: 'the request to the control server failed' };

/** Requests and notifications to control servers, and the effects of their answers. */
export interface ViewerAdmissionsOptions {
  /** Asks the control server of a virtual host about a returning viewer. */
  readonly judge: ((vhost: string, request: AccessRequest) => Promise<Passed | Denied>) | undefined;
  /** Takes over an admission of a thread that died, and returns the function that reports the end. */
  readonly adopt: ((record: AdmissionRecord) => () => void) | undefined;
  /** Tickets are available (`takeOver`). */
  readonly onOver: () => void;
  /** Disconnects viewers, by their sessions. */
  readonly revoke: (sessions: readonly string[]) => void;
  /** The session is counted. */
  readonly isThere: (sighting: SessionSighting) => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A returned viewer, about which the control server is asked again. */
interface Returned {
  readonly record: AdmissionText;
  /** Earliest time of the request, monotonic, ms. */
  readonly due: number;
  /** Its last sighting. */
  sighting: SessionSighting;
}

/** The owner reports every start and end of a session, and calls `close`. */
export class ViewerAdmissions {
  readonly #options: ViewerAdmissionsOptions;
  readonly #registry: AdmissionRegistry;
  /** By session; the oldest is forgotten first. `since`: monotonic, ms. */
  readonly #gone = new Map<string, { readonly record: AdmissionText; readonly since: number }>();
  /** By session. */
  readonly #returned = new Map<string, Returned>();
  /** Returned viewers without a request so far, oldest first. */
  #waiting: Returned[] = [];
  #asking = 0;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(options: ViewerAdmissionsOptions) {
    this.#options = options;
    const { adopt, onOver } = options;
    this.#registry = new AdmissionRegistry({ onOver, adopt: (record) => adopt?.(readRecord(record)) ?? (() => undefined) });
  }

  /** `thread` sees a session; with a ticket it started there. `isThere`: the session is counted, and its end will be reported. */
  seen(thread: number, { sighting, ticket, record }: SessionEvent, isThere: boolean): void {
    if (ticket !== undefined) {
      // Without a record the thread has reported the end.
      if (record !== undefined) this.#registry.bind(thread, { ticket, record }, { sighting, exists: isThere });
    } else if (isThere) this.#mayReturn(sighting);
  }

  /** The last thread has reported its end. */
  sessionOver(sighting: SessionSighting): void {
    const record = this.#registry.sessionOver(sighting);
    if (record !== undefined) this.#remember(sighting.session, record);
  }

  /** Tickets by thread whose admissions are no longer used, since the last call. */
  takeOver(): ReadonlyMap<number, readonly number[]> {
    return this.#registry.takeOver();
  }

  /** The thread has reported all ends itself. */
  threadStopped(thread: number): void {
    this.#registry.threadStopped(thread);
  }

  /** Called before its sessions end: their ends are reported here. */
  threadGone(thread: number): void {
    this.#registry.threadGone(thread);
  }

  /** No thread is left: all admissions end. Idempotent. */
  close(): void {
    this.#closed = true;
    this.#registry.close();
    this.#gone.clear();
    this.#returned.clear();
    this.#waiting = [];
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #mayReturn(sighting: SessionSighting): void {
    const { session } = sighting;
    const returned = this.#returned.get(session);
    const gone = this.#gone.get(session);
    this.#gone.delete(session);
    if (returned !== undefined) returned.sighting = sighting;
    else if (gone === undefined) return;
    else if (this.#returned.size >= MAX_GONE) this.#options.revoke([session]);
    else {
      const back = { record: gone.record, due: gone.since + TELLING_MS, sighting };
      this.#returned.set(session, back);
      this.#waiting.push(back);
      this.#work();
    }
  }

  /** Not urgent: a returned viewer plays meanwhile. */
  #work(): void {
    while (this.#asking < MAX_ASKING && this.#timer === null) {
      const [next] = this.#waiting;
      if (next === undefined) return;
      const wait = next.due - this.#options.clock.monotonic();
      if (wait > 0) this.#timer = setTimeout(() => this.#waited(), wait);
      else {
        this.#waiting.shift();
        void this.#askAgain(next);
      }
    }
  }

  #waited(): void {
    this.#timer = null;
    this.#work();
  }

  async #askAgain(returned: Returned): Promise<void> {
    this.#asking += 1;
    const { vhost, request, newUrl } = readRecord(returned.record);
    const said = await this.#judge(vhost, request);
    this.#asking -= 1;
    this.#decide(returned, said, newUrl);
    this.#work();
  }

  /** The viewer is disconnected unless the answer allows its place. */
  #decide({ sighting, record }: Returned, said: Passed | Denied, newUrl: string | undefined): void {
    const { clock, logger, isThere, revoke } = this.#options;
    const { session } = sighting;
    const lease = new AdmissionLease(clock, (error, what) => logger.limited.error({ err: error }, `${what} failed inside the server`));
    if (said.admitted) lease.limit(said);
    if (this.#closed) {
      lease.close();
      return;
    }
    this.#returned.delete(session);
    if (!said.admitted || said.newUrl !== newUrl) {
      lease.close();
      revoke([session]);
    } else if (isThere(sighting)) {
      lease.begin(() => revoke([session]));
      this.#registry.enterSession(sighting, record, () => lease.close());
    } else {
      lease.close();
      this.#remember(session, record);
    }
  }

  async #judge(vhost: string, request: AccessRequest): Promise<Passed | Denied> {
    try {
      return (await this.#options.judge?.(vhost, request)) ?? NOT_ASKED;
    } catch (error) {
      this.#options.logger.limited.error({ err: error }, 'the request to a control server failed');
      return NOT_ASKED;
    }
  }

  /** A viewer without a record has to start again. */
  #remember(session: string, record: AdmissionText): void {
    if (record.length > MAX_RECORD) {
      this.#options.revoke([session]);
      return;
    }
    this.#gone.set(session, { record, since: this.#options.clock.monotonic() });
    if (this.#gone.size <= MAX_GONE) return;
    const oldest = [...this.#gone.keys()].slice(0, MAX_FORGOTTEN_AT_ONCE);
    for (const each of oldest) this.#gone.delete(each);
    this.#options.revoke(oldest);
  }
}

function readRecord(record: AdmissionText): AdmissionRecord {
  return JSON.parse(record) as AdmissionRecord;
}
