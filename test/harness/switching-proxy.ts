/** A load balancer without session affinity: some requests go to one server, the next ones to another. */
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';

/** Its creator stops it. */
export class SwitchingProxy {
  /** Number of requests to each server, in order of the servers. */
  readonly requests: number[];
  /** Answers with a status other than 200, with their paths. */
  readonly refusals: string[] = [];
  readonly #ports: readonly number[];
  readonly #every: number;
  readonly #server: http.Server;
  #count = 0;

  private constructor(ports: readonly number[], every: number) {
    this.#ports = ports;
    this.#every = every;
    this.requests = ports.map(() => 0);
    this.#server = http.createServer((request, response) => this.#relay(request, response));
  }

  /** In front of servers on local `ports`; each gets `every` requests in a row. */
  static async start(ports: readonly number[], every: number): Promise<SwitchingProxy> {
    const proxy = new SwitchingProxy(ports, every);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #relay(request: http.IncomingMessage, response: http.ServerResponse): void {
    const index = Math.floor(this.#count / this.#every) % this.#ports.length;
    this.#count += 1;
    this.requests[index] = (this.requests[index] ?? 0) + 1;
    const { method, url: path = '/', headers } = request;
    const onward = http.request({ host: '127.0.0.1', port: this.#ports[index], method, path, headers }, (answer) => {
      const status = answer.statusCode ?? 502;
      if (status !== 200) this.refusals.push(`${status} ${path}`);
      response.writeHead(status, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    request.pipe(onward);
  }
}
