/** Who was let in by control servers over HTTP, until their sessions are over in all threads. */
import type { Denied, Passed } from '../../access/access-check.ts';
import type { SessionSighting, WebhookVerdict } from '../thread-protocol.ts';

/** Of sessions that were there before. */
const NO_THREAD = 0;

interface Entry<Question> {
  /** That asked for it. */
  readonly thread: number;
  readonly question: Question;
  readonly closed: () => void;
  /** Null until the thread tells of the session that it is for. */
  session: string | null;
}

/** Every admission ends once: with its session, with the thread before there is one, or by `close`. `Question` is what was asked for it. */
export class AdmissionBook<Question> {
  readonly #entries = new Map<number, Entry<Question>>();
  /** Tickets by session. */
  readonly #sessions = new Map<string, number>();
  #lastTicket = 0;
  #closed = false;

  get size(): number {
    return this.#entries.size;
  }

  /** What `thread` is to hear of what a control server has said. */
  enter(thread: number, said: Passed | Denied, question: Question): WebhookVerdict {
    if (!said.admitted) return said;
    const { expiresAt, expiry, newUrl, closed } = said;
    const verdict = { admitted: true, expiresAt, expiry, newUrl } as const;
    if (closed === undefined) return verdict;
    return { ...verdict, ticket: this.#add({ thread, question, closed, session: null }) };
  }

  /** A session that is there already. */
  enterSession(sighting: SessionSighting, closed: () => void, question: Question): void {
    this.bind(this.#add({ thread: NO_THREAD, question, closed, session: null }), sighting, true);
  }

  /** A session began with this ticket. `exists`: it is counted, and its end will be told. */
  bind(ticket: number, sighting: SessionSighting, exists: boolean): void {
    const entry = this.#entries.get(ticket);
    if (entry === undefined) return;
    if (!exists) {
      this.over(ticket);
      return;
    }
    entry.session = keyOf(sighting);
    this.#sessions.set(entry.session, ticket);
  }

  /** What was asked for it; undefined where it has no admission. */
  sessionOver(sighting: SessionSighting): Question | undefined {
    const ticket = this.#sessions.get(keyOf(sighting));
    if (ticket === undefined) return undefined;
    const question = this.#entries.get(ticket)?.question;
    this.over(ticket);
    return question;
  }

  /** Nobody makes use of it any more. */
  over(ticket: number): void {
    const entry = this.#entries.get(ticket);
    if (entry === undefined) return;
    this.#entries.delete(ticket);
    if (entry.session !== null) this.#sessions.delete(entry.session);
    entry.closed();
  }

  /** Sessions may go on in other threads; what was not one yet never will be. */
  threadGone(thread: number): void {
    for (const [ticket, entry] of this.#entries) if (entry.thread === thread && entry.session === null) this.over(ticket);
  }

  /** All are over. Idempotent. */
  close(): void {
    this.#closed = true;
    for (const ticket of [...this.#entries.keys()]) this.over(ticket);
  }

  #add(entry: Entry<Question>): number {
    this.#lastTicket += 1;
    const ticket = this.#lastTicket;
    this.#entries.set(ticket, entry);
    // Whoever asked is gone.
    if (this.#closed) this.over(ticket);
    return ticket;
  }
}

function keyOf({ outlet, session }: SessionSighting): string {
  return `${outlet}/${session}`;
}
