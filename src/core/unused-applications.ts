/** `Modules/DynamicAppRemoval`: applications made from a template go when nobody uses them. */

import { guarded } from '../util/guarded.ts';
import type { Logger } from '../util/logger.ts';
import type { Orchestrator } from './orchestrator.ts';

/** Such an application lives this long without streams, and how often that is looked at. */
const UNUSED_APPLICATION_MS = 60_000;
const APPLICATION_CHECK_MS = 10_000;

/** Looks again and again until it is stopped. */
export function removingUnusedApplications(orchestrator: Orchestrator, logger: Logger): { stop(): Promise<void> } {
  const look = guarded(logger, 'the removal of unused applications', () => orchestrator.removeUnusedApplications(UNUSED_APPLICATION_MS));
  const timer = setInterval(look, APPLICATION_CHECK_MS);
  return { stop: async () => clearInterval(timer) };
}
