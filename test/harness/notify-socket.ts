/** The socket of a service manager, read by Python, because Node.js has no Unix datagram sockets. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Child } from './child.ts';
import { until } from './poll.ts';

const PROGRAM = `
import json, socket, sys, time
name = sys.argv[1]
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind('\\0' + name[1:] if name.startswith('@') else name)
print('bound', flush=True)
while True:
    text = s.recv(65536).decode()
    print(json.dumps({'at': time.monotonic() * 1000, 'text': text}), flush=True)
`;

/** One message, with its monotonic arrival time, ms. */
export interface Notification {
  readonly at: number;
  readonly text: string;
}

/** Receives the notifications of a supervised process. The caller calls `close`. */
export class NotifySocket {
  /** Value of `NOTIFY_SOCKET`. */
  readonly name: string;
  readonly #folder: string;
  readonly #child: Child;

  private constructor(abstract: boolean) {
    this.#folder = mkdtempSync(path.join(tmpdir(), 'millrace-notify-'));
    this.name = abstract ? `@${this.#folder}` : path.join(this.#folder, 'socket');
    this.#child = new Child('python3', ['-c', PROGRAM, this.name], { name: 'service manager' });
  }

  static async open({ abstract = false } = {}): Promise<NotifySocket> {
    const made = new NotifySocket(abstract);
    await made.#child.printed(/bound/, 15_000);
    return made;
  }

  /** All received messages, in order. */
  get heard(): readonly Notification[] {
    const lines = this.#child.stdout.split('\n').slice(1, -1);
    return lines.map((line) => JSON.parse(line) as Notification);
  }

  /** Number of messages with this text. */
  count(text: string): number {
    return this.heard.filter((message) => message.text === text).length;
  }

  /** Waits for a message with this beginning, after the first `from` messages. */
  async hears(beginning: string, from = 0): Promise<Notification> {
    return until(
      `the service manager hears ${beginning}`,
      () => this.heard.slice(from).find(({ text }) => text.startsWith(beginning)) ?? null,
    );
  }

  async close(): Promise<void> {
    await this.#child.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
