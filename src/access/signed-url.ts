/**
 * Signed URLs in the form of the reference server: the policy is a JSON object in base64url within the query, the signature an HMAC-SHA1
 * over the complete URL without the signature itself.
 */
import { KeyedHash } from '../util/keyed-hash.ts';

/** The query keys of a virtual host that signs. */
export interface SigningNames {
  readonly policyQueryKeyName: string;
  readonly signatureQueryKeyName: string;
}

/** The query keys and the secret of a virtual host that signs. */
export interface SigningKeys extends SigningNames {
  readonly secretKey: string;
}

/** Members of a policy; times in ms since the epoch. */
export interface Policy {
  /** The URL cannot be opened from then on. */
  readonly url_expire: number;
  /** The URL cannot be opened before. */
  readonly url_activate?: number;
  /** Sessions opened with the URL end then. */
  readonly stream_expire?: number;
  /** Address or network of the other end of the connection. */
  readonly allow_ip?: string;
  /** Address or network of the client behind trusted proxies. */
  readonly real_ip?: string;
  /** The permitted direction; our extension, for URLs that could both play and publish (SRT). */
  readonly direction?: 'incoming' | 'outgoing';
}

/** A parsed URL. Policy and signature are the first values of their keys, decoded twice as the reference does; '' if absent. */
export interface SignedUrl {
  readonly policy: string;
  readonly signature: string;
  /** The signed text: the URL without any signature parameter (key in any case). Order and raw text of everything else are kept. */
  readonly text: string;
}

const BASE64URL = /^[\w-]+={0,2}$/;
/** A policy has some 100 characters; longer policies are decoded into a new buffer. */
const SCRATCH = Buffer.alloc(2048);

/** Reads the query once. A second question mark ends it. */
export function readSignedUrl(url: string, { policyQueryKeyName, signatureQueryKeyName }: SigningNames): SignedUrl {
  const mark = url.indexOf('?');
  if (mark < 0) return { policy: '', signature: '', text: url };
  const second = url.indexOf('?', mark + 1);
  const end = second < 0 ? url.length : second;
  let policy: string | null = null;
  let signature: string | null = null;
  // A URL whose only signature is at its end is cut instead of rebuilt.
  let text = '';
  let kept = 0;
  for (let from = mark + 1; from <= end; ) {
    const next = url.indexOf('&', from);
    const to = next < 0 || next > end ? end : next;
    const equals = url.indexOf('=', from);
    const nameEnd = equals < 0 || equals > to ? to : equals;
    if (policy === null && isNamed(url, from, nameEnd, policyQueryKeyName)) policy = decoded(url.slice(nameEnd + 1, to));
    if (isSignature(url, from, nameEnd, signatureQueryKeyName)) {
      if (signature === null && isNamed(url, from, nameEnd, signatureQueryKeyName)) signature = decoded(url.slice(nameEnd + 1, to));
      text += url.slice(kept, from);
      kept = to + 1;
    }
    from = to + 1;
  }
  if (kept > end) text = text.slice(0, -1);
  else text += url.slice(kept, end);
  return { policy: policy ?? '', signature: signature ?? '', text: text.length > mark + 1 ? text : url.slice(0, mark) };
}

/** First value of a query key, decoded twice as the reference does; null if absent. Keys are case-sensitive. */
export function queryParameter(url: string, key: string): string | null {
  for (const parameter of splitUrl(url).query.split('&')) {
    const equals = parameter.indexOf('=');
    if ((equals < 0 ? parameter : parameter.slice(0, equals)) === key) return equals < 0 ? '' : decoded(parameter.slice(equals + 1));
  }
  return null;
}

/** Signs URLs with a key. */
export function urlSignature(secretKey: string): KeyedHash {
  return new KeyedHash('sha1', secretKey);
}

/** Whether a URL has the signature that `hash` computes, compared in constant time. `digest`: that of its text, if known. */
export function isGenuine(
  { text, signature }: Pick<SignedUrl, 'text' | 'signature'>,
  hash: KeyedHash,
  digest = hash.digest(text),
): boolean {
  return BASE64URL.test(signature) && hash.isOf(digest, signature);
}

/** The JSON value of a policy in the query; undefined if it is invalid. */
export function readPolicy(text: string): unknown {
  if (!BASE64URL.test(text)) return undefined;
  try {
    if (text.length > SCRATCH.length) return JSON.parse(Buffer.from(text, 'base64url').toString());
    return JSON.parse(SCRATCH.toString('utf8', 0, SCRATCH.write(text, 'base64url')));
  } catch {
    return undefined;
  }
}

/** `url`, which has a port already (except for SRT), with policy and signature after its own query. */
export function signUrl(url: string, policy: Policy, { policyQueryKeyName, signatureQueryKeyName, secretKey }: SigningKeys): string {
  const { base, query } = splitUrl(url);
  const text = Buffer.from(JSON.stringify(policy)).toString('base64url');
  const whole = `${base}?${query === '' ? '' : `${query}&`}${policyQueryKeyName}=${text}`;
  return `${whole}&${signatureQueryKeyName}=${urlSignature(secretKey).sign(whole)}`;
}

/** A URL split at its question mark. A second one ends the query. */
function splitUrl(url: string): { readonly base: string; readonly query: string } {
  const [base = '', query = ''] = url.split('?', 2);
  return { base, query };
}

function isNamed(url: string, from: number, to: number, name: string): boolean {
  return to - from === name.length && url.startsWith(name, from);
}

/** Names are compared without case. */
function isSignature(url: string, from: number, to: number, name: string): boolean {
  if (to - from !== name.length) return false;
  return url.startsWith(name, from) || url.slice(from, to).toLowerCase() === name.toLowerCase();
}

/** Decodes twice; undecodable text is kept unchanged. */
function decoded(text: string): string {
  return text.includes('%') ? decodedOnce(decodedOnce(text)) : text;
}

function decodedOnce(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
