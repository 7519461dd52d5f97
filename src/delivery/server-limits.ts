/** Client limits of this server, from its configuration and from the limits of the process. */
import type { ServerConfig } from '../config/index.ts';
import type { OrchestratorOptions } from '../core/orchestrator.ts';
import { ConnectionGate } from '../transport/proxy/connection-gate.ts';
import { AddressShares } from '../util/address-shares.ts';
import { ConnectionLimiter } from '../util/connection-limiter.ts';
import { DescriptorLedger } from '../util/descriptor-ledger.ts';
import { descriptorLimit, planDescriptors } from '../util/descriptor-plan.ts';
import { DescriptorWatch } from '../util/descriptor-watch.ts';
import type { Logger } from '../util/logger.ts';
import { NewcomerTurns } from '../util/newcomer-turns.ts';
import { RefusalLog } from '../util/refusal-log.ts';
import { TrustedProxies } from '../util/trusted-proxies.ts';
import type { AdmissionPlan } from './admission.ts';

/** Maximum of API connections. The API shares the reserve of descriptors only with files. */
const MAX_API_CONNECTIONS = 1000;
/** Below this number of viewers the operator is warned. */
const FEW_VIEWERS = 1000;

/** The limits of one server; created before anything listens. */
export class ServerLimits {
  /** Logs clients that the main thread refuses. */
  readonly refusals: RefusalLog;
  /** Queue for new clients on the main thread. */
  readonly newcomers: NewcomerTurns;
  /** Connections to the API at once. */
  readonly apiConnections: number;
  #limits: ServerConfig['limits'];
  readonly #proxies: ServerConfig['trustedProxies'];
  /** The ledger of the viewers' descriptors; null: no limit. The main thread has the first slot, delivery threads have the rest. */
  readonly #viewerDescriptors: SharedArrayBuffer | null;
  readonly #viewers: DescriptorLedger | null;
  readonly #encoders: DescriptorLedger | null;
  readonly #watch: DescriptorWatch;

  /** `threads`: number of delivery threads. */
  constructor({ limits, trustedProxies }: Pick<ServerConfig, 'limits' | 'trustedProxies'>, threads: number, logger: Logger) {
    this.#limits = limits;
    this.#proxies = trustedProxies;
    this.refusals = new RefusalLog(logger);
    this.newcomers = new NewcomerTurns({
      onRefused: (client) => this.refusals.note('newcomers refused: more came at once than can be let in', { peer: client }),
    });
    this.#watch = new DescriptorWatch(this.refusals);
    const given = descriptorLimit();
    const plan = given === null ? null : planDescriptors({ ...given, threads });
    this.#viewerDescriptors = plan === null ? null : DescriptorLedger.open(plan.viewers, Math.max(1, threads) + 1);
    this.#viewers = this.#viewerDescriptors === null ? null : new DescriptorLedger(this.#viewerDescriptors, 0);
    this.#encoders = plan === null ? null : new DescriptorLedger(DescriptorLedger.open(plan.encoders));
    this.apiConnections = Math.min(MAX_API_CONNECTIONS, Math.ceil((plan?.reserve ?? MAX_API_CONNECTIONS * 2) / 2));
    if (plan !== null && given !== null && plan.viewers < FEW_VIEWERS) {
      const { limit } = given;
      logger.warn({ limit, ...plan }, `the process may open ${limit} files (ulimit -n): at most ${plan.viewers} viewer connections`);
    }
  }

  /** Descriptors of viewers that the main thread serves. */
  get descriptors(): DescriptorLedger | null {
    return this.#viewers;
  }

  /** Limits per address in a listener for `total` connections or sessions. */
  shares(kind: 'publishers' | 'viewers', total: number): AddressShares {
    return new AddressShares({ perAddress: this.#limits.perAddress[kind], total });
  }

  /** The limiter of a listener for `total` connections. */
  limiter(what: string, kind: 'publishers' | 'viewers', total: number): ConnectionLimiter {
    const descriptors = kind === 'viewers' ? this.#viewers : this.#encoders;
    const least = Math.min(total, descriptors?.limit ?? total);
    return new ConnectionLimiter({
      ...{ what, shares: this.shares(kind, least), refusals: this.refusals },
      ...(descriptors !== null && { descriptors }),
    });
  }

  /** The gate of an RTMP listener with this many `connections`, and its trusted proxies. */
  rtmpEntry(connections: number): ConnectionGate {
    const { address, proxyProtocol } = this.#proxies;
    const limiter = this.limiter('RTMP connections', 'publishers', connections);
    return new ConnectionGate({ limiter, proxies: new TrustedProxies(address), proxyProtocol: proxyProtocol.rtmp });
  }

  /** The limiter of the API, whose ports have `apiConnections` each and one limit per address. */
  apiLimiter(): ConnectionLimiter {
    return new ConnectionLimiter({ what: 'API connections', shares: this.shares('viewers', this.apiConnections), refusals: this.refusals });
  }

  /** Limits for delivery threads. */
  get admission(): AdmissionPlan {
    const { viewers, signalling } = this.#limits.perAddress;
    const { address, proxyProtocol } = this.#proxies;
    return { viewers, signalling, trustedProxies: address, proxyProtocol: proxyProtocol.http, descriptors: this.#viewerDescriptors };
  }

  /** Changes the limits. Limits of applications apply at once; listeners keep their limits per address. */
  amend(limits: ServerConfig['limits']): void {
    this.#limits = limits;
  }

  /** Limits of every application. */
  get perApplication(): Pick<OrchestratorOptions, 'maxStreams' | 'onFull' | 'turns'> {
    const sentence = 'publishers refused: their application has all the streams it may';
    return {
      turns: this.newcomers,
      maxStreams: this.#limits.perApplication.streams,
      onFull: ({ vhost, name: app }) => this.refusals.note(sentence, { vhost, app, limit: this.#limits.perApplication.streams }),
    };
  }

  /** Stops all timers and logs refusals not reported yet. Idempotent. */
  async stop(): Promise<void> {
    this.newcomers.close();
    this.#watch.close();
    this.refusals.close();
  }
}
