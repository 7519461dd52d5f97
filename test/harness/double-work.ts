/** Detects whether two nodes do the same work at the same time, and for how long. */
import { setTimeout as delay } from 'node:timers/promises';
import type { NetworkNode, NodeNetwork, Work } from './node-network.ts';

const EVERY_MS = 100;

/** Checks from `begin` to `stop`. */
export class DoubleWork {
  /** Longest time of simultaneous work, ms, for each work. */
  readonly longest = new Map<Work, number>();
  readonly #done: Promise<void>;
  #isStopped = false;

  private constructor(network: NodeNetwork) {
    this.#done = this.#look(network);
    this.#done.catch(() => undefined);
  }

  static begin(network: NodeNetwork): DoubleWork {
    return new DoubleWork(network);
  }

  /** Idempotent. */
  async stop(): Promise<ReadonlyMap<Work, number>> {
    this.#isStopped = true;
    await this.#done;
    return this.longest;
  }

  async #look(network: NodeNetwork): Promise<void> {
    const since = new Map<Work, number>();
    while (!this.#isStopped) {
      // A node that is gone does nothing.
      const of = async (node: NetworkNode): Promise<Work[]> => await network.worksOf(node).catch(() => []);
      const [one, two] = await Promise.all(network.nodes.map(of));
      const now = performance.now();
      for (const work of one ?? []) {
        if (two?.includes(work) !== true) continue;
        const began = since.get(work) ?? now;
        since.set(work, began);
        this.longest.set(work, Math.max(this.longest.get(work) ?? 0, now - began));
      }
      for (const work of [...since.keys()]) if (one?.includes(work) !== true || two?.includes(work) !== true) since.delete(work);
      await delay(EVERY_MS);
    }
  }
}
