/** Which page is on show: the part of the address behind `#`, so that the server is never asked for it. */

/** A page with the names that it is about. */
export type Place =
  | { readonly page: 'overview' }
  | { readonly page: 'stream'; readonly vhost: string; readonly app: string; readonly stream: string }
  | { readonly page: 'publish' }
  | { readonly page: 'channels' }
  | { readonly page: 'configuration' }
  | { readonly page: 'log' };

/** The page of an address; an unknown one is the overview. */
export function placeOf(hash: string): Place {
  const [page = '', ...names] = hash.replace(/^#\/?/, '').split('/').map(decoded);
  const [vhost, app, stream] = names;
  if (page === 'streams' && vhost !== undefined && app !== undefined && stream !== undefined) return { page: 'stream', vhost, app, stream };
  if (page === 'publish' || page === 'channels' || page === 'configuration' || page === 'log') return { page };
  return { page: 'overview' };
}

/** The address of a page. */
export function hashOf(place: Place): string {
  if (place.page === 'overview') return '#/';
  if (place.page !== 'stream') return `#/${place.page}`;
  return `#/streams/${[place.vhost, place.app, place.stream].map(encodeURIComponent).join('/')}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
