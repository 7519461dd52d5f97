/** Walks over the objects of a server, whose lists contain only names. */
import { type MillraceClient, MillraceError } from '../client/index.ts';

/** Concurrent requests: enough to hide the latency, too few to load the server. */
const MAX_AT_ONCE = 8;

/** Names of an application. */
export interface AppPlace {
  readonly vhost: string;
  readonly app: string;
}
/** Names of a stream. */
export interface StreamPlace extends AppPlace {
  readonly stream: string;
}

/** Results of `make` for each item, in order; null results are omitted. */
export async function forEachOf<T, R>(items: readonly T[], make: (item: T) => Promise<R | null>): Promise<R[]> {
  const made: (R | null)[] = new Array(items.length).fill(null);
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < items.length) {
      const at = next;
      next += 1;
      made[at] = await make(items[at] as T);
    }
  };
  await Promise.all(Array.from({ length: Math.min(MAX_AT_ONCE, items.length) }, work));
  return made.filter((result) => result !== null);
}

/** Null for a missing object: it was removed after its name was listed, or the application has nothing of this kind. */
export async function unlessMissing<R>(call: Promise<R>): Promise<R | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof MillraceError && error.status === 404) return null;
    throw error;
  }
}

/** Applications of a virtual host, or of all; a given virtual host must exist. */
export async function appsOf(client: MillraceClient, vhost?: string): Promise<AppPlace[]> {
  const named = (name: string) => client.get('/v1/vhosts/{vhost}/apps', { path: { vhost: name } });
  if (vhost !== undefined) return (await named(vhost)).map((app) => ({ vhost, app }));
  const vhosts = await client.get('/v1/vhosts');
  const lists = await forEachOf(vhosts, async (name) => (await unlessMissing(named(name)))?.map((app) => ({ vhost: name, app })) ?? null);
  return lists.flat();
}

/**
 * Results of `list` for the given application, or for all. A given application must exist and answer; others that
 * have nothing of this kind are skipped.
 */
export async function inApps<R>(
  client: MillraceClient,
  { vhost, app }: { readonly vhost?: string; readonly app?: string },
  list: (place: AppPlace) => Promise<readonly R[]>,
): Promise<R[]> {
  if (vhost !== undefined && app !== undefined) return [...(await list({ vhost, app }))];
  return (await forEachOf(await appsOf(client, vhost), (place) => unlessMissing(list(place)))).flat();
}
