/** The origin map of a virtual host, and the Redis that keeps it. */
import type { Static } from '@sinclair/typebox';
import { messageOf } from '../../util/message-of.ts';
import { redisPlace } from '../../util/redis-url.ts';
import { boolean, finishing, integer, object, optional, path, text } from './field.ts';

const MAX_PORT = 65_535;

interface RedisFinish {
  readonly host?: string;
  readonly url?: string;
  readonly auth?: string;
  readonly username?: string;
  readonly caPath?: string;
  readonly sentinelAuth?: string;
  readonly sentinelUsername?: string;
}

const RedisServerSchema = object(
  'The Redis server, a Sentinel set or a cluster',
  {
    host: optional(text('`host:port` of a single server; for anything else see `Url`')),
    url: optional(
      text(
        'Instead of `Host`: `redis://host:port/database`, `redis+sentinel://host:port,host:port/master/database` or `redis+cluster://host:port,host:port`; `rediss` with TLS',
      ),
    ),
    username: optional(text('User of Redis 6 and later; needs `Auth`')),
    auth: optional(text('Password')),
    sentinelUsername: optional(text('User of the Sentinels; needs `SentinelAuth`')),
    sentinelAuth: optional(text('Password of the Sentinels')),
    caPath: optional(path('CA certificates (PEM) that verify the Redis server; default: the CA certificates of Node.js')),
  },
  { finish: finishing<RedisFinish>(judgeRedisServer) },
);

/** Checks the members against each other. */
function judgeRedisServer(value: RedisFinish, fail: (message: string, key?: string) => void): void {
  const { host, url, auth = '', username = '', caPath = '', sentinelAuth = '', sentinelUsername = '' } = value;
  if (host === undefined && url === undefined) fail('originMapStore.redisServer needs host or url', 'host');
  if (host !== undefined && url !== undefined) fail('originMapStore.redisServer takes host or url, not both', 'url');
  if (host !== undefined) {
    const port = Number(/^.+:(\d{1,5})$/.exec(host)?.[1] ?? 0);
    if (port < 1 || port > MAX_PORT) fail(`Invalid host format ${host} > it must be host:port`, 'host');
  }
  if (username !== '' && auth === '') fail('originMapStore.redisServer.username needs auth', 'username');
  if (sentinelUsername !== '' && sentinelAuth === '')
    fail('originMapStore.redisServer.sentinelUsername needs sentinelAuth', 'sentinelUsername');
  const place = url === undefined ? null : placeOf(url, fail);
  if (url !== undefined && place === null) return;
  if (caPath !== '' && place?.tls !== true) fail('originMapStore.redisServer.caPath needs a url that begins with rediss', 'caPath');
  const key = sentinelAuth === '' ? 'sentinelUsername' : 'sentinelAuth';
  if (sentinelAuth + sentinelUsername !== '' && place?.kind !== 'sentinel') {
    fail(`originMapStore.redisServer.${key} needs a url that begins with redis+sentinel or rediss+sentinel`, key);
  }
}

function placeOf(url: string, fail: (message: string, key?: string) => void): ReturnType<typeof redisPlace> | null {
  try {
    return redisPlace(url);
  } catch (error) {
    fail(`originMapStore.redisServer.url ${messageOf(error)}`, 'url');
    return null;
  }
}

const GROUP = /^[\w.-]{1,64}$/;

const SharedWorkSchema = object(
  'Several nodes have the same persistent pulls, channels and pushes of this virtual host; one node carries out each of them. An extension of Millrace',
  {
    enable: boolean('Turns it on', { default: true }),
    group: text('Name of the group of nodes that share the work; letters, digits, `.`, `_` and `-`', { default: 'default' }),
    leaseTime: integer('Time after which another node takes over the work of a dead node, ms', {
      default: 10_000,
      minimum: 3000,
      maximum: 600_000,
    }),
    keepWithoutRedis: boolean(
      'A node continues its work while Redis is away, although another node may have taken it over. If false, the work stops when its lease ends',
      { default: false },
    ),
    shareDefinitions: boolean(
      'Persistent pulls, channels and pushes that the API of a node defines are known to all nodes of the group, through Redis, where their URLs and stream keys can be read',
      { default: false },
    ),
  },
  {
    finish: finishing<{ readonly group: string }>(({ group }, fail) => {
      if (!GROUP.test(group)) fail('originMapStore.sharedWork.group must be 1 to 64 letters, digits, ., _ or -', 'group');
    }),
  },
);

/** `<OriginMapStore>` of a virtual host. */
export const OriginMapStoreSchema = object('Shares the addresses of streams between origins and edges', {
  originHostName: optional(text('Host name that this origin registers for its streams; only for origins', { form: 'host-name' })),
  redisServer: RedisServerSchema,
  sharedWork: optional(SharedWorkSchema),
});
/** The typed form of `<OriginMapStore>`; without `originHostName` this server reads the map and registers nothing. */
export type OriginMapStoreConfig = Static<typeof OriginMapStoreSchema>;
/** The typed form of `<RedisServer>`: it has a host or a URL that can be read. */
export type RedisServerConfig = OriginMapStoreConfig['redisServer'];
