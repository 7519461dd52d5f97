/** The headers that pages of this server have: nobody may frame them, and they run nothing but their own code. */
import { createHash } from 'node:crypto';

/** The source expression for an inline script with this text. */
function scriptHash(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

/** The style sheet that OvenPlayer 0.10.54 puts into the page, which is empty at first. Another version has another. */
const OVENPLAYER_STYLES: readonly string[] = [
  "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='",
  "'sha256-JB9K9unw3yivuHUUhMLHQxuniT+QclT5Kghvgun19+4='",
];

/** Where a page may connect to besides its own origin. */
export interface PageReach {
  /** Name or address of this server, as the client wrote it, without port. */
  readonly host: string;
  readonly plainPorts: readonly number[];
  readonly tlsPorts: readonly number[];
}

/**
 * `Content-Security-Policy` of a page with one inline script, its import map. Media, images and connections may come from the media ports
 * of the same host.
 */
export function contentPolicy(inlineScript: string | null, reach: PageReach | null): string {
  const media = reach === null ? '' : mediaOrigins(reach);
  return [
    "default-src 'none'",
    `script-src 'self'${inlineScript === null ? '' : ` ${scriptHash(inlineScript)}`}`,
    `style-src 'self' ${OVENPLAYER_STYLES.join(' ')}`,
    // For elements that OvenPlayer makes; our own code never makes markup from text.
    "style-src-attr 'unsafe-inline'",
    `img-src 'self' data: blob:${media}`,
    `connect-src 'self'${media}`,
    `media-src 'self' blob: mediastream:${media}`,
    // Of OvenPlayer, in its style sheet.
    'font-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** Header names and values that every page and every file of one has, in turn. */
export const PAGE_HEADERS: readonly string[] = [
  ...['X-Content-Type-Options', 'nosniff'],
  ...['X-Frame-Options', 'DENY'],
  ...['Referrer-Policy', 'no-referrer'],
  ...['Cross-Origin-Opener-Policy', 'same-origin'],
];

/** A host that cannot stand in a policy, such as an IPv6 address, is any host with these ports. */
function mediaOrigins({ host, plainPorts, tlsPorts }: PageReach): string {
  const name = /^[\w.-]+$/.test(host) ? host : '*';
  const origins = [
    ...plainPorts.flatMap((port) => [`http://${name}:${port}`, `ws://${name}:${port}`]),
    ...tlsPorts.flatMap((port) => [`https://${name}:${port}`, `wss://${name}:${port}`]),
  ];
  return origins.map((origin) => ` ${origin}`).join('');
}
