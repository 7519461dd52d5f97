/** The TURN relay for peers that can use TCP only: their packets arrive at our own media ports. */
import { createServer, type Server, type Socket } from 'node:net';
import type { Clock } from '../../../util/clock.ts';
import { forEachGuarded } from '../../../util/guarded.ts';
import { ownFamily } from '../../../util/listen-addresses.ts';
import type { Logger } from '../../../util/logger.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';
import type { TimeoutScale } from '../../../util/timeout-scale.ts';
import { type RelayedAddresses, type TurnAccount, TurnConnection } from '../../../wire/turn/turn-connection.ts';
import { RelayedPipe } from './peer-pipe.ts';
import type { PeerSession } from './peer-session.ts';
import { admitStream, sendToStream } from './peer-stream.ts';
import type { PeerTransport } from './peer-transport.ts';

/** The account of the reference server, which players have in their code. It opens only our own media ports. */
export const RELAY_ACCOUNT: TurnAccount = { realm: 'airensoft', username: 'ome', password: 'airen' };
/**
 * Announced as the address of every allocation, as the reference server does: datagrams never leave the process, so there is no real
 * address.
 */
const RELAYED: RelayedAddresses = { ipv4: { host: '1.1.1.1', port: 14_090 }, ipv6: { host: '1::1', port: 14_090 } };
const MAX_CONNECTIONS = 5000;
/** A connection without an allocation is closed after this, ms. */
const IDLE_TIMEOUT_MS = 10_000;
/** A connection that leads to no session is closed after this, ms: the account is public. A session that ends closes its connection. */
const UNUSED_TIMEOUT_MS = 60_000;
/** Limit of our addresses that one client may use at a time. */
const MAX_PIPES = 64;

/** Options of the relay; `transport` gets the packets of its clients. */
export interface TurnRelayOptions {
  readonly listen: readonly { readonly host: string; readonly port: number }[];
  readonly transport: PeerTransport;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly timeoutScale?: TimeoutScale;
}

/** Owns its ports and connections; the server closes it. Relays to the media ports of this server and nowhere else (RFC 8656). */
export class TurnRelay {
  readonly #options: TurnRelayOptions;
  readonly #servers: Server[] = [];
  readonly #streams = new Set<Socket>();

  private constructor(options: TurnRelayOptions) {
    this.#options = options;
  }

  /** Rejects with the port that could not be opened. */
  static async open(options: TurnRelayOptions): Promise<TurnRelay> {
    const relay = new TurnRelay(options);
    try {
      for (const { host, port } of options.listen) await relay.#listen(host, port);
    } catch (error) {
      relay.close();
      throw error;
    }
    return relay;
  }

  /** Ports in the order of `listen`. */
  get ports(): readonly number[] {
    return this.#servers.map((server) => {
      const address = server.address();
      return typeof address === 'object' && address !== null ? address.port : 0;
    });
  }

  /** Idempotent. */
  close(): void {
    for (const stream of this.#streams) stream.destroy();
    for (const server of this.#servers.splice(0)) server.close();
  }

  async #listen(host: string, port: number): Promise<void> {
    const server = createServer({ noDelay: true }, (stream) => this.#accept(stream));
    server.maxConnections = MAX_CONNECTIONS;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once('error', (error) => {
      reject(new Error(`TCP port ${port} of ${host} cannot be opened for the relay: ${error.message}`, { cause: error }));
    });
    server.listen({ ...ownFamily(host), port }, () => {
      server.removeAllListeners('error');
      server.on('error', (error) => this.#options.logger.error({ err: error, port }, 'the port of the relay failed'));
      this.#servers.push(server);
      resolve();
    });
    await promise;
  }

  #accept(stream: Socket): void {
    const { transport, clock, logger, timeoutScale = 1 } = this.#options;
    const client = admitStream(stream, transport.guests);
    if (client === null) return;
    const close = (): void => void stream.destroy();
    const unused = setTimeout(close, UNUSED_TIMEOUT_MS * timeoutScale);
    let idle = setTimeout(close, IDLE_TIMEOUT_MS * timeoutScale);
    const pipes = new Map<string, { readonly pipe: RelayedPipe; session: PeerSession | null }>();
    const turn: TurnConnection = new TurnConnection(
      {
        send: (bytes) => sendToStream(stream, bytes),
        datagram: (address, bytes) => {
          const key = `${address.host} ${address.port}`;
          let way = pipes.get(key);
          if (way === undefined) {
            if (pipes.size >= MAX_PIPES) return;
            way = { pipe: new RelayedPipe(stream, { turn, address, from: client }), session: null };
            pipes.set(key, way);
          }
          way.session = transport.arrived(way.pipe, turn.relayed, bytes, way.session);
          if (way.session === null) return;
          clearTimeout(unused);
          transport.guests.leave(stream);
        },
        allocatedUntil: (end) => {
          clearTimeout(idle);
          idle = setTimeout(close, Math.max(end - clock.monotonic(), IDLE_TIMEOUT_MS * timeoutScale));
        },
        now: () => clock.monotonic(),
      },
      RELAY_ACCOUNT,
      client,
      RELAYED,
    );
    this.#streams.add(stream);
    stream.on('data', (chunk: Buffer) => {
      try {
        turn.push(chunk);
      } catch (error) {
        if (error instanceof ProtocolError)
          logger.limited.info({ peer: client.host, reason: error.message }, 'a connection to the relay was closed: it does not speak TURN');
        else logger.limited.error({ err: error, peer: client.host }, 'a connection to the relay failed inside the server');
        stream.destroy();
      }
    });
    stream.on('error', () => undefined);
    stream.on('close', () => {
      clearTimeout(unused);
      clearTimeout(idle);
      this.#streams.delete(stream);
      const failed = (_way: unknown, error: unknown): void =>
        logger.error({ err: error, peer: client.host }, 'a relayed session could not be ended');
      forEachGuarded(pipes.values(), ({ pipe, session }) => session?.lost(pipe), failed);
    });
  }
}
