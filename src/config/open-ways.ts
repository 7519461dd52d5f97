/** Ways in and out that a virtual host leaves open while it protects others: to be said aloud, for one of them is enough. */
import type { ApplicationConfig, ServerConfig, VirtualHostConfig } from './index.ts';

/** Ways in that somebody outside uses by himself, as elements of an application and of `Bind` name them. */
const WAYS_IN = ['rtmp', 'srt', 'webrtc', 'mpegts'] as const;
const WAYS_OUT = ['webrtc', 'llhls', 'hls', 'thumbnail', 'srt', 'ovt'] as const;

type Bind = ServerConfig['bind'];

/** A sentence about an application with such ways, or none. */
export function openWays(
  bind: Bind,
  { name: vhost, signedPolicy }: VirtualHostConfig,
  { name, providers, publishers }: ApplicationConfig,
): string[] {
  if (signedPolicy === undefined) return [];
  const { enables } = signedPolicy;
  const open = [
    ...(enables.providers.length === 0
      ? []
      : left(WAYS_IN, enables.providers, providers, bind.providers).map((way) => `publishing by ${way}`)),
    ...(enables.publishers.length === 0
      ? []
      : left(WAYS_OUT, enables.publishers, publishers, bind.publishers).map((way) => `playing by ${way}`)),
  ];
  if (open.length === 0) return [];
  return [`application '${vhost}/${name}': SignedPolicy/Enables leaves open to everybody: ${open.join(', ')}`];
}

function left(ways: readonly string[], enabled: readonly string[], configured: object, bound: object): string[] {
  const has = (members: object, way: string): boolean => (members as Readonly<Record<string, unknown>>)[way] !== undefined;
  return ways.filter((way) => !enabled.includes(way) && has(configured, way) && has(bound, way));
}

/** Those of all virtual hosts of a file. */
export function openWaysIn({ bind, virtualHosts }: ServerConfig): string[] {
  return virtualHosts.flatMap((vhost) => vhost.applications.flatMap((application) => openWays(bind, vhost, application)));
}
