/** JSON for read-only clients: everything that lets a client publish, play or sign is shown as `***`. */

/**
 * Members of definitions and tasks that are secrets, whatever the case of their names. An empty value stays, because it says that there is
 * no secret.
 */
const SECRET_MEMBER = /"(secretKey|streamKey|auth|sentinelAuth)":(?:"(?:[^"\\]|\\.)+"|[^",{}[\]]+)/gi;
const SCHEME_END = '://';
/** The scheme at the end of the text before `://`. */
const SCHEME = /[a-z][a-z\d+.-]{0,15}$/i;
const MAX_SCHEME = 16;
const BEHIND_SCHEME = /(?:[^\s"\\]|\\.)+/y;
/** URLs of origins have no scheme: it is a member of its own. */
const ORIGIN_URLS = /"url":\[(?:"(?:[^"\\]|\\.)*",?)+\]/gi;
const TEXT = /(?<=[[,])"(?:[^"\\]|\\.)*"/g;
/** User and password are the text before the last `@` of the authority. */
const CREDENTIALS = /^("?(?:[a-z\d+.-]+:\/\/)?)[^/?#]*@/i;
const QUERY = /\?[^"]*/;
/** A stream key may be part of the URL of an RTMP push. */
const RTMP_PUSH = /("url":"rtmps?:\/\/[^/"]*\/[^/"?]+)\/(?:[^"\\]|\\.)+/gi;
/** Tokens that let anyone with the URL watch a recording. */
const WATCH_TOKEN = /([?&]token=)\d+-[\w-]+/g;
const MASK = '***';

/** `json` without secrets. It works on the text, so that no member can be forgotten. */
export function maskedJson(json: string): string {
  const others = json
    .replace(SECRET_MEMBER, `"$1":"${MASK}"`)
    .replace(RTMP_PUSH, `$1/${MASK}`)
    .replace(ORIGIN_URLS, (urls) => urls.replace(TEXT, maskedUrlText));
  return maskedUrls(others).replace(WATCH_TOKEN, `$1${MASK}`);
}

/** Looks for the end of a scheme first: a pattern for whole URLs would be tried at every letter, which takes 60 ms for a megabyte. */
function maskedUrls(json: string): string {
  let masked = '';
  let copied = 0;
  for (let end = json.indexOf(SCHEME_END); end >= 0; end = json.indexOf(SCHEME_END, Math.max(copied, end + 1))) {
    const scheme = SCHEME.exec(json.slice(Math.max(copied, end - MAX_SCHEME), end))?.[0];
    BEHIND_SCHEME.lastIndex = end + SCHEME_END.length;
    if (scheme === undefined || !BEHIND_SCHEME.test(json)) continue;
    const start = end - scheme.length;
    masked += json.slice(copied, start) + maskedUrlText(json.slice(start, BEHIND_SCHEME.lastIndex));
    copied = BEHIND_SCHEME.lastIndex;
  }
  return copied === 0 ? json : masked + json.slice(copied);
}

function maskedUrlText(url: string): string {
  return url.replace(CREDENTIALS, `$1${MASK}@`).replace(QUERY, `?${MASK}`);
}
