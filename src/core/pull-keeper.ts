import type { PullRegistry } from './pull-registry.ts';
import { readPullDocument } from './pull-store.ts';
import type { WorkKeeper } from './shared-work.ts';

/** Lets other nodes define persistent streams here. */
export function pullKeeper(pulls: Pick<PullRegistry, 'storedIn' | 'stores' | 'adopt' | 'drop'>): WorkKeeper {
  return {
    kind: 'pull',
    *definitions(vhost) {
      for (const document of pulls.storedIn(vhost)) {
        const { app, name, urls, properties } = document;
        yield { work: { kind: 'pull', vhost, app, name }, definition: { urls, properties } };
      }
    },
    has: (work) => pulls.stores(work),
    async adopt({ vhost, app, name }, definition) {
      await pulls.adopt(readPullDocument({ ...definition, vhost, app, name }));
      return true;
    },
    async drop(work) {
      await pulls.drop(work);
      return true;
    },
  };
}
