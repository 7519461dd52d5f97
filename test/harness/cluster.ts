/** The cluster of `deploy/cluster/`, started from its own files, with processes on loopback in place of containers. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { load } from 'js-yaml';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { RedisServer } from '../support/redis-server.ts';
import type { RedisSet } from '../support/redis-sets.ts';
import { ApiClient } from './api-client.ts';
import { Child } from './child.ts';
import { COMPILED } from './compiled-code.ts';
import { until } from './poll.ts';
import { freePorts } from './ports.ts';
import { MAIN, ROOT } from './server.ts';

export const CLUSTER = path.join(ROOT, 'deploy/cluster');
const COMPOSE = path.join(CLUSTER, 'compose.yaml');
const OWN_REDIS = path.join(CLUSTER, 'own-redis.yaml');
const READY = /\bready\b/i;
const READY_DEADLINE_MS = 45_000;

/** Secrets that the operator of the cluster must provide. */
export const SECRETS = {
  MILLRACE_REDIS_PASSWORD: 'redis-password-of-tests',
  MILLRACE_OVT_KEY: 'ovt-key-of-the-tests',
  MILLRACE_ACCESS_TOKEN: 'cluster:token',
} as const;

/** A service in the output of `docker-compose config`. */
export interface ComposeService {
  readonly command: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly ports?: readonly { readonly published: number; readonly target: number; readonly protocol?: string }[];
  readonly networks: Readonly<Record<string, { readonly ipv4_address?: string } | null>>;
  readonly stop_grace_period?: string;
  readonly healthcheck?: { readonly test: readonly string[] };
}

export interface ComposeFile {
  readonly services: Readonly<Record<string, ComposeService>>;
}

/** The file as Compose expands it with this environment, or its error; `ownRedis` adds the file for a Redis elsewhere. */
export function composeConfig(
  env: Readonly<Record<string, string>>,
  ownRedis = false,
): { readonly file: ComposeFile | null; readonly error: string } {
  const { PATH, HOME } = process.env;
  const files = ['-f', COMPOSE, ...(ownRedis ? ['-f', OWN_REDIS] : [])];
  const run = spawnSync(requireProgram('docker-compose'), [...files, 'config'], { env: { PATH, HOME, ...env }, encoding: 'utf8' });
  return run.status === 0 ? { file: load(run.stdout) as ComposeFile, error: run.stderr } : { file: null, error: run.stderr };
}

/** The file mounted at `target` in a container. */
export function mountedFile({ volumes = [] }: ComposeService, target: string): string {
  const mount = volumes.map((volume) => volume.split(':')).find(([, inside]) => inside === target);
  if (mount?.[0] === undefined) throw new Error(`nothing is mounted at ${target}`);
  return mount[0];
}

/** Replaces variables as the image of nginx does: only those that the filter names. */
export function fillTemplate(text: string, { NGINX_ENVSUBST_FILTER: filter = '', ...values }: Readonly<Record<string, string>>): string {
  const allowed = new RegExp(filter);
  return text.replaceAll(/\$\{(\w+)\}/g, (whole, name: string) => (allowed.test(name) ? (values[name] ?? whole) : whole));
}

/** Runs nginx with the template of the cluster below `folder`; `test` only checks it. The caller stops the result. */
export function startNginx(folder: string, service: ComposeService, values: Readonly<Record<string, string>>, test = false): Child {
  const run = path.join(folder, 'nginx');
  mkdirSync(run, { recursive: true });
  const template = readFileSync(mountedFile(service, '/etc/nginx/templates/nginx.conf.template'), 'utf8');
  const config = path.join(run, 'nginx.conf');
  writeFileSync(config, fillTemplate(template, { ...service.environment, NGINX_RUN: run, ...values }));
  // As root, nginx would run its workers as a user who cannot write to the folder.
  const directives = `daemon off;${process.getuid?.() === 0 ? ' user root;' : ''}`;
  const own = ['-g', directives, ...(test ? ['-t'] : [])];
  return new Child(requireProgram('nginx'), ['-p', run, '-c', config, '-e', 'stderr', ...own], { name: 'nginx' });
}

/** A Redis that is not of the cluster, with TLS. */
export type OwnRedis = Pick<RedisSet, 'url'> & { readonly caPath: string };

/** One server of the cluster. */
export class ClusterNode {
  readonly name: string;
  readonly ports = { rtmp: 0, srt: 0, ovt: 0, http: 0, api: 0, metrics: 0 };
  readonly #service: ComposeService;
  readonly #state: string;
  /** Variables in place of those of the file. */
  readonly #redis: Readonly<Record<string, string>>;
  #child: Child | null = null;

  constructor(name: string, service: ComposeService, folder: string, redis: Readonly<Record<string, string>>) {
    this.name = name;
    this.#service = service;
    this.#state = path.join(folder, name);
    this.#redis = redis;
    mkdirSync(this.#state);
  }

  get child(): Child {
    if (this.#child === null) throw new Error(`${this.name} was not started`);
    return this.#child;
  }

  get api(): ApiClient {
    return new ApiClient(`http://127.0.0.1:${this.ports.api}`, SECRETS.MILLRACE_ACCESS_TOKEN);
  }

  /** Starts it, or restarts it after its end. Resolves when it is ready. */
  async start(): Promise<void> {
    const { ports } = this;
    if (ports.http === 0) {
      const [rtmp = 0, srt = 0, ovt = 0, http = 0, api = 0, metrics = 0] = await freePorts(6);
      Object.assign(ports, { rtmp, srt, ovt, http, api, metrics });
    }
    this.#child = this.#run(this.#service.command);
    await this.#child.printed(READY, READY_DEADLINE_MS);
  }

  /** Runs the server's program, as in its container. */
  async exec(args: readonly string[]): Promise<string> {
    const child = this.#run(args);
    await child.exited;
    return child.output;
  }

  /** The status of `/health`; 0 without a response. */
  async health(): Promise<number> {
    return await fetch(`http://127.0.0.1:${this.ports.api}/health`).then(
      ({ status }) => status,
      () => 0,
    );
  }

  /** The page for Prometheus. */
  async metrics(): Promise<string> {
    return await (await fetch(`http://127.0.0.1:${this.ports.metrics}/metrics`)).text();
  }

  async close(): Promise<void> {
    await this.#child?.kill();
  }

  #run(args: readonly string[]): Child {
    const { ports } = this;
    const replaced: Readonly<Record<string, string>> = {
      '/etc/millrace/Server.xml': mountedFile(this.#service, '/etc/millrace/Server.xml'),
      '/var/lib/millrace': this.#state,
    };
    const words = args.map((word) => replaced[word] ?? word);
    // Hosts and ports in place of the containers' network.
    const place = {
      MILLRACE_ADDRESS: '127.0.0.1',
      ...this.#redis,
      ...(this.#service.environment?.['MILLRACE_ORIGIN_HOST'] !== undefined && { MILLRACE_ORIGIN_HOST: '127.0.0.1' }),
      OME_RTMP_PROV_PORT: `${ports.rtmp}`,
      OME_SRT_PROV_PORT: `${ports.srt}`,
      OME_ORIGIN_PORT: `${ports.ovt}`,
      OME_LLHLS_STREAM_PORT: `${ports.http}`,
      OME_API_PORT: `${ports.api}`,
      MILLRACE_METRICS_PORT: `${ports.metrics}`,
    };
    const env = { ...process.env, ...COMPILED, ...this.#service.environment, ...place };
    return new Child(process.execPath, [MAIN, ...words], { cwd: this.#state, env, name: this.name });
  }
}

/** Redis, an origin, two edges and nginx; `close` ends them all and removes their files. */
export class Cluster {
  readonly origin: ClusterNode;
  readonly edges: readonly [ClusterNode, ClusterNode];
  readonly #folder: string;
  readonly #redis: RedisServer | null;
  readonly #file: ComposeFile;
  #nginx: Child | null = null;
  #port = 0;

  private constructor(file: ComposeFile, folder: string, redis: RedisServer | OwnRedis) {
    const place: Record<string, string> =
      redis instanceof RedisServer ? { MILLRACE_REDIS_URL: `redis://${redis.address}` } : { MILLRACE_REDIS_CA: redis.caPath };
    const node = (name: string): ClusterNode => new ClusterNode(name, serviceOf(file, name), folder, place);
    this.#file = file;
    this.#folder = folder;
    this.#redis = redis instanceof RedisServer ? redis : null;
    this.origin = node('origin');
    this.edges = [node('edge1'), node('edge2')];
  }

  /** `own`: with this Redis, whose password is that of `SECRETS`, in place of one of its own. The caller closes it. */
  static async start(own: OwnRedis | null = null): Promise<Cluster> {
    const variables = own === null ? {} : { MILLRACE_REDIS_URL: own.url, MILLRACE_REDIS_CA: '/etc/millrace/certificates/ca.pem' };
    const { file, error } = composeConfig({ ...SECRETS, ...variables }, own !== null);
    if (file === null) throw new Error(error);
    const password = serviceOf(file, 'redis').command.at(-1) ?? null;
    const cluster = new Cluster(file, mkdtempSync(path.join(tmpdir(), 'millrace-cluster-')), own ?? (await RedisServer.start(password)));
    try {
      await Promise.all([cluster.origin, ...cluster.edges].map(async (node) => await node.start()));
      await cluster.#startNginx();
      return cluster;
    } catch (problem) {
      await cluster.close();
      throw problem;
    }
  }

  /** URL of a file of a stream, at nginx. */
  url(stream: string, file: string): string {
    return `http://127.0.0.1:${this.#port}/app/${stream}/${file}`;
  }

  rtmp(stream: string): string {
    return `rtmp://127.0.0.1:${this.origin.ports.rtmp}/app/${stream}`;
  }

  /** Output of nginx. */
  get nginxLog(): string {
    return this.#nginx?.output ?? '';
  }

  async close(): Promise<void> {
    await this.#nginx?.stop();
    await Promise.all([this.origin, ...this.edges].map(async (node) => await node.close()));
    await this.#redis?.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #startNginx(): Promise<void> {
    const [port = 0] = await freePorts(1);
    const [EDGE1 = '', EDGE2 = ''] = this.edges.map(({ ports }) => `127.0.0.1:${ports.http}`);
    this.#port = port;
    const nginx = startNginx(this.#folder, serviceOf(this.#file, 'nginx'), { EDGE1, EDGE2, NGINX_PORT: `127.0.0.1:${port}` });
    this.#nginx = nginx;
    await until(
      'nginx to answer',
      async () => {
        if (nginx.exit !== null) throw new NginxEnded(nginx.output);
        return (await fetch(`http://127.0.0.1:${port}/health`)).status === 204;
      },
      { giveUp: (error) => error instanceof NginxEnded },
    );
  }
}

class NginxEnded extends Error {}

function serviceOf(file: ComposeFile, name: string): ComposeService {
  const service = file.services[name];
  if (service === undefined) throw new Error(`there is no service ${name} in ${COMPOSE}`);
  return service;
}
