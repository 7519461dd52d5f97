/** What every page of the console is given. */
import type { MillraceClient } from '../client/index.ts';
import type { LiveUpdates } from './live-updates.ts';
import type { Sampler } from './sampler.ts';
import type { ServerFacts } from './server-facts.ts';

/** One for each login. */
export interface Context {
  readonly client: MillraceClient;
  readonly updates: LiveUpdates;
  readonly sampler: Sampler;
  readonly server: ServerFacts;
}
