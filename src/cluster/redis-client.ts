/** The Redis client, for one server, a Sentinel set or a cluster. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Cluster, Redis } from 'ioredis';
import type { RedisServerConfig } from '../config/index.ts';
import { type RedisPlace, redisNode, redisPlace } from '../util/redis-url.ts';

/** Loaded on demand: sixty modules that few installations need. */
const loadClient = (): typeof import('ioredis') => createRequire(import.meta.url)('ioredis');

/** A command without an answer in this time fails, and the client reconnects. */
export const ANSWER_MS = 1000;
const CONNECT_MS = 2000;
/** Members of a cluster may redirect a command; each hop has `ANSWER_MS`. */
const MAX_REDIRECTIONS = 4;
const AGAIN_MS = 100;
/** New members and new masters of a cluster are known after this time. */
const SLOTS_MS = 5000;

/** How to reach Redis, read from the configuration. */
export interface RedisTarget {
  readonly place: RedisPlace;
  /** The servers as text for logs, without secrets. */
  readonly text: string;
  /** Sent with AUTH; null: no AUTH. */
  readonly password: string | null;
  readonly username: string | null;
  readonly sentinelPassword: string | null;
  readonly sentinelUsername: string | null;
  /** A file; null: the certificates of Node.js. */
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
 * Connects, and retries after `pause` ms each time. Commands fail at once without a connection, and are never sent
 * twice. A single server and a master of Sentinels get the password from `greet`, not from the client. Without the certificates of `caPath`
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
      // The certificate may contain host names; ioredis would look them up and connect to addresses.
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
    // The first call may only mean that its list is exhausted.
    sentinelRetryStrategy: (times) => (times === 1 ? AGAIN_MS : pause()),
    sentinelCommandTimeout: ANSWER_MS,
    failoverDetector: true,
    ...(target.sentinelPassword !== null && { sentinelPassword: target.sentinelPassword }),
    ...(target.sentinelUsername !== null && { sentinelUsername: target.sentinelUsername }),
    ...('tls' in tls && { sentinelTLS: tls.tls, enableTLSForSentinelMode: true }),
  });
}

/** Unreadable files are reported by the check of the configuration. */
function certificates(path: string): Buffer[] {
  try {
    return [readFileSync(path)];
  } catch {
    return [];
  }
}

/** Authenticates on a new connection and checks whether it can be used. Rejects if not. */
export async function greet(redis: RedisClient, { place, password, username }: RedisTarget): Promise<void> {
  if ('nodes' in redis) {
    if ((await redis.ping()) !== 'PONG') throw new Error('that is no Redis server');
    return;
  }
  if (password !== null) await (username === null ? redis.auth(password) : redis.auth(username, password));
  if (place.database !== 0) await redis.select(place.database);
  if ((await redis.ping()) !== 'PONG') throw new Error('that is no Redis server');
  // Sentinels may still name the previous master.
  const mayLag = place.kind === 'sentinel';
  if (mayLag && String((await redis.role())[0]) !== 'master') throw new Error('the server that the Sentinels name is no master');
}

/** The server is no longer a master, or its slots have no master: another connection may work. */
export function isMisplaced(error: unknown): boolean {
  return error instanceof Error && /^(READONLY|MASTERDOWN|LOADING)\b/.test(error.message);
}

/** The answer did not arrive in time. */
export function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.message === 'Command timed out';
}

/** Why no Sentinel can be asked, while the client keeps trying; null: the error is about something else. */
export function sentinelFault(error: Error): string | null {
  const [, reason] = /^All sentinels are unreachable\..* Last error: (.*)$/s.exec(error.message) ?? [];
  return reason === undefined ? null : `no Sentinel answers: ${reason}`;
}

/** A host with several addresses fails with an error without a text; a cluster has the informative error inside. */
export function redisErrorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, lastNodeError } = error as NodeJS.ErrnoException & { readonly lastNodeError?: unknown };
  if (lastNodeError !== undefined && lastNodeError !== null) return redisErrorText(lastNodeError);
  return error.message || code || error.name;
}
