/** Maps pages to the part of the URL behind `#`, which is never sent to the server. */

/** A page with the names of its objects. */
export type PageAddress =
  | { readonly page: 'overview' }
  | { readonly page: 'stream'; readonly vhost: string; readonly app: string; readonly stream: string }
  | { readonly page: 'publish' }
  | { readonly page: 'channels' }
  | { readonly page: 'configuration' }
  | { readonly page: 'log' };

/** The page of a URL; the overview if it is unknown. */
export function pageAt(hash: string): PageAddress {
  const [page = '', ...names] = hash.replace(/^#\/?/, '').split('/').map(decoded);
  const [vhost, app, stream] = names;
  if (page === 'streams' && vhost !== undefined && app !== undefined && stream !== undefined) return { page: 'stream', vhost, app, stream };
  if (page === 'publish' || page === 'channels' || page === 'configuration' || page === 'log') return { page };
  return { page: 'overview' };
}

/** The URL of a page. */
export function hashOf(place: PageAddress): string {
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
