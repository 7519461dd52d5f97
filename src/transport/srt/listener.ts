/** Listens on the ports of one address, parses stream ids and passes callers on. */

import type { AddressShares } from '../../util/address-shares.ts';
import { hostPort } from '../../util/client-address.ts';
import type { Clock } from '../../util/clock.ts';
import { showHidden } from '../../util/hidden-characters.ts';
import type { RefusalLog } from '../../util/refusal-log.ts';
import type { DatagramPeer } from '../../wire/srt/link.ts';
import type { SrtCall, SrtSession } from '../../wire/srt/multiplexer.ts';
import { RejectionCode } from '../../wire/srt/rejection.ts';
import { modeOf, parseStreamId, type SrtTarget, withoutSecrets } from '../../wire/srt/stream-id.ts';
import type { ListenerSettings } from './socket-options.ts';
import { SrtUdpPort } from './udp-port.ts';

/** A listener's part of the configuration. */
export interface SrtListenerConfig {
  /** Address to listen on. */
  readonly host: string;
  /** 0 lets the system choose. */
  readonly ports: readonly number[];
  readonly settings: ListenerSettings;
  /** Where callers without a stream id go, by the port they call. */
  readonly streamMap: readonly { readonly port: number; readonly streamPath: string }[];
  /** Passphrases of single streams, by `vhost/app/stream`. */
  readonly streamPassphrases: readonly { readonly streamPath: string; readonly passphrase: string }[];
  /** Name of the virtual host that has this name, or else this host name; null when there is none. */
  readonly virtualHostFor: (nameOrHost: string) => string | null;
  /** Wrong passphrases of one address, a second; 0: no limit. */
  readonly maxWrongKeysPerSecond?: number;
  /** Connections by address, of all ports together; absent: no limit. */
  readonly shares?: AddressShares;
  /** Reports the callers that these two refuse. */
  readonly refusals?: RefusalLog;
}

/** Options of listening, for a publisher or provider. */
export interface SrtListenerOptions extends SrtListenerConfig {
  /** The service for callers; a caller whose stream id requests another one (`m`) is refused. */
  readonly mode: 'publish' | 'request';
  readonly clock: Clock;
  /** Connections of one port at once; more callers are refused. */
  readonly maxConnections: number;
  /** Serves a caller that has proved its address and passphrase, or says why not. `now()` of the port is its time. */
  readonly open: (call: SrtCall, target: SrtTarget, port: SrtUdpPort) => SrtSession | RejectionCode;
  /**
   * A caller was refused without coming to `open`: by its stream id (`BAD_REQUEST`, `BAD_MODE`), its passphrase or its abilities.
   * `why`: in words, where they say more than the code.
   */
  readonly onRefused: (peer: DatagramPeer, code: RejectionCode, why: string | null) => void;
  /** A socket failed. */
  readonly onError: (error: Error) => void;
  /** Processing a peer's data failed on our side; its connection has ended. */
  readonly onFault: (error: unknown) => void;
}

const FORM = 'streamid=VHOST/APP/STREAM, e.g. default/app/live';
const MAX_SHOWN_CHARACTERS = 100;

/** Error of a stream id that names no stream. */
function lackOf(streamId: string): string {
  if (streamId === '') return `the stream id is missing, and the port has no stream of its own (StreamMap): want ${FORM}`;
  const shown = showHidden(JSON.stringify(withoutSecrets(streamId).slice(0, MAX_SHOWN_CHARACTERS)));
  return `the stream id ${shown} names no stream: want ${FORM}`;
}

/** Players and publishers have ports of their own. */
const WRONG_MODE: Readonly<Record<SrtListenerOptions['mode'], (mode: string) => string>> = {
  publish: (mode) => `the stream id asks ${wishOf(mode)}, this port takes publishers: players call that of Bind/Publishers/SRT`,
  request: (mode) => `the stream id asks ${wishOf(mode)}, this port serves players: publishers call that of Bind/Providers/SRT`,
};

/** A word of the caller's own may be a key in the wrong place. */
function wishOf(mode: string): string {
  if (mode === 'request') return 'to play';
  return mode === 'publish' || mode === 'bidirectional' ? `to ${mode}` : 'for something else';
}

/** Owns its ports from `start` to `stop`; its creator calls both. `start` rejects if a port cannot be bound. */
export class SrtListener {
  readonly #options: SrtListenerOptions;
  readonly #passphrases: readonly { readonly target: SrtTarget; readonly passphrase: string }[];
  readonly #ports: SrtUdpPort[] = [];

  constructor(options: SrtListenerOptions) {
    this.#options = options;
    this.#passphrases = options.streamPassphrases.flatMap(({ streamPath, passphrase }) => {
      const target = parseStreamId(streamPath);
      return target === null ? [] : [{ target, passphrase }];
    });
  }

  /** The listening ports. */
  get ports(): readonly SrtUdpPort[] {
    return this.#ports;
  }

  /** Opens all ports; if one fails, closes the others again. */
  async start(): Promise<void> {
    try {
      for (const port of this.#options.ports) this.#ports.push(await this.#open(port));
    } catch (error) {
      await this.stop('a port could not be opened');
      throw error;
    }
  }

  /** Ends all connections, telling the peers. Idempotent. */
  async stop(detail: string): Promise<void> {
    await Promise.all(this.#ports.splice(0).map((port) => port.close(detail)));
  }

  /** Sends the batched datagrams of several connections. */
  flush(): void {
    for (const port of this.#ports) port.flush();
  }

  async #open(number: number): Promise<SrtUdpPort> {
    const { clock, host, settings, maxConnections, maxWrongKeysPerSecond, onError, onFault } = this.#options;
    const { latency, keyLength, keyRefresh, connectionLimits } = settings;
    const port = await SrtUdpPort.open({
      clock,
      host,
      port: number,
      onError,
      onFault,
      maxConnections,
      ...(maxWrongKeysPerSecond !== undefined && { maxWrongKeysPerSecond }),
      latency,
      keyLength,
      keyRefresh,
      connectionLimits,
      policy: {
        passphrase: (call) => this.#passphraseFor(this.#targetOf(call, port.port)),
        open: (call) => {
          const target = this.#targetOf(call, port.port);
          if (target === null) return this.#refuse(call.peer, RejectionCode.BAD_REQUEST, lackOf(call.streamId));
          const mode = modeOf(call.streamId) ?? this.#options.mode;
          if (mode !== this.#options.mode) return this.#refuse(call.peer, RejectionCode.BAD_MODE, WRONG_MODE[this.#options.mode](mode));
          return this.#admit(call, target, port);
        },
        onRefused: (peer, code) => this.#options.onRefused(peer, code, null),
        onDeferred: (peer) =>
          this.#options.refusals?.note('SRT callers have to ask again: too many passphrases are tried', {
            peer: hostPort(peer.address, peer.port),
          }),
      },
    });
    return port;
  }

  /** Opens the session of a caller whose address has a seat left. */
  #admit(call: SrtCall, target: SrtTarget, port: SrtUdpPort): SrtSession | RejectionCode {
    const { shares, refusals, open } = this.#options;
    if (shares === undefined) return open(call, target, port);
    const slot = shares.enter(call.peer.address);
    if (slot === null) {
      refusals?.note('SRT callers refused: their address has its share of connections', {
        peer: hostPort(call.peer.address, call.peer.port),
        share: shares.share,
      });
      return RejectionCode.OVERLOAD;
    }
    const session = open(call, target, port);
    if (typeof session === 'number') slot.leave();
    else {
      return {
        onOpen: (connection) => session.onOpen(connection),
        onData: (payload) => session.onData(payload),
        onClosed: (reason) => {
          slot.leave();
          session.onClosed(reason);
        },
      };
    }
    return session;
  }

  #refuse(peer: DatagramPeer, code: RejectionCode, why: string): RejectionCode {
    this.#options.onRefused(peer, code, why);
    return code;
  }

  #targetOf({ streamId }: SrtCall, port: number): SrtTarget | null {
    if (streamId !== '') return parseStreamId(streamId);
    const mapped = this.#options.streamMap.find((entry) => entry.port === port);
    return mapped === undefined ? null : parseStreamId(mapped.streamPath);
  }

  #passphraseFor(target: SrtTarget | null): string | null {
    const own = target === null ? undefined : this.#passphrases.find((entry) => this.#isSame(entry.target, target));
    return own?.passphrase ?? this.#options.settings.passphrase;
  }

  /** A stream has many addresses: every host name of its virtual host leads to it. */
  #isSame(a: SrtTarget, b: SrtTarget): boolean {
    if (a.app !== b.app || a.stream !== b.stream) return false;
    const { virtualHostFor } = this.#options;
    return (virtualHostFor(a.host) ?? a.host) === (virtualHostFor(b.host) ?? b.host);
  }
}
