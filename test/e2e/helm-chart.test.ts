/**
 * The chart in `deploy/helm/`: linted and rendered by Helm, checked with the types of Kubernetes, and compared with the server's settings
 * and ports.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { load } from 'js-yaml';
import type { Deployment, StatefulSet } from 'kubernetes-types/apps/v1.js';
import type { HorizontalPodAutoscaler } from 'kubernetes-types/autoscaling/v2.js';
import type { ConfigMap, Container, Probe, Secret, Service } from 'kubernetes-types/core/v1.js';
import type { Ingress } from 'kubernetes-types/networking/v1.js';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LoadedServer, parseServerConfig } from '../../src/config/index.ts';
import { CLUSTER } from '../harness/cluster.ts';
import { CAN_RUN_HELM, CHART, Helm, type Manifest } from '../harness/helm.ts';
import { ROOT } from '../harness/server.ts';

/** All options switched on. */
const ALL = [
  'metrics.serviceMonitor.enabled=true',
  'metrics.serviceMonitor.labels.release=prometheus',
  'ingress.enabled=true',
  'ingress.host=media.example.com',
  'ingress.className=nginx',
  'ingress.tls.secretName=certificate',
  'ingress.annotations.example\\.com/read-timeout=30s',
  'image.pullSecrets[0].name=registry',
  'origin.storage.className=fast',
  'origin.nodeSelector.disk=ssd',
  'edge.podAnnotations.team=media',
  'edge.tolerations[0].key=edge',
  'edge.tolerations[0].operator=Exists',
];
const REDIS_URL = 'rediss+sentinel://10.0.0.1:26379,10.0.0.2:26379/shared';
const OWN_REDIS = [
  'redis.enabled=false',
  `redis.url=${REDIS_URL.replace(',', '\\,')}`,
  'redis.username=node',
  'redis.sentinelUsername=watcher',
  'redis.caSecret.name=redis-certificate',
  'secret.sentinelPassword=of-sentinels',
];
const PASSWORD = 'the-password-of-redis';
const KEY = 'the-key-of-the-cluster';

function find<Kind extends Manifest>(manifests: readonly Manifest[], kind: Kind['kind'], name: string): Kind {
  const found = manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name);
  if (found === undefined) throw new Error(`there is no ${kind} ${name}`);
  return found as Kind;
}

const isRedisUrl = ({ name }: { readonly name: string }): boolean => name === 'MILLRACE_REDIS_URL';

/** A type of Kubernetes with the members that every object has here. */
type Rendered<T> = T & Manifest;

test('the chart has the configurations of the cluster', () => {
  for (const file of ['origin.xml', 'edge.xml']) {
    expect(readFileSync(path.join(CHART, 'files', file), 'utf8')).toBe(readFileSync(path.join(CLUSTER, file), 'utf8'));
  }
});

describe.skipIf(!CAN_RUN_HELM)('the manifests that Helm renders (its program is for Linux on x86-64)', () => {
  let helm: Helm;
  let manifests: readonly Manifest[];
  beforeAll(() => {
    helm = new Helm();
    manifests = helm.template(`secret.redisPassword=${PASSWORD}`, `secret.ovtKey=${KEY}`);
  });
  afterAll(() => helm?.close());

  const origin = (): Rendered<StatefulSet> => find(manifests, 'StatefulSet', 'show-millrace-origin');
  const edge = (): Rendered<Deployment> => find(manifests, 'Deployment', 'show-millrace-edge');
  const containerOf = ({ spec }: StatefulSet | Deployment): Container => spec?.template.spec?.containers[0] as Container;

  /** The environment of a workload's pods. */
  function environment(workload: StatefulSet | Deployment, from = manifests): Record<string, string> {
    const secret = find<Rendered<Secret>>(from, 'Secret', 'show-millrace');
    const values: Record<string, string> = { POD_NAME: 'show-millrace-0' };
    for (const { name, value, valueFrom } of containerOf(workload).env ?? []) {
      const kept = secret.data?.[valueFrom?.secretKeyRef?.key ?? ''];
      if (valueFrom?.secretKeyRef?.optional === true && kept === undefined) continue;
      if (valueFrom?.secretKeyRef !== undefined) expect([valueFrom.secretKeyRef.name, kept]).toEqual(['show-millrace', expect.any(String)]);
      const given = value ?? (kept === undefined ? 'show-millrace-0' : Buffer.from(kept, 'base64').toString());
      values[name] = given.replaceAll(/\$\((\w+)\)/g, (_, other: string) => values[other] ?? '');
    }
    return values;
  }

  /** The configuration as the pods of a workload read it. */
  function configuration(name: string, workload: StatefulSet | Deployment): LoadedServer {
    const { data } = find<Rendered<ConfigMap>>(manifests, 'ConfigMap', name);
    const macros = { env: environment(workload), home: '/opt/millrace', currentPath: '/var/lib/millrace' };
    return parseServerConfig(data?.['Server.xml'] ?? '', 'Server.xml', { macros });
  }

  test('is without fault for Helm, by default and with everything switched on', () => {
    for (const values of [
      [],
      ALL,
      ['redis.enabled=false', 'redis.host=redis.example.com:6379', 'autoscaling.enabled=false', 'secret.existing=mine'],
      OWN_REDIS,
    ]) {
      const { ok, output } = helm.lint(...values);
      expect([ok, /\[(?:WARNING|ERROR)\].*/.exec(output)?.[0]], output).toEqual([true, undefined]);
    }
  });

  test('refuses unknown and invalid values', () => {
    for (const value of [
      'edge.replica=2',
      'edge.replicas=many',
      'secret.ovtKey=short',
      'edge.service.type=Loadbalancer',
      'autoscaling.target=lots',
      'listne=::',
      'redis.url=http://redis.example.com',
      'redis.url=redis://user:password@redis.example.com',
    ]) {
      expect(helm.lint(value).ok, value).toBe(false);
      expect(() => helm.template(value), value).toThrow();
    }
    expect(() => helm.template('redis.enabled=false')).toThrow('redis.host, redis.url or redis.urlSecret.name names your Redis');
    expect(() => helm.template('redis.url=redis://a')).toThrow('set redis.enabled to false');
    expect(() => helm.template(...OWN_REDIS, 'redis.host=a:1')).toThrow('exclude each other');
  });

  test('has only members that Kubernetes knows, of the types that it knows', () => {
    const rendered = [...manifests, ...helm.template(...ALL), ...helm.template(...OWN_REDIS)].filter(
      ({ kind }) => kind !== 'ServiceMonitor',
    );
    expect(new Set(rendered.map(({ kind }) => kind))).toEqual(
      new Set([
        ...['ConfigMap', 'Deployment', 'HorizontalPodAutoscaler', 'Ingress', 'PodDisruptionBudget', 'Secret', 'Service', 'StatefulSet'],
      ]),
    );
    expect(helm.judge(rendered)).toBe('');
    const wrong = { ...edge(), spec: { ...edge().spec, replica: 1 } };
    expect(helm.judge([wrong])).toContain('replica');
  }, 60_000);

  test.each(['origin', 'edge'])('gives the pods of the %s the ports, folders and secrets of their configuration', (component) => {
    const workload = component === 'origin' ? origin() : edge();
    const { config, warnings, virtualHosts } = configuration(`show-millrace-${component}`, workload);
    expect(warnings).toEqual([]);
    const xml = readFileSync(path.join(CHART, 'files', `${component}.xml`), 'utf8');
    const own = Object.keys(environment(workload)).filter((name) => name !== 'POD_NAME');
    expect(own.filter((name) => !xml.includes(`\${env:${name}`))).toEqual([]);
    const container = containerOf(workload);
    expect(container.args).toEqual([
      'serve',
      '--config',
      '/etc/millrace/Server.xml',
      '--state',
      '/var/lib/millrace',
      '--log-format',
      'json',
    ]);
    expect(container.volumeMounts?.map(({ mountPath }) => mountPath).sort()).toEqual(['/etc/millrace', '/tmp', '/var/lib/millrace']);
    const volumes = [
      ...(workload.spec?.template.spec?.volumes ?? []),
      ...((workload as StatefulSet).spec?.volumeClaimTemplates ?? []).map(({ metadata }) => ({ name: metadata?.name })),
    ];
    expect(volumes.map(({ name }) => name).sort()).toEqual(container.volumeMounts?.map(({ name }) => name).sort());
    // The ports of the pod are exactly those on which the server listens.
    const { managers, providers, publishers } = config.bind;
    const listening = {
      ...(component === 'origin' && { rtmp: providers.rtmp?.port, srt: providers.srt?.port?.ranges[0]?.first, ovt: publishers.ovt?.port }),
      ...(component === 'edge' && { http: publishers.llhls?.port }),
      ...{ api: managers.api?.port, metrics: managers.metrics?.port },
    };
    expect(Object.fromEntries(container.ports?.map(({ name, containerPort }) => [name, containerPort]) ?? [])).toEqual(listening);
    // Probes come from outside the pod.
    expect([managers.api?.ip, config.ip]).toEqual([['*'], ['*']]);
    const asked = (probe: Probe | undefined): unknown => [probe?.httpGet?.path, probe?.httpGet?.port];
    expect([container.startupProbe, container.readinessProbe, container.livenessProbe].map(asked)).toEqual([
      ['/health', 'api'],
      ['/health', 'api'],
      ['/metrics', 'metrics'],
    ]);
    const store = virtualHosts[0]?.typed.originMapStore;
    expect(store?.redisServer).toMatchObject({ url: 'redis://show-millrace-redis:6379', auth: PASSWORD });
    expect([publishers.ovt?.secretKey, providers.ovt?.secretKey]).toContain(KEY);
    const { annotations, labels } = workload.spec?.template.metadata ?? {};
    expect(annotations).toMatchObject({ 'prometheus.io/port': `${managers.metrics?.port}`, 'prometheus.io/path': '/metrics' });
    expect(labels).toMatchObject(workload.spec?.selector.matchLabels ?? { none: '' });
  });

  test('gives the nodes the Redis of the operator: its URL, names, passwords and authority', () => {
    const own = helm.template(...OWN_REDIS, 'secret.redisPassword=of-redis');
    expect(own.filter(({ metadata }) => metadata.name.endsWith('-redis'))).toEqual([]);
    for (const [kind, component] of [
      ['StatefulSet', 'origin'],
      ['Deployment', 'edge'],
    ] as const) {
      const workload = find<Rendered<StatefulSet | Deployment>>(own, kind, `show-millrace-${component}`);
      const env = environment(workload, own);
      const xml = readFileSync(path.join(CHART, 'files', `${component}.xml`), 'utf8');
      const macros = { env, home: '/opt/millrace', currentPath: '/var/lib/millrace' };
      const { virtualHosts } = parseServerConfig(xml, 'Server.xml', { macros });
      expect(virtualHosts[0]?.typed.originMapStore?.redisServer).toEqual({
        url: REDIS_URL,
        username: 'node',
        auth: 'of-redis',
        sentinelUsername: 'watcher',
        sentinelAuth: 'of-sentinels',
        caPath: '/etc/millrace-redis/ca.crt',
      });
      const [mount] = containerOf(workload).volumeMounts?.filter(({ mountPath }) => mountPath === '/etc/millrace-redis') ?? [];
      const volume = workload.spec?.template.spec?.volumes?.find(({ name }) => name === mount?.name);
      expect(volume?.secret?.secretName).toBe('redis-certificate');
    }
  });

  test('makes no password up for the Redis of the operator, and reads its URL from a secret', () => {
    const own = helm.template('redis.enabled=false', 'redis.urlSecret.name=redis-of-ours', 'redis.urlSecret.key=address');
    const secret = find<Rendered<Secret>>(own, 'Secret', 'show-millrace');
    expect([secret.data?.['redis-password'], secret.data?.['sentinel-password']]).toEqual(['', undefined]);
    const [url] = containerOf(find<Rendered<Deployment>>(own, 'Deployment', 'show-millrace-edge')).env?.filter(isRedisUrl) ?? [];
    expect(url?.valueFrom?.secretKeyRef).toEqual({ name: 'redis-of-ours', key: 'address' });
  });

  test('lets origins share work and wait for their clients on request', () => {
    const quiet = configuration('show-millrace-origin', origin());
    expect(quiet.virtualHosts[0]?.typed.originMapStore?.sharedWork).toMatchObject({ enable: false, shareDefinitions: false });
    expect(quiet.config.drain.gracePeriod).toBe(0);
    const asked = helm.template(
      'origin.sharedWork=true',
      'origin.shareDefinitions=true',
      'origin.drainSeconds=90',
      'secret.ovtKey=the-key-of-the-cluster',
    );
    const workload = find<Rendered<StatefulSet>>(asked, 'StatefulSet', 'show-millrace-origin');
    const env = environment(workload, asked);
    const { config, virtualHosts } = parseServerConfig(readFileSync(path.join(CHART, 'files/origin.xml'), 'utf8'), 'Server.xml', {
      macros: { env, home: '/opt/millrace', currentPath: '/var/lib/millrace' },
    });
    expect(virtualHosts[0]?.typed.originMapStore?.sharedWork).toMatchObject({ enable: true, shareDefinitions: true });
    expect(config.drain.gracePeriod).toBe(90_000);
    expect(workload.spec?.template.spec?.terminationGracePeriodSeconds).toBe(90 + 15);
  });

  test('gives each origin a name that edges can resolve', () => {
    const { virtualHosts } = configuration('show-millrace-origin', origin());
    const { spec } = find<Rendered<Service>>(manifests, 'Service', origin().spec?.serviceName ?? '');
    expect(virtualHosts[0]?.typed.originMapStore?.originHostName).toBe(`show-millrace-0.${origin().spec?.serviceName}.default.svc`);
    expect(spec).toMatchObject({ clusterIP: 'None', publishNotReadyAddresses: true, ports: [{ targetPort: 'ovt', port: 9000 }] });
  });

  test('waits as long as an edge does for its viewers', () => {
    const { config } = configuration('show-millrace-edge', edge());
    const pod = edge().spec?.template.spec;
    const before = Number(containerOf(edge()).lifecycle?.preStop?.exec?.command?.[1]);
    expect((pod?.terminationGracePeriodSeconds ?? 0) * 1000).toBe(before * 1000 + config.drain.gracePeriod + 5000);
    expect(config.drain.gracePeriod).toBe(60_000);
  });

  test('sends to existing ports of existing pods', () => {
    const all = helm.template(...ALL);
    const pods = all.filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet') as Rendered<Deployment | StatefulSet>[];
    const services = all.filter(({ kind }) => kind === 'Service') as Rendered<Service>[];
    expect(services.length).toBeGreaterThan(5);
    for (const { spec, metadata } of services) {
      const targets = pods.filter(({ spec: workload }) =>
        Object.entries(spec?.selector ?? { none: '' }).every(([label, value]) => workload?.template.metadata?.labels?.[label] === value),
      );
      expect(targets.length, metadata.name).toBe(1);
      const names = containerOf(targets[0] as Deployment).ports?.map(({ name, protocol = 'TCP' }) => `${name} ${protocol}`);
      for (const { targetPort, protocol = 'TCP' } of spec?.ports ?? []) expect(names, metadata.name).toContain(`${targetPort} ${protocol}`);
    }
    const budget = find<Rendered<PodDisruptionBudget>>(all, 'PodDisruptionBudget', 'show-millrace-edge');
    expect(edge().spec?.template.metadata?.labels).toMatchObject(budget.spec?.selector?.matchLabels ?? { none: '' });
    const ingress = find<Rendered<Ingress>>(all, 'Ingress', 'show-millrace-edge');
    const backend = ingress.spec?.rules?.[0]?.http?.paths[0]?.backend.service;
    const behind = find<Rendered<Service>>(all, 'Service', backend?.name ?? '');
    expect(behind.spec?.ports?.map(({ name }) => name)).toContain(backend?.port?.name);
    const monitor = find<
      Rendered<{ kind: string; spec: { selector: { matchLabels: Record<string, string> }; endpoints: { port: string }[] } }>
    >(all, 'ServiceMonitor', 'show-millrace');
    const watched = services.filter(({ metadata }) =>
      Object.entries(monitor.spec.selector.matchLabels).every(
        ([label, value]) => (metadata as { labels: Record<string, string> }).labels[label] === value,
      ),
    );
    expect(watched.map(({ metadata, spec }) => [metadata.name, spec?.ports?.[0]?.name])).toEqual([
      ['show-millrace-origin-metrics', monitor.spec.endpoints[0]?.port],
      ['show-millrace-edge-metrics', monitor.spec.endpoints[0]?.port],
    ]);
  });

  test('scales by a metric that the adapter derives from a published metric', () => {
    const { spec } = find<Rendered<HorizontalPodAutoscaler>>(manifests, 'HorizontalPodAutoscaler', 'show-millrace-edge');
    const adapter = load(readFileSync(path.join(CHART, '../prometheus-adapter.yaml'), 'utf8')) as {
      rules: { custom: readonly { seriesQuery: string; name: { matches: string; as: string } }[] };
    };
    const [rule] = adapter.rules.custom;
    const series = /^\w+/.exec(rule?.seriesQuery ?? '')?.[0] ?? '';
    expect(spec?.metrics?.[0]?.pods?.metric.name).toBe(rule?.name.as);
    expect(series).toMatch(new RegExp(rule?.name.matches ?? 'none'));
    expect(readFileSync(path.join(ROOT, 'docs/reference/metrics.md'), 'utf8')).toContain(`\`${series}\` | counter`);
    expect(spec?.scaleTargetRef).toEqual({ apiVersion: 'apps/v1', kind: 'Deployment', name: edge().metadata.name });
    // Otherwise each upgrade would reset the scaling.
    expect(edge().spec?.replicas).toBeUndefined();
    expect(find<Rendered<Deployment>>(helm.template('autoscaling.enabled=false'), 'Deployment', 'show-millrace-edge').spec?.replicas).toBe(
      2,
    );
  });
});
