/**
 * Signed URLs as the reference server makes them (streaming facts 9.2): the policy is a JSON object in base64url within the query, the
 * signature an HMAC-SHA1 over the complete URL without the signature itself.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

/** How a virtual host signs. */
export interface SigningKeys {
  readonly policyQueryKeyName: string;
  readonly signatureQueryKeyName: string;
  readonly secretKey: string;
}

/** What a policy may hold; times in ms since the epoch. */
export interface Policy {
  /** The URL cannot be opened any more. */
  readonly url_expire: number;
  /** It cannot be opened before. */
  readonly url_activate?: number;
  /** Whatever was opened with it ends. */
  readonly stream_expire?: number;
  /** Address or network of the other end of the connection. */
  readonly allow_ip?: string;
  /** The same of the client behind trusted proxies. */
  readonly real_ip?: string;
  /** What it is for; an addition of ours, which matters where a URL plays and publishes (SRT). */
  readonly direction?: 'incoming' | 'outgoing';
}

const HMAC = 'sha1';
const BASE64URL = /^[\w-]+={0,2}$/;

/** A URL taken apart at its question mark. A second one ends the query. */
function splitUrl(url: string): { readonly base: string; readonly query: string } {
  const [base = '', query = ''] = url.split('?', 2);
  return { base, query };
}

/** The text that is signed: `url` without the parameter `signatureKey`, in any case; order and raw text of the others stay. */
export function signedText(url: string, signatureKey: string): string {
  const { base, query } = splitUrl(url);
  const key = signatureKey.toLowerCase();
  const left = query.split('&').filter((parameter) => parameter.split('=', 1)[0]?.toLowerCase() !== key);
  const kept = left.join('&');
  return kept === '' ? base : `${base}?${kept}`;
}

/** First value of a query key, decoded twice as the reference does; null when absent. Keys are compared by case. */
export function queryParameter(url: string, key: string): string | null {
  for (const parameter of splitUrl(url).query.split('&')) {
    const equals = parameter.indexOf('=');
    if ((equals < 0 ? parameter : parameter.slice(0, equals)) === key)
      return equals < 0 ? '' : decoded(decoded(parameter.slice(equals + 1)));
  }
  return null;
}

/** Whether `signature` is that of the URL it stands in. Takes as long for a wrong one as for a right one. */
export function isSignedBy(url: string, signature: string, { signatureQueryKeyName, secretKey }: SigningKeys): boolean {
  if (!BASE64URL.test(signature)) return false;
  const given = Buffer.from(signature, 'base64url');
  const expected = createHmac(HMAC, secretKey).update(signedText(url, signatureQueryKeyName)).digest();
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** The JSON value of a policy as it stands in the query; undefined when it is none. */
export function readPolicy(text: string): unknown {
  if (!BASE64URL.test(text)) return undefined;
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    return undefined;
  }
}

/** `url`, which has a port already (but for SRT), with policy and signature behind its own query. */
export function signUrl(url: string, policy: Policy, { policyQueryKeyName, signatureQueryKeyName, secretKey }: SigningKeys): string {
  const { base, query } = splitUrl(url);
  const text = Buffer.from(JSON.stringify(policy)).toString('base64url');
  const whole = `${base}?${query === '' ? '' : `${query}&`}${policyQueryKeyName}=${text}`;
  const signature = createHmac(HMAC, secretKey).update(whole).digest('base64url');
  return `${whole}&${signatureQueryKeyName}=${signature}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
