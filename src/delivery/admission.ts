/** Limits of clients in one delivery thread. */
import { ConnectionGate } from '../transport/proxy/connection-gate.ts';
import { AddressShares } from '../util/address-shares.ts';
import { ConnectionLimiter } from '../util/connection-limiter.ts';
import { DescriptorLedger } from '../util/descriptor-ledger.ts';
import type { Logger } from '../util/logger.ts';
import { RefusalLog } from '../util/refusal-log.ts';
import { TrustedProxies } from '../util/trusted-proxies.ts';

/** Limits of all threads together. */
export interface AdmissionPlan {
  /** Connections, and sessions, of one address; 0: no limit. */
  readonly viewers: number;
  /** Signalling requests of one address that wait for their answer; 0: no limit. */
  readonly signalling: number;
  /** Addresses and networks. */
  readonly trustedProxies: readonly string[];
  /** Their connections begin with a PROXY header. */
  readonly proxyProtocol: boolean;
  /** See `DescriptorLedger`; the first slot is the main thread's. Null: no limit. */
  readonly descriptors: SharedArrayBuffer | null;
}

/** No limits and no trusted proxies. */
export const OPEN_ADMISSION: AdmissionPlan = { viewers: 0, signalling: 0, trustedProxies: [], proxyProtocol: false, descriptors: null };

/** The part of one thread. */
export interface ThreadAdmission extends AdmissionPlan {
  /** Threads among which the system spreads connections. */
  readonly threads: number;
  /** The slot of this thread in the ledger. */
  readonly slot: number;
}

/** Admits connections and sessions in one delivery thread. Its counters are shared with the other threads; nothing to close. */
export class Admission {
  readonly gate: ConnectionGate;
  readonly proxies: TrustedProxies;
  /** Open requests to signalling. A thread gets its fraction of the connections, and has the same fraction of the share. */
  readonly signalling: AddressShares;
  /** Viewer sessions of one address; a player may be seen by several threads, so each has the whole share. */
  readonly sessionShare: number;
  readonly refusals: RefusalLog;
  readonly #descriptors: DescriptorLedger | null;

  /** `connections`: maximum of connections of the thread; `relays`: maximum of requests to signalling. */
  constructor(plan: ThreadAdmission, { connections, relays, log }: { connections: number; relays: number; log: Pick<Logger, 'warn'> }) {
    const { threads, descriptors, proxyProtocol } = plan;
    const part = (share: number): number => Math.ceil(share / threads);
    this.refusals = new RefusalLog(log);
    this.proxies = new TrustedProxies(plan.trustedProxies);
    this.signalling = new AddressShares({ perAddress: part(plan.signalling), total: relays });
    this.sessionShare = plan.viewers === 0 ? Number.POSITIVE_INFINITY : plan.viewers;
    this.#descriptors = descriptors === null ? null : new DescriptorLedger(descriptors, plan.slot);
    const total = Math.min(connections, Math.ceil((this.#descriptors?.limit ?? Number.POSITIVE_INFINITY) / threads));
    const limiter = new ConnectionLimiter({
      what: 'HTTP connections',
      shares: new AddressShares({ perAddress: part(plan.viewers), total }),
      refusals: this.refusals,
      ...(this.#descriptors !== null && { descriptors: this.#descriptors }),
    });
    this.gate = new ConnectionGate({ limiter, proxies: this.proxies, proxyProtocol });
  }

  /** Takes descriptors that a client costs beyond its connection; false when there are none left. */
  takeDescriptors(count: number): boolean {
    return this.#descriptors?.take(count) ?? true;
  }

  /** Gives them back. */
  giveDescriptors(count: number): void {
    this.#descriptors?.give(count);
  }

  /** Idempotent. */
  close(): void {
    this.refusals.close();
  }
}
