/** Puts plain HTTP in front of the fake delivery, and passes media in real time: for players that need a server. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Packet } from '../../src/media/packet.ts';
import { toMilliseconds } from '../../src/media/timebase.ts';
import type { LlhlsSimulation } from '../validator/llhls-simulation.ts';
import { FakeExchange } from './fake-delivery.ts';

const TURN_MS = 5;

/** An exchange that reports its answer. */
class ServedExchange extends FakeExchange {
  readonly #answered: () => void;

  constructor(target: string, read: ConstructorParameters<typeof FakeExchange>[1], answered: () => void) {
    super(target, read);
    this.#answered = answered;
  }

  protected override answered(): void {
    this.#answered();
  }
}

export class DeliveryServer {
  readonly #simulation: LlhlsSimulation;
  readonly #pages: Readonly<Record<string, { type: string; body: string | Buffer }>>;
  readonly #server: Server;
  #timer: NodeJS.Timeout | null = null;
  #lateness = 0;

  constructor(simulation: LlhlsSimulation, pages: Readonly<Record<string, { type: string; body: string | Buffer }>>) {
    this.#simulation = simulation;
    this.#pages = pages;
    this.#server = createServer((request, response) => this.#handle(request, response));
  }

  /** Listens on any free port and returns the base URL. */
  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Passes `packets` on at their decoding times. */
  play(packets: readonly Packet[]): void {
    const start = performance.now();
    let next = 0;
    let turned = start;
    this.#timer = setInterval(() => {
      const now = performance.now();
      this.#lateness = Math.max(this.#lateness, now - turned - TURN_MS);
      this.#simulation.delivery.context.advance(now - turned);
      turned = now;
      for (let packet = packets[next]; packet !== undefined; packet = packets[next]) {
        if (toMilliseconds(packet.dts, packet.track.timebase) > now - start) return;
        next += 1;
        this.#simulation.stream.onPacket(packet);
      }
    }, TURN_MS);
  }

  /** Longest delay of a turn since the last call, ms: how busy the machine was with other work. */
  takeLateness(): number {
    const lateness = this.#lateness;
    this.#lateness = 0;
    return lateness;
  }

  async close(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const target = request.url ?? '/';
    const page = this.#pages[target];
    if (page !== undefined) {
      response.writeHead(200, { 'content-type': page.type }).end(page.body);
      return;
    }
    const { delivery } = this.#simulation;
    const file = target.split('/').slice(3).join('/');
    const exchange: FakeExchange = new ServedExchange(file, delivery.feed.read, () => {
      const answer = exchange.response;
      if (answer === null) return;
      for (const line of answer.headers) response.setHeader(line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim());
      response.writeHead(answer.status).end(answer.body);
    });
    response.on('close', () => {
      if (!exchange.done) exchange.abort();
    });
    if (!delivery.feed.view.handle(exchange)) response.writeHead(404).end();
  }
}
