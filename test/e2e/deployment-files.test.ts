/** The cluster files in `deploy/`, checked by their programs, and compared with the server's settings and ports. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findProgram } from '../../scripts/ensure-tools.ts';
import { type LoadedServer, parseServerConfig } from '../../src/config/index.ts';
import { CLUSTER, type ComposeFile, type ComposeService, composeConfig, mountedFile, SECRETS, startNginx } from '../harness/cluster.ts';

const CONFIG = '/etc/millrace/Server.xml';
const STATE = '/var/lib/millrace';
const folder = mkdtempSync(path.join(tmpdir(), 'millrace-deployment-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Environment variables used in a configuration. */
function variables(xml: string): string[] {
  return [...xml.matchAll(/\$\{env:(\w+)/g)].map(([, name = '']) => name);
}

/** The configuration as a server reads it in this environment. */
function read(file: string, env: Readonly<Record<string, string>>): LoadedServer {
  return parseServerConfig(readFileSync(file, 'utf8'), file, { macros: { env, home: '/opt/millrace', currentPath: STATE } });
}

const milliseconds = (duration = '10s'): number => Number(/^(\d+)s$/.exec(duration)?.[1]) * 1000;

describe.skipIf(findProgram('docker-compose') === null)('the compose file of the cluster', () => {
  let file: ComposeFile;
  const service = (name: string): ComposeService => file.services[name] as ComposeService;
  beforeAll(() => {
    const composed = composeConfig(SECRETS);
    if (composed.file === null) throw new Error(composed.error);
    file = composed.file;
    expect(composed.error).toBe('');
  });

  test('has an origin, two edges, Redis and nginx', () => {
    expect(Object.keys(file.services).sort()).toEqual(['edge1', 'edge2', 'nginx', 'origin', 'redis']);
  });

  test('is refused without a password of Redis or a key of OVT', () => {
    for (const name of ['MILLRACE_REDIS_PASSWORD', 'MILLRACE_OVT_KEY']) {
      const { file: composed, error } = composeConfig({ ...SECRETS, [name]: '' });
      expect([composed, error]).toEqual([null, expect.stringContaining('a long random text')]);
    }
  });

  test.each(['origin', 'edge1', 'edge2'])('gives %s the variables and folders of its configuration, and no unknown variables', (name) => {
    const { command, environment = {}, stop_grace_period: grace, volumes = [] } = service(name);
    const xml = mountedFile(service(name), CONFIG);
    const { config, warnings } = read(xml, environment);
    expect(warnings).toEqual([]);
    expect(Object.keys(environment).filter((variable) => !variables(readFileSync(xml, 'utf8')).includes(variable))).toEqual([]);
    expect(command).toEqual(['serve', '--config', CONFIG, '--state', STATE, '--log-format', 'json']);
    expect(volumes.some((volume) => volume.split(':').includes(STATE))).toBe(true);
    expect(milliseconds(grace) - config.drain.gracePeriod).toBeGreaterThanOrEqual(5000);
    // The address used by the image's health check.
    expect(config.bind.managers.api).toMatchObject({ port: 8081, ip: ['127.0.0.1'] });
  });

  test('publishes the ports of the origin for encoders, and no ports of the edges', () => {
    const { config } = read(mountedFile(service('origin'), CONFIG), service('origin').environment ?? {});
    const { rtmp, srt } = config.bind.providers;
    const ports = service('origin').ports?.map(({ published, target, protocol = 'tcp' }) => [published, target, protocol]);
    const [ingest = 0, udp = 0] = [rtmp?.port, srt?.port?.ranges[0]?.first];
    expect(ports).toEqual([
      [ingest, ingest, 'tcp'],
      [udp, udp, 'udp'],
    ]);
    for (const name of ['edge1', 'edge2', 'redis'])
      expect([service(name).ports, Object.keys(service(name).networks)]).toEqual([undefined, ['cluster']]);
  });

  test('lets edges find streams and authenticate with the key', () => {
    const [origin, edge] = ['origin', 'edge1'].map((name) => read(mountedFile(service(name), CONFIG), service(name).environment ?? {}));
    const store = ({ virtualHosts = [] }: Partial<LoadedServer> = {}) => virtualHosts[0]?.typed.originMapStore;
    expect(store(origin)?.redisServer).toEqual(store(edge)?.redisServer);
    expect(store(edge)?.redisServer).toMatchObject({ url: 'redis://redis:6379', auth: SECRETS.MILLRACE_REDIS_PASSWORD });
    expect(service('redis').command.at(-1)).toBe(SECRETS.MILLRACE_REDIS_PASSWORD);
    expect([store(origin)?.originHostName, store(edge)?.originHostName]).toEqual(['origin', undefined]);
    const key = SECRETS.MILLRACE_OVT_KEY;
    expect([origin?.config.bind.publishers.ovt?.secretKey, edge?.config.bind.providers.ovt?.secretKey]).toEqual([key, key]);
  });

  test('lets several origins share work, and drains the origin, only on request', () => {
    const asked = composeConfig({
      ...SECRETS,
      MILLRACE_SHARED_WORK: 'true',
      MILLRACE_SHARE_DEFINITIONS: 'true',
      MILLRACE_ORIGIN_DRAIN_MS: '60000',
    });
    const [quiet, sharing] = [file, asked.file].map((composed) => {
      const { origin } = composed?.services ?? {};
      const { config, virtualHosts } = read(mountedFile(origin as ComposeService, CONFIG), origin?.environment ?? {});
      const { sharedWork } = virtualHosts[0]?.typed.originMapStore ?? {};
      expect(milliseconds(origin?.stop_grace_period) - config.drain.gracePeriod).toBeGreaterThanOrEqual(5000);
      return [sharedWork?.enable, sharedWork?.shareDefinitions, sharedWork?.leaseTime, config.drain.gracePeriod];
    });
    expect([quiet, sharing]).toEqual([
      [false, false, 10_000, 0],
      [true, true, 10_000, 60_000],
    ]);
  });

  describe('with a Redis elsewhere', () => {
    const url = 'rediss+sentinel://10.0.0.1:26379,10.0.0.2:26379/shared';

    test('is refused without its URL', () => {
      expect(composeConfig(SECRETS, true)).toEqual({ file: null, error: expect.stringContaining('MILLRACE_REDIS_URL') });
    });

    test('gives every node its URL, names, passwords and authority, and a way to it', () => {
      const given = {
        MILLRACE_REDIS_URL: url,
        MILLRACE_REDIS_USERNAME: 'node',
        MILLRACE_SENTINEL_USERNAME: 'watcher',
        MILLRACE_SENTINEL_PASSWORD: 'of-sentinels',
        MILLRACE_REDIS_CA: '/etc/millrace/certificates/ca.pem',
      };
      const { file: composed, error } = composeConfig({ ...SECRETS, ...given }, true);
      expect(error).toBe('');
      for (const name of ['origin', 'edge1', 'edge2']) {
        const node = composed?.services[name] as ComposeService;
        const { environment = {} } = node;
        const xml = mountedFile(node, CONFIG);
        expect(Object.keys(environment).filter((variable) => !variables(readFileSync(xml, 'utf8')).includes(variable))).toEqual([]);
        const { virtualHosts, warnings } = read(xml, environment);
        expect(warnings).toEqual([]);
        expect(virtualHosts[0]?.typed.originMapStore?.redisServer).toEqual({
          url,
          username: 'node',
          auth: SECRETS.MILLRACE_REDIS_PASSWORD,
          sentinelUsername: 'watcher',
          sentinelAuth: 'of-sentinels',
          caPath: '/etc/millrace/certificates/ca.pem',
        });
        expect(mountedFile(node, '/etc/millrace/certificates')).toBe(path.join(CLUSTER, 'certificates'));
        expect(Object.keys(node.networks).sort()).toEqual(['cluster', 'outside']);
        expect(node.ports).toEqual(service(name).ports);
      }
    });
  });

  test('names the edges to nginx, and its rendered template is valid', async () => {
    const { environment = {}, ports } = service('nginx');
    for (const [index, name] of ['edge1', 'edge2'].entries()) {
      const { config } = read(mountedFile(service(name), CONFIG), service(name).environment ?? {});
      expect(environment[`EDGE${index + 1}`]).toBe(
        `${service(name).networks['cluster']?.ipv4_address}:${config.bind.publishers.llhls?.port}`,
      );
      // Otherwise all viewers would have nginx's address.
      expect(config.trustedProxies.address).toContain('172.16.0.0/12');
    }
    expect(ports).toMatchObject([{ published: 8080, target: Number(environment['NGINX_PORT']) }]);
    const nginx = startNginx(folder, service('nginx'), {}, true);
    expect(await nginx.exited, nginx.output).toEqual({ code: 0, signal: null });
    expect(nginx.output).not.toMatch(/\[(?:warn|error|emerg)\]/);
    const written = readFileSync(path.join(folder, 'nginx/nginx.conf'), 'utf8');
    expect(written).not.toMatch(/\$\{/);
    expect(written).not.toMatch(/proxy_cache|proxy_store/);
    expect(path.relative(CLUSTER, mountedFile(service('nginx'), '/etc/nginx/templates/nginx.conf.template'))).toBe('nginx.conf.template');
  });
});
