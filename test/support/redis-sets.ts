/** Sets of real Redis servers: with Sentinels, as a cluster, with TLS. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePorts } from '../harness/ports.ts';
import { RedisServer } from './redis-server.ts';

const SLOTS = 16_384;

/** A set of servers; the test closes it. */
export interface RedisSet {
  /** The URL for `RedisServer/Url`. */
  readonly url: string;
  readonly servers: readonly RedisServer[];
  close(): Promise<void>;
}

function ownFolder(): { readonly folder: string; readonly remove: () => void } {
  const folder = mkdtempSync(path.join(tmpdir(), 'redis-set-'));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** The master among `servers`; undefined while there is none. */
export async function masterOf(servers: readonly RedisServer[]): Promise<RedisServer | undefined> {
  for (const server of servers) {
    const role = await server.ask('ROLE').catch(() => '');
    if (role.includes('\nmaster\n')) return server;
  }
  return undefined;
}

/** A self-signed certificate for 127.0.0.1, which is also its authority, and what a server with TLS gets of it. */
function certificateIn(folder: string): { readonly caPath: string; readonly files: readonly string[] } {
  const key = path.join(folder, 'key.pem');
  const caPath = path.join(folder, 'cert.pem');
  const subject = ['-subj', '/CN=redis.test', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '2'];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', caPath, ...subject], {
    stdio: 'ignore',
  });
  return { caPath, files: ['--tls-cert-file', caPath, '--tls-key-file', key, '--tls-ca-cert-file', caPath, '--tls-auth-clients', 'no'] };
}

/** A master named `shared`, a replica and three Sentinels, which need half a second to declare the master dead. */
export async function startSentinels(password: string): Promise<RedisSet> {
  const { folder, remove } = ownFolder();
  return await sentinelsIn(folder, remove, password, null);
}

/** The same over TLS, also between the servers; `servers[n].port` is without TLS. */
export async function startTlsSentinels(password: string): Promise<RedisSet & { readonly caPath: string }> {
  const { folder, remove } = ownFolder();
  const { caPath, files } = certificateIn(folder);
  return { ...(await sentinelsIn(folder, remove, password, files)), caPath };
}

/** `tls`: options of servers with TLS; null: without. */
async function sentinelsIn(folder: string, remove: () => void, password: string, tls: readonly string[] | null): Promise<RedisSet> {
  const ports = tls === null ? [] : await freePorts(5);
  const secured = (n: number): string[] => (tls === null ? [] : ['--tls-port', `${ports[n]}`, '--tls-replication', 'yes', ...tls]);
  const auth = ['--masterauth', password];
  const master = await RedisServer.start(password, [...auth, ...secured(3)]);
  const seenPort = ports[3] ?? master.port;
  const replica = await RedisServer.start(password, [...auth, '--replicaof', '127.0.0.1', `${seenPort}`, ...secured(4)]);
  const sentinels: RedisServer[] = [];
  for (let index = 0; index < 3; index += 1) {
    const file = path.join(folder, `sentinel-${index}.conf`);
    const lines = [
      `sentinel monitor shared 127.0.0.1 ${seenPort} 2`,
      `sentinel auth-pass shared ${password}`,
      'sentinel down-after-milliseconds shared 500',
      'sentinel failover-timeout shared 3000',
    ];
    writeFileSync(file, `${lines.join('\n')}\n`);
    sentinels.push(await RedisServer.start(null, [file, '--sentinel', ...secured(index)]));
  }
  // A failover needs Sentinels that know of each other and of the replica.
  for (const sentinel of sentinels) {
    for (;;) {
      const text = await sentinel.ask('SENTINEL', 'MASTER', 'shared');
      if (/num-slaves\n\$1\n1\n/.test(text) && /num-other-sentinels\n\$1\n2\n/.test(text)) break;
      await delay(50);
    }
  }
  const servers = [master, replica];
  return {
    url: `redis${tls === null ? '' : 's'}+sentinel://${sentinels.map(({ address }, n) => (tls === null ? address : `127.0.0.1:${ports[n]}`)).join(',')}/shared`,
    servers,
    close: async () => {
      await Promise.all([...sentinels, ...servers].map(async (server) => await server.stop()));
      remove();
    },
  };
}

const MASTERS = 3;

/** Three masters, each with a third of the slots; with `replicated`, each has a replica, which takes over after a second or two. */
export async function startCluster(password: string, replicated = false): Promise<RedisSet> {
  const { folder, remove } = ownFolder();
  const count = replicated ? 2 * MASTERS : MASTERS;
  const ports = await freePorts(2 * count);
  const share = Math.ceil(SLOTS / MASTERS);
  const idOf = (index: number): string => `${index + 1}`.padStart(40, '0');
  /** A node in the file of node `own`: with it the nodes need not be introduced to each other, which takes them many seconds. */
  const lineOf = (index: number, own: number): string => {
    const isMaster = index < MASTERS;
    const flags = `${index === own ? 'myself,' : ''}${isMaster ? 'master -' : `slave ${idOf(index - MASTERS)}`}`;
    const slots = isMaster ? ` ${index * share}-${Math.min(SLOTS, (index + 1) * share) - 1}` : '';
    return `${idOf(index)} 127.0.0.1:${ports[index]}@${ports[index + count]} ${flags} 0 0 ${(index % MASTERS) + 1} connected${slots}\n`;
  };
  const indices = Array.from({ length: count }, (_none, index) => index);
  const servers = await Promise.all(
    indices.map(async (own) => {
      const file = path.join(folder, `${own}.conf`);
      writeFileSync(file, `${indices.map((index) => lineOf(index, own)).join('')}vars currentEpoch ${MASTERS} lastVoteEpoch 0\n`);
      const options = ['--cluster-enabled', 'yes', '--cluster-config-file', file, '--cluster-port', `${ports[own + count]}`];
      const quick = replicated ? ['--cluster-node-timeout', '1000'] : [];
      return await RedisServer.start(password, [...options, ...quick, '--masterauth', password], ports[own]);
    }),
  );
  for (const [index, server] of servers.entries()) {
    while (!(await server.ask('CLUSTER', 'INFO')).includes('cluster_state:ok')) await delay(50);
    while (index >= MASTERS && !(await server.ask('INFO', 'replication')).includes('master_link_status:up')) await delay(50);
  }
  return {
    url: `redis+cluster://${servers.map(({ address }) => address).join(',')}`,
    servers,
    close: async () => {
      await Promise.all(servers.map(async (server) => await server.stop()));
      remove();
    },
  };
}

/** A server with the certificate of `certificateIn`. `servers[0].port` is without TLS. */
export async function startTls(password: string): Promise<RedisSet & { readonly caPath: string }> {
  const { folder, remove } = ownFolder();
  const { caPath, files } = certificateIn(folder);
  const [tlsPort = 0] = await freePorts(1);
  const server = await RedisServer.start(password, ['--tls-port', `${tlsPort}`, ...files]);
  return {
    url: `rediss://127.0.0.1:${tlsPort}/3`,
    caPath,
    servers: [server],
    close: async () => {
      await server.stop();
      remove();
    },
  };
}
