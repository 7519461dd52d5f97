/** URLs as logs and answers show them. */

/** Names of parameters whose values grant access. */
const SECRET = /([?&](?:key|token|signature|policy)=)[^&#\s]*/gi;

/** `url` with `***` for the values of `key`, `token`, `signature` and `policy` in its query. */
export function maskedUrl(url: string): string {
  return url.includes('?') ? url.replaceAll(SECRET, '$1***') : url;
}
