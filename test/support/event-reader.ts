/** Reads server-sent events from a response body as they arrive. */
import { type ClientRequest, type IncomingMessage, request } from 'node:http';

export interface ReadEvent {
  readonly id: string | undefined;
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: members are up to the type, and what a test looks at is asserted
  readonly data: any;
}

/** The test closes it. */
export class EventReader {
  readonly events: ReadEvent[] = [];
  /** Number of received comments. */
  beats = 0;
  /** The server's `retry` value, ms; 0 before it came. */
  retry = 0;
  /** End of the answer: `end` in order, `cut` by a broken connection; null before. */
  over: 'end' | 'cut' | null = null;
  readonly response: IncomingMessage;
  readonly #request: ClientRequest;
  #rest = '';

  constructor(asked: ClientRequest, response: IncomingMessage) {
    this.#request = asked;
    this.response = response;
    response.setEncoding('utf8');
    response.on('data', (text: string) => this.take(text));
    response.on('end', () => {
      this.over ??= 'end';
    });
    response.on('error', () => {
      this.over ??= 'cut';
    });
  }

  /** Resolves with the head of the answer. */
  static open(url: string, headers: Readonly<Record<string, string>>): Promise<EventReader> {
    return new Promise((resolve, reject) => {
      const asked = request(url, { headers, agent: false }, (response) => resolve(new EventReader(asked, response)));
      asked.on('error', reject);
      asked.end();
    });
  }

  take(text: string): void {
    const blocks = (this.#rest + text).split('\n\n');
    this.#rest = blocks.pop() ?? '';
    for (const block of blocks) this.#read(block);
  }

  get types(): string[] {
    return this.events.map(({ event }) => event);
  }

  /** Resolves with the first matching event of this type, past or future; the test's timeout is the deadline. */
  async of(event: string, matches: (data: ReadEvent['data']) => boolean = () => true): Promise<ReadEvent> {
    for (;;) {
      const found = this.events.find((each) => each.event === event && matches(each.data));
      if (found !== undefined) return found;
      if (this.over !== null) throw new Error(`the answer is over (${this.over}) without ${event}: ${this.types.join(' ')}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  /** Resolves when the answer has ended. */
  async ended(): Promise<'end' | 'cut'> {
    while (this.over === null) await new Promise((resolve) => setTimeout(resolve, 5));
    return this.over;
  }

  close(): void {
    this.over ??= 'end';
    this.#request.destroy();
  }

  #read(block: string): void {
    const fields = new Map<string, string>();
    for (const line of block.split('\n')) {
      const colon = line.indexOf(':');
      if (colon === 0) this.beats += 1;
      else fields.set(line.slice(0, colon), line.slice(colon + 1).trimStart());
    }
    const data = fields.get('data');
    this.retry = Number(fields.get('retry') ?? this.retry);
    if (data !== undefined) this.events.push({ id: fields.get('id'), event: fields.get('event') ?? 'message', data: JSON.parse(data) });
  }
}
