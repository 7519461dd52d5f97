/** Status lines and the Date header, cached. */
import type { Clock } from '../../util/clock.ts';
import { STATUS_CODES } from '../../util/node-http.ts';

const LINES = new Map<number, string>();

/** `HTTP/1.1 200 OK` with CRLF. */
export function statusLine(status: number): string {
  const known = LINES.get(status);
  if (known !== undefined) return known;
  const line = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}\r\n`;
  LINES.set(status, line);
  return line;
}

/** The current `Date` line, formatted once per second (RFC 9110 section 6.6.1). */
export class DateLine {
  readonly #clock: Clock;
  #second = -1;
  #line = '';

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `Date: …` with CRLF. */
  get line(): string {
    const second = Math.floor(this.#clock.now() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#line = `Date: ${new Date(second * 1000).toUTCString()}\r\n`;
    }
    return this.#line;
  }
}
