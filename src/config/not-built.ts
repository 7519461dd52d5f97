/**
 * Protections that are not built yet: a configuration that relies on one is refused.
 * Settings that merely have no effect are in `ineffective.ts`.
 */
import type { ApplicationConfig, VirtualHostConfig } from './index.ts';

/**
 * Unsupported protections of a virtual host: ignoring them would admit clients that the operator wants to exclude, so the definition is
 * refused. One sentence each, with the element.
 */
export function unprotected(vhost: VirtualHostConfig): string[] {
  return vhost.applications.flatMap((application) => unprotectedApplication(vhost.name, application));
}

/** Publishers that do not count their viewers, so their `MaxConnection` is refused, by element. */
const UNCOUNTED = {
  llhls: 'LLHLS',
  hls: 'HLS',
  file: 'FILE',
  thumbnail: 'Thumbnail',
  rtmpPush: 'RTMPPush',
  srtPush: 'SRTPush',
  mPEGTSPush: 'MPEGTSPush',
} as const;
type Uncounted = keyof typeof UNCOUNTED;

/** Unsupported protections of one application, as sentences. */
export function unprotectedApplication(vhost: string, { name, publishers }: ApplicationConfig): string[] {
  return refusals(`application '${vhost}/${name}'`, [
    [publishers.llhls?.dRM?.enable === true, 'Publishers/LLHLS/DRM'],
    ...Object.entries(UNCOUNTED).map(([key, element]): [boolean, string] => [
      (publishers[key as Uncounted]?.maxConnection ?? 0) > 0,
      `Publishers/${element}/MaxConnection`,
    ]),
  ]);
}

function refusals(owner: string, rules: readonly (readonly [asked: boolean, element: string])[]): string[] {
  return rules.filter(([asked]) => asked).map(([, element]) => `${owner}: ${element} is not built yet, and nothing is served without it`);
}
