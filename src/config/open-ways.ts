/**
 * Protocols that stay open while others of the same application are protected. They are warned about, because one open protocol is enough
 * to get in.
 */
import type { ApplicationConfig, ServerConfig, VirtualHostConfig } from './index.ts';

/** Protocols that clients outside can use, as elements of an application and of `Bind` name them. */
const WAYS_IN = ['rtmp', 'srt', 'webrtc', 'mpegts'] as const;
const WAYS_OUT = ['webrtc', 'llhls', 'hls', 'thumbnail', 'srt', 'ovt'] as const;
/** These clients cannot show a key. */
const KEYLESS: readonly string[] = ['mpegts', 'ovt'];

type Bind = ServerConfig['bind'];

/** A sentence about an application with open protocols; an empty list if it has none. */
export function openWays(
  bind: Bind,
  { name: vhost, signedPolicy, admissionWebhooks }: VirtualHostConfig,
  { name, providers, publishers, publishKeys, playTokens }: ApplicationConfig,
): string[] {
  const controls = Object.entries({ SignedPolicy: signedPolicy, AdmissionWebhooks: admissionWebhooks }).flatMap(([element, control]) =>
    control === undefined ? [] : [{ element: `${element}/Enables`, ...control.enables }],
  );
  const [waysIn, waysOut] = [
    [...controls.flatMap((control) => control.providers), ...keyed(WAYS_IN, publishKeys)],
    [...controls.flatMap((control) => control.publishers), ...keyed(WAYS_OUT, playTokens)],
  ];
  const open = [
    ...(waysIn.length === 0 ? [] : left(WAYS_IN, waysIn, providers, bind.providers).map((way) => `publishing by ${way}`)),
    ...(waysOut.length === 0 ? [] : left(WAYS_OUT, waysOut, publishers, bind.publishers).map((way) => `playing by ${way}`)),
  ];
  if (open.length === 0) return [];
  const elements = controls.map(({ element }) => element).join(' with ');
  const subject = publishKeys === undefined && playTokens === undefined ? elements : 'what protects it';
  return [`application '${vhost}/${name}': ${subject} leaves open to everybody: ${open.join(', ')}`];
}

/** The protocols that a list of keys protects; none without a list. */
function keyed(ways: readonly string[], keys: readonly object[] | undefined): readonly string[] {
  return keys === undefined ? [] : ways.filter((way) => !KEYLESS.includes(way));
}

function left(ways: readonly string[], enabled: readonly string[], configured: object, bound: object): string[] {
  const has = (members: object, way: string): boolean => (members as Readonly<Record<string, unknown>>)[way] !== undefined;
  return ways.filter((way) => !enabled.includes(way) && has(configured, way) && has(bound, way));
}

/** Warnings for all virtual hosts of a file. */
export function openWaysIn({ bind, virtualHosts }: ServerConfig): string[] {
  return virtualHosts.flatMap((vhost) => vhost.applications.flatMap((application) => openWays(bind, vhost, application)));
}
