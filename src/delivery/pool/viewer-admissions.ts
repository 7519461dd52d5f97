/** Viewers over HTTP about whom control servers are asked: when they come, when they are gone, and when they come back. */
import type { AccessRequest, Denied, Passed } from '../../access/access-check.ts';
import { Stay } from '../../access/stay.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import type { SessionSighting, WebhookVerdict } from '../thread-protocol.ts';
import { AdmissionBook } from './admission-book.ts';

/** Viewers who are gone and may come back with the session that they had. */
const MAX_GONE = 10_000;
/** Forgotten at once, the oldest first: their sessions are revoked in one message. */
const FORGOTTEN = 1000;
/** What is kept of one, characters. */
const MAX_QUESTION = 4096;
const NOT_ASKED: Denied = { admitted: false, code: 'webhook-failed', reason: 'the control server could not be asked' };

/** What a control server was asked, and where it has sent the viewer. */
interface Question {
  readonly vhost: string;
  readonly request: AccessRequest;
  readonly newUrl?: string | undefined;
}

/** How control servers are asked, and what becomes of what they say. */
export interface ViewerAdmissionsOptions {
  /** What the control server of a virtual host says. */
  readonly judge: ((vhost: string, request: AccessRequest) => Promise<Passed | Denied>) | undefined;
  /** Sends viewers away, by their sessions. */
  readonly revoke: (sessions: readonly string[]) => void;
  /** The session is counted. */
  readonly isThere: (sighting: SessionSighting) => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The owner tells of every session that begins and ends, and calls `close`. */
export class ViewerAdmissions {
  readonly #options: ViewerAdmissionsOptions;
  readonly #book = new AdmissionBook<Question>();
  /** By session; the oldest is forgotten first. */
  readonly #gone = new Map<string, Question>();

  constructor(options: ViewerAdmissionsOptions) {
    this.#options = options;
  }

  /** What `thread` is to hear of a viewer. Never rejects. */
  async ask(thread: number, vhost: string, request: AccessRequest): Promise<WebhookVerdict> {
    const said = await this.#judge(vhost, request);
    return this.#book.enter(thread, said, { vhost, request, newUrl: said.admitted ? said.newUrl : undefined });
  }

  /** A thread sees a session, and with which ticket it began there; `isThere`: it is counted, and its end will be told. */
  seen(sighting: SessionSighting, ticket: number | undefined, isThere: boolean): void {
    if (ticket !== undefined) {
      this.#book.bind(ticket, sighting, isThere);
      return;
    }
    const question = isThere ? this.#gone.get(sighting.session) : undefined;
    if (question === undefined) return;
    this.#gone.delete(sighting.session);
    void this.#askAgain(sighting, question);
  }

  /** The last thread has seen the end of it. */
  sessionOver(sighting: SessionSighting): void {
    const question = this.#book.sessionOver(sighting);
    if (question !== undefined) this.#remember(sighting.session, question);
  }

  /** Nobody makes use of the ticket. */
  over(ticket: number): void {
    this.#book.over(ticket);
  }

  threadGone(thread: number): void {
    this.#book.threadGone(thread);
  }

  /** All are over. Idempotent. */
  close(): void {
    this.#book.close();
    this.#gone.clear();
  }

  /** One who comes back goes on meanwhile, by the session that it has, and is sent away unless it may be where it is. */
  async #askAgain(sighting: SessionSighting, question: Question): Promise<void> {
    const { clock, logger, isThere, revoke } = this.#options;
    const said = await this.#judge(question.vhost, question.request);
    const stay = new Stay(clock, (error, what) => logger.limited.error({ err: error }, `${what} failed inside the server`));
    if (said.admitted) stay.limit(said);
    if (!said.admitted || said.newUrl !== question.newUrl) {
      stay.close();
      revoke([sighting.session]);
    } else if (isThere(sighting)) {
      stay.begin(() => revoke([sighting.session]));
      this.#book.enterSession(sighting, () => stay.close(), question);
    } else {
      stay.close();
      this.#remember(sighting.session, question);
    }
  }

  async #judge(vhost: string, request: AccessRequest): Promise<Passed | Denied> {
    try {
      return (await this.#options.judge?.(vhost, request)) ?? NOT_ASKED;
    } catch (error) {
      this.#options.logger.limited.error({ err: error }, 'a control server could not be asked');
      return NOT_ASKED;
    }
  }

  /** Whoever is not remembered begins anew. */
  #remember(session: string, question: Question): void {
    const { url, client } = question.request;
    if (url.length + (client.userAgent ?? '').length + (client.authorization ?? '').length > MAX_QUESTION) {
      this.#options.revoke([session]);
      return;
    }
    this.#gone.set(session, question);
    if (this.#gone.size <= MAX_GONE) return;
    const oldest = [...this.#gone.keys()].slice(0, FORGOTTEN);
    for (const each of oldest) this.#gone.delete(each);
    this.#options.revoke(oldest);
  }
}
