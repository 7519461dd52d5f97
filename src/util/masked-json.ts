/** JSON for read-only clients: everything that lets a client publish, play or sign is shown as `***`. */

/**
 * Members of definitions and tasks that are secrets, in any spelling of their names. An empty value stays, because it says that there is no
 * secret.
 */
const SECRET_MEMBER = /"(secretKey|streamKey|auth|sentinelAuth)":(?:"(?:[^"\\]|\\.)+"|[^",{}[\]]+)/gi;
/** The bound of the scheme keeps long texts cheap. */
const URL_TEXT = /[a-z][a-z\d+.-]{0,15}:\/\/(?:[^\s"\\]|\\.)+/gi;
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
  return json
    .replace(SECRET_MEMBER, `"$1":"${MASK}"`)
    .replace(RTMP_PUSH, `$1/${MASK}`)
    .replace(ORIGIN_URLS, (urls) => urls.replace(TEXT, maskedUrlText))
    .replace(URL_TEXT, maskedUrlText)
    .replace(WATCH_TOKEN, `$1${MASK}`);
}

function maskedUrlText(url: string): string {
  return url.replace(CREDENTIALS, `$1${MASK}@`).replace(QUERY, `?${MASK}`);
}
