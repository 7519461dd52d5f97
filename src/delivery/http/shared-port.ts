/** How listeners open a port that several threads of this process share, and nobody else. */
import { createServer, type ListenOptions, type Server } from 'node:net';
import { getSystemErrorName } from 'node:util';
import { loadAddon } from '../../native/addon.ts';
import { ownFamily } from '../../util/listen-addresses.ts';

/** Where to listen. */
export interface ListenAddress {
  /** IP address; one of IPv6 never takes IPv4 connections. */
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** The descriptor of a socket that listens there already, with connections that wait; it stays its owner's. */
  readonly held?: number;
}

/** Connections that wait for `accept`. */
export const BACKLOG = 4096;

/** The address that a setting means: `*` is all of IPv4. */
export function hostOf({ host }: { readonly host: string }): string {
  return host === '*' ? '0.0.0.0' : host;
}

function listening(server: Server, options: ListenOptions | { readonly fd: number; readonly backlog: number }): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => {
      server.off('error', reject);
      const bound = server.address();
      resolve(typeof bound === 'object' && bound !== null ? bound.port : 0);
    });
  });
}

/** Lets `server` listen beside others of this process on the same port: the kernel spreads connections. Returns the port. */
export async function listenShared(server: Server, { host, port, held }: ListenAddress): Promise<number> {
  if (held !== undefined) return await listening(server, { fd: sharedDescriptor(held), backlog: BACKLOG });
  return await listening(server, { ...ownFamily(host), port, reusePort: true, exclusive: true, backlog: BACKLOG });
}

function sharedDescriptor(held: number): number {
  const shared = loadAddon().addon?.doorShare(held) ?? Number.NaN;
  if (shared >= 0) return shared;
  throw new Error(Number.isNaN(shared) ? 'the addon is gone' : `the open port cannot be shared: ${getSystemErrorName(shared)}`);
}

/**
 * Rejects when anybody listens on the port already. Sharing alone would not tell: another server of the
 * same user could share the port too, and the two would split the viewers.
 */
export async function requireFreePort({ host, port }: ListenAddress): Promise<void> {
  if (port === 0) return;
  const probe = createServer();
  await listening(probe, { ...ownFamily(host), port, exclusive: true });
  await new Promise<void>((resolve) => probe.close(() => resolve()));
}

/** Stops listening and waits until the last connection ended; after `grace` ms `drop` is called and nothing is waited for. */
export async function closeShared(server: Server, grace: number, drop: () => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  const deadline = setTimeout(() => {
    drop();
    // Connections that were given away are their taker's.
    resolve();
  }, grace);
  await promise;
  clearTimeout(deadline);
}
