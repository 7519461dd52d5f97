/** Listening ports that several threads of this process share, but no other process. */
import { createServer, type ListenOptions, type Server } from 'node:net';
import { getSystemErrorName } from 'node:util';
import { loadAddon } from '../../native/addon.ts';
import { ownFamily } from '../../util/listen-addresses.ts';

/** An address to listen on. */
export interface ListenAddress {
  /** IP address; an IPv6 address never accepts IPv4 connections. */
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** The descriptor of a socket that already listens there, with waiting connections; its owner keeps it. */
  readonly held?: number;
}

/** Connections that wait for `accept`. */
export const MAX_BACKLOG = 4096;

/** The address of a setting: `*` means all IPv4 addresses. */
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

/** Lets `server` share its port with other servers of this process: the kernel spreads connections. Returns the port. */
export async function listenShared(server: Server, { host, port, held }: ListenAddress): Promise<number> {
  if (held !== undefined) return await listening(server, { fd: sharedDescriptor(held), backlog: MAX_BACKLOG });
  return await listening(server, { ...ownFamily(host), port, reusePort: true, exclusive: true, backlog: MAX_BACKLOG });
}

function sharedDescriptor(held: number): number {
  const shared = loadAddon().addon?.doorShare(held) ?? Number.NaN;
  if (shared >= 0) return shared;
  throw new Error(Number.isNaN(shared) ? 'the addon is gone' : `the open port cannot be shared: ${getSystemErrorName(shared)}`);
}

/**
 * Rejects if any socket already listens on the port. A shared listen would not fail: another server of the
 * same user could share the port, and both would get a part of the viewers.
 */
export async function requireFreePort({ host, port }: ListenAddress): Promise<void> {
  if (port === 0) return;
  const probe = createServer();
  await listening(probe, { ...ownFamily(host), port, exclusive: true });
  await new Promise<void>((resolve) => probe.close(() => resolve()));
}

/** Stops listening and waits for the end of the last connection; after `grace` ms calls `drop` and resolves. */
export async function closeShared(server: Server, grace: number, drop: () => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  const deadline = setTimeout(() => {
    drop();
    // Connections that were given away belong to their takers.
    resolve();
  }, grace);
  await promise;
  clearTimeout(deadline);
}
