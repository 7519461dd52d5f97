/** A control server of admissions that answers as the test decides, and keeps the requests. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { until } from '../harness/poll.ts';
import { controlSignature } from '../support/control-signature.ts';
import type { Issued } from './self-signed.ts';

/** A received request. */
export interface ControlRequest {
  readonly client: { readonly address: string; readonly port: number; readonly real_ip: string; readonly user_agent?: string };
  readonly request: {
    readonly direction: string;
    readonly protocol: string;
    readonly status: 'opening' | 'closing';
    readonly time: string;
    readonly url: string;
    readonly new_url?: string;
  };
}

/** An object is sent as JSON, `null` means no answer, and a function writes the answer itself. */
export type ControlAnswer = object | null | ((response: ServerResponse) => void);

/** `close` closes it. */
export class ControlServer {
  readonly secretKey = 'admsecret';
  readonly asked: ControlRequest[] = [];
  /** Requests with a wrong signature, or whose body is not our JSON. */
  wrong = 0;
  /** Answer to openings; closings are answered with `closing`, by default `{}`. */
  answer: (request: ControlRequest) => ControlAnswer | Promise<ControlAnswer> = () => ({ allowed: true });
  closing: (request: ControlRequest) => ControlAnswer | Promise<ControlAnswer> = () => ({});
  /** Requests without an answer so far. */
  open = 0;
  maxOpen = 0;
  readonly #server: Server;

  readonly #origin: string;

  private constructor(certificate: Issued | null) {
    const handle = (request: IncomingMessage, response: ServerResponse): void =>
      void this.#handle(request, response).catch(() => response.destroy());
    this.#server = certificate === null ? createServer(handle) : createSecureServer({ ...certificate }, handle);
    this.#origin = certificate === null ? 'http://127.0.0.1' : 'https://localhost';
  }

  /** With a certificate for `localhost` it serves HTTPS. */
  static async start(certificate: Issued | null = null): Promise<ControlServer> {
    const control = new ControlServer(certificate);
    control.#server.listen(0, '127.0.0.1');
    await once(control.#server, 'listening');
    return control;
  }

  get url(): string {
    return `${this.#origin}:${(this.#server.address() as AddressInfo).port}/admission?key=SECRET`;
  }

  /** Requests about URLs that contain `part`. */
  about(part: string, status: 'opening' | 'closing'): ControlRequest[] {
    return this.asked.filter(({ request }) => request.status === status && request.url.includes(part));
  }

  async told(part: string, status: 'opening' | 'closing', count = 1): Promise<ControlRequest[]> {
    return await until(`${count} ${status} of ${part}`, () => {
      const found = this.about(part, status);
      return found.length >= count ? found : null;
    });
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.open += 1;
    this.maxOpen = Math.max(this.maxOpen, this.open);
    response.once('close', () => {
      this.open -= 1;
    });
    const body = await text(request);
    if (request.headers['x-ome-signature'] !== controlSignature(this.secretKey, body)) this.wrong += 1;
    const asked = JSON.parse(body) as ControlRequest;
    this.asked.push(asked);
    const said = await (asked.request.status === 'opening' ? this.answer(asked) : this.closing(asked));
    if (typeof said === 'function') said(response);
    else if (said !== null) {
      response.setHeader('Content-Type', 'application/json');
      response.end(JSON.stringify(said));
    }
  }
}
