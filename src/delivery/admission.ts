/** Client limits within one delivery thread. */
import { ConnectionGate } from '../transport/proxy/connection-gate.ts';
import { AddressShares } from '../util/address-shares.ts';
import { ConnectionLimiter } from '../util/connection-limiter.ts';
import { DescriptorLedger } from '../util/descriptor-ledger.ts';
import type { Logger } from '../util/logger.ts';
import { RefusalLog } from '../util/refusal-log.ts';
import { TrustedProxies } from '../util/trusted-proxies.ts';

/** Limits for all threads together. */
export interface AdmissionPlan {
  /** Connections, and also sessions, per address; 0: no limit. */
  readonly viewers: number;
  /** Pending signalling requests per address; 0: no limit. */
  readonly signalling: number;
  /** Addresses and networks. */
  readonly trustedProxies: readonly string[];
  /** Every connection must start with a PROXY header. */
  readonly proxyProtocol: boolean;
  /** See `DescriptorLedger`; the first slot is the main thread's. Null: no limit. */
  readonly descriptors: SharedArrayBuffer | null;
}

/** No limits and no trusted proxies. */
export const OPEN_ADMISSION: AdmissionPlan = { viewers: 0, signalling: 0, trustedProxies: [], proxyProtocol: false, descriptors: null };

/** The share of one thread. */
export interface ThreadAdmission extends AdmissionPlan {
  /** Threads that share the connections of a port. */
  readonly threads: number;
  /** The slot of this thread in the ledger. */
  readonly slot: number;
}

/** Admits connections and sessions in one delivery thread. Its counters are shared with the other threads; nothing to close. */
export class Admission {
  readonly gate: ConnectionGate;
  readonly proxies: TrustedProxies;
  /** Pending signalling requests per address. A thread gets a fraction of the connections, so it has the same fraction of the limit. */
  readonly signalling: AddressShares;
  /** Viewer sessions per address. The requests of one player may reach several threads, so each thread has the whole limit. */
  readonly sessionShare: number;
  readonly refusals: RefusalLog;
  readonly #descriptors: DescriptorLedger | null;

  /** `connections`: maximum of connections of the thread; `relays`: maximum of signalling requests. */
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

  /** Reserves descriptors that a client needs beyond its connection; false if none are left. */
  takeDescriptors(count: number): boolean {
    return this.#descriptors?.take(count) ?? true;
  }

  /** Releases reserved descriptors. */
  giveDescriptors(count: number): void {
    this.#descriptors?.give(count);
  }

  /** Idempotent. */
  close(): void {
    this.refusals.close();
  }
}
