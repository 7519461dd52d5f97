/** Counts outside clients that keep a server from being empty. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Drain } from './drain.ts';
import { ProviderKind, PublisherKind } from './kinds.ts';
import type { Orchestrator } from './orchestrator.ts';

/** Interval of the checks, ms. */
const LOOK_MS = 200;
/** Providers whose streams the server makes or pulls itself. */
const OWN_PROVIDERS: ReadonlySet<string> = new Set([
  ...[ProviderKind.FILE, ProviderKind.MULTIPLEX, ProviderKind.OVT, ProviderKind.RTSP_PULL, ProviderKind.SCHEDULED],
]);

/** Numbers of present clients. */
export interface Presence {
  /** Streams of publishers. */
  readonly publishers: number;
  /** Viewers, including edges. Publishers without sessions count one for each stream that is read. */
  readonly sessions: number;
}

/**
 * Counts publishers and viewers. Recordings and pushes do not count: they need not leave before the server does. `readers`: number of
 * streams read without a session.
 */
export function presenceIn({ virtualHosts, meter }: Pick<Orchestrator, 'virtualHosts' | 'meter'>, readers = 0): Presence {
  let publishers = 0;
  for (const { applications } of virtualHosts) {
    for (const application of applications.values()) {
      for (const stream of application.streams) if (stream.source.present && !OWN_PROVIDERS.has(stream.provider)) publishers += 1;
    }
  }
  const counts = Object.entries(meter.sessions).filter(([kind]) => kind !== PublisherKind.PUSH && kind !== PublisherKind.FILE);
  return { publishers, sessions: counts.reduce((sum, [, count]) => sum + count, readers) };
}

/** Refuses new clients. Resolves when all have left, or with `ended`. */
export async function emptied(drain: Drain, presence: () => Presence, ended: Promise<void>): Promise<void> {
  drain.set(true);
  let over = false;
  void ended.then(() => {
    over = true;
  });
  while (!over) {
    const { publishers, sessions } = presence();
    if (publishers + sessions === 0) return;
    await Promise.race([ended, delay(LOOK_MS, undefined, { ref: false })]);
  }
}
