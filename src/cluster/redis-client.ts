/** The client of Redis, for one server, a Sentinel set or a cluster. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Cluster, Redis } from 'ioredis';
import type { RedisServerConfig } from '../config/index.ts';
import { type RedisPlace, redisNode, redisPlace } from '../util/redis-url.ts';

/** Sixty modules, for the few who have such a server. */
const loadClient = (): typeof import('ioredis') => createRequire(import.meta.url)('ioredis');

/** A command that is not answered in this time fails, and the connection is made anew. */
export const ANSWER_MS = 1000;
const CONNECT_MS = 2000;
/** Members of a cluster may send a command on to each other; each has `ANSWER_MS`. */
const MAX_REDIRECTIONS = 4;
const AGAIN_MS = 100;
/** A member that was added to a cluster, or is its new master, is known after this long. */
const SLOTS_MS = 5000;

/** How to reach Redis, read from the configuration. */
export interface RedisTarget {
  readonly place: RedisPlace;
  /** For people; without secrets. */
  readonly text: string;
  /** Sent with AUTH; null: none is. */
  readonly password: string | null;
  readonly username: string | null;
  readonly sentinelPassword: string | null;
  readonly sentinelUsername: string | null;
  /** A file; null: what the system trusts. */
  readonly caPath: string | null;
}

/** The configured servers. They were checked when the configuration was read. */
export function redisTarget(config: RedisServerConfig): RedisTarget {
  const { host = '', url } = config;
  const node = redisNode(host) ?? { host: '', port: 0 };
  const single: RedisPlace = { kind: 'server', tls: false, nodes: [node], master: '', database: 0 };
  const given = (text: string | undefined): string | null => (text === undefined || text === '' ? null : text);
  return {
    place: url === undefined ? single : redisPlace(url),
    text: url ?? host,
    password: given(config.auth),
    username: given(config.username),
    sentinelPassword: given(config.sentinelAuth),
    sentinelUsername: given(config.sentinelUsername),
    caPath: given(config.caPath),
  };
}

/** The common interface of both clients. */
export type RedisClient = Redis | Cluster;

/**
 * Connects and tries again by itself, after `pause` ms each time. Commands fail at once while there is no connection, and none is sent
 * twice. A single server and a master of Sentinels are not given the password: `greet` does that. Without the certificates of `caPath`
 * no server is trusted.
 */
export function openClient({ place, ...target }: RedisTarget, pause: () => number): RedisClient {
  const { kind, tls: hasTls, nodes, master } = place;
  const client = loadClient();
  const tls = hasTls ? { tls: target.caPath === null ? {} : { ca: certificates(target.caPath) } } : {};
  const common = {
    protocol: 2,
    disableClientInfo: true,
    enableReadyCheck: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_MS,
    commandTimeout: ANSWER_MS,
    ...tls,
  } as const;
  if (kind === 'cluster') {
    return new client.Cluster([...nodes], {
      clusterRetryStrategy: pause,
      enableOfflineQueue: false,
      enableReadyCheck: true,
      maxRedirections: MAX_REDIRECTIONS,
      retryDelayOnFailover: AGAIN_MS,
      retryDelayOnClusterDown: AGAIN_MS,
      slotsRefreshTimeout: ANSWER_MS,
      slotsRefreshInterval: SLOTS_MS,
      // A certificate may name hosts; ioredis would look them up and connect to addresses.
      dnsLookup: (address, callback) => callback(null, address),
      redisOptions: {
        ...common,
        ...(target.password !== null && { password: target.password }),
        ...(target.username !== null && { username: target.username }),
      },
    });
  }
  const single = { ...common, enableOfflineQueue: false, retryStrategy: pause };
  const [node] = nodes;
  if (kind === 'server') return new client.Redis({ ...node, ...single });
  return new client.Redis({
    ...single,
    sentinels: [...nodes],
    name: master,
    role: 'master',
    // The first time it may only have come to the end of its list.
    sentinelRetryStrategy: (times) => (times === 1 ? AGAIN_MS : pause()),
    sentinelCommandTimeout: ANSWER_MS,
    failoverDetector: true,
    ...(target.sentinelPassword !== null && { sentinelPassword: target.sentinelPassword }),
    ...(target.sentinelUsername !== null && { sentinelUsername: target.sentinelUsername }),
    ...('tls' in tls && { sentinelTLS: tls.tls, enableTLSForSentinelMode: true }),
  });
}

/** What cannot be read is told where the configuration is judged. */
function certificates(path: string): Buffer[] {
  try {
    return [readFileSync(path)];
  } catch {
    return [];
  }
}

/** Says who we are on a new connection, and learns whether it can be used. Rejects when it cannot. */
export async function greet(redis: RedisClient, { place, password, username }: RedisTarget): Promise<void> {
  if ('nodes' in redis) {
    if ((await redis.ping()) !== 'PONG') throw new Error('that is no Redis server');
    return;
  }
  if (password !== null) await (username === null ? redis.auth(password) : redis.auth(username, password));
  if (place.database !== 0) await redis.select(place.database);
  if ((await redis.ping()) !== 'PONG') throw new Error('that is no Redis server');
  // Sentinels may still name the one that has just ceased to be the master.
  const mayLag = place.kind === 'sentinel';
  if (mayLag && String((await redis.role())[0]) !== 'master') throw new Error('the server that the Sentinels name is no master');
}

/** The server is no master any more, or its part of the cluster has nobody: another connection may do better. */
export function isMisplaced(error: unknown): boolean {
  return error instanceof Error && /^(READONLY|MASTERDOWN|LOADING)\b/.test(error.message);
}

/** It was not answered in time. */
export function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.message === 'Command timed out';
}

/** Why no Sentinel can be asked, told while the client goes on trying; null: the error says something else. */
export function sentinelFault(error: Error): string | null {
  const [, reason] = /^All sentinels are unreachable\..* Last error: (.*)$/s.exec(error.message) ?? [];
  return reason === undefined ? null : `no Sentinel answers: ${reason}`;
}

/** A host of several addresses fails with an error without words; a cluster keeps the one that tells something inside. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, lastNodeError } = error as NodeJS.ErrnoException & { readonly lastNodeError?: unknown };
  if (lastNodeError !== undefined && lastNodeError !== null) return reasonOf(lastNodeError);
  return error.message || code || error.name;
}
