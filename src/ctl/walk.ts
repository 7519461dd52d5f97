/** Walks over what there is on a server, whose lists are names alone. */
import { type MillraceClient, MillraceError } from '../client/index.ts';

/** Requests under way at once: enough to hide the way to the server, too few to be a burden to it. */
const AT_ONCE = 8;

/** Names of an application. */
export interface AppPlace {
  readonly vhost: string;
  readonly app: string;
}
/** Names of a stream. */
export interface StreamPlace extends AppPlace {
  readonly stream: string;
}

/** What `make` makes of each item, in their order; what it gives null for is left out. */
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
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, work));
  return made.filter((result) => result !== null);
}

/** Null for what is not there: it has gone since its name was listed, or the application has nothing of the kind. */
export async function unlessMissing<R>(call: Promise<R>): Promise<R | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof MillraceError && error.status === 404) return null;
    throw error;
  }
}

/** Applications of a virtual host, or of all of them; a virtual host that is named must be there. */
export async function appsOf(client: MillraceClient, vhost?: string): Promise<AppPlace[]> {
  const named = (name: string) => client.get('/v1/vhosts/{vhost}/apps', { path: { vhost: name } });
  if (vhost !== undefined) return (await named(vhost)).map((app) => ({ vhost, app }));
  const vhosts = await client.get('/v1/vhosts');
  const lists = await forEachOf(vhosts, async (name) => (await unlessMissing(named(name)))?.map((app) => ({ vhost: name, app })) ?? null);
  return lists.flat();
}

/**
 * What `list` gives for the application that is named, or for every one. One that is named must be there and answer; of the others those that
 * have nothing of the kind are passed over.
 */
export async function inApps<R>(
  client: MillraceClient,
  { vhost, app }: { readonly vhost?: string; readonly app?: string },
  list: (place: AppPlace) => Promise<readonly R[]>,
): Promise<R[]> {
  if (vhost !== undefined && app !== undefined) return [...(await list({ vhost, app }))];
  return (await forEachOf(await appsOf(client, vhost), (place) => unlessMissing(list(place)))).flat();
}
