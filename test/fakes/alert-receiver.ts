/** A receiver of alerts that keeps them, and can hang, answer nonsense and refuse. `close` closes it. */
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { controlSignature } from '../support/control-signature.ts';

export interface HeardAlert {
  readonly type: string;
  readonly sourceUri?: string;
  readonly messages: readonly { readonly code: string; readonly description: string }[];
  // biome-ignore lint/suspicious/noExplicitAny: a stream as JSON, of which a test asserts what it looks at
  readonly sourceInfo?: any;
  readonly extraInfo?: Readonly<Record<string, unknown>>;
}

export class AlertReceiver {
  readonly secretKey = 'alertsecret';
  readonly heard: HeardAlert[] = [];
  readonly headers: Readonly<Record<string, string | string[] | undefined>>[] = [];
  /** Number of bodies with a wrong signature. */
  wrong = 0;
  answer: (response: ServerResponse, count: number) => void = (response) => response.end('{}');
  readonly #server: Server;

  private constructor() {
    this.#server = createServer(async (request, response) => {
      const body = await text(request);
      if (request.headers['x-ome-signature'] !== controlSignature(this.secretKey, body)) this.wrong += 1;
      this.headers.push(request.headers);
      this.heard.push(JSON.parse(body));
      this.answer(response, this.heard.length);
    });
  }

  static async start(): Promise<AlertReceiver> {
    const receiver = new AlertReceiver();
    receiver.#server.listen(0, '127.0.0.1');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/alert`;
  }

  /** Codes of each alert, in order. */
  get codes(): string[] {
    return this.heard.map(({ messages }) => messages.map(({ code }) => code).join('+'));
  }

  /** Resolves with the first matching alert, past or future; the test's timeout is the deadline. */
  async told(fits: (alert: HeardAlert) => boolean): Promise<HeardAlert> {
    for (;;) {
      const found = this.heard.find(fits);
      if (found !== undefined) return found;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  withCode(code: string): Promise<HeardAlert> {
    return this.told(({ messages }) => messages.some((message) => message.code === code));
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
