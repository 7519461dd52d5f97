/** Dependencies of every page of the console. */
import type { MillraceClient } from '../client/index.ts';
import type { LiveUpdates } from './live-updates.ts';
import type { Sampler } from './sampler.ts';
import type { ServerFacts } from './server-facts.ts';
import type { StreamName } from './stream-list.ts';

/** Created at each login. */
export interface Context {
  readonly client: MillraceClient;
  readonly updates: LiveUpdates;
  readonly sampler: Sampler;
  readonly server: ServerFacts;
}

/** Properties of each part of the stream page. `outputs`: names of the output streams. */
export interface StreamPart {
  readonly context: Context;
  readonly name: StreamName;
  readonly outputs: readonly string[];
}
