import { hasHiddenCharacter } from '../util/hidden-characters.ts';

/** An application by its names. */
export interface ApplicationAddress {
  readonly vhost: string;
  readonly app: string;
}

/** Names of a stream, which may exist or only be requested. While only the host name is known it is an `IngestTarget`. */
export interface StreamAddress extends ApplicationAddress {
  readonly stream: string;
}

/** The address of an object with a name in an application. */
export function addressOf({ vhost, app, name }: ApplicationAddress & { readonly name: string }): StreamAddress {
  return { vhost, app, stream: name };
}

/** For maps: different addresses have different keys, whatever names clients request. */
export function streamKey({ vhost, app, stream }: StreamAddress): string {
  return JSON.stringify([vhost, app, stream]);
}

/** For maps, as `streamKey`. */
export function applicationKey({ vhost, app }: ApplicationAddress): string {
  return JSON.stringify([vhost, app]);
}

/** For people, and as the name of a document. */
export function streamText({ vhost, app, stream }: StreamAddress): string {
  return `${vhost}/${app}/${stream}`;
}

const STREAM_SCHEME = /^stream:\/\//i;

/** The stream of this server that a `stream://<vhost>/<app>/<stream>` URL names, each part percent-decoded; null where it can name none. */
export function streamOfUrl(url: string): StreamAddress | null {
  if (!STREAM_SCHEME.test(url)) return null;
  const [vhost = '', app = '', stream = '', ...rest] = url.replace(STREAM_SCHEME, '').split('/').map(decoded);
  return rest.length === 0 && [vhost, app, stream].every(isAddressableName) ? { vhost, app, stream } : null;
}

/** The decoded text; a name may contain a percent sign that encodes nothing. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Internal name of an application, `#<vhost>#<app>`; `#` inside names becomes `_`. */
export function internalAppName(vhost: string, app: string): string {
  return `#${vhost.replaceAll('#', '_')}#${app.replaceAll('#', '_')}`;
}

/**
 * Segments that the API, URLs and file names can address: not empty, none of `/ : ? #`, no white space, and no character that cannot
 * be seen.
 */
export function isAddressableName(name: string): boolean {
  return name.length > 0 && name.length <= 255 && name !== '.' && name !== '..' && !/[/:?#\s]/u.test(name) && !hasHiddenCharacter(name);
}
