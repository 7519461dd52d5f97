/** Basic and Digest authentication of requests, RFC 7617 and RFC 7616 (MD5 and SHA-256, with and without `qop=auth`). */
import { createHash, randomBytes } from 'node:crypto';
import type { RtspCredentials } from './rtsp-url.ts';

interface Challenge {
  readonly scheme: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** Matches begin at the first letter of a name, so that a long word without a value is not searched again from each of its letters. */
const PARAMETER = /(?<![\w-])([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,]*))/g;
const HASHES: Readonly<Record<string, string>> = { MD5: 'md5', 'SHA-256': 'sha256' };

/** Answers challenges of one server. */
export class RtspAuthenticator {
  readonly #credentials: RtspCredentials;
  #challenge: Challenge | null = null;
  #count = 0;

  constructor(credentials: RtspCredentials) {
    this.#credentials = credentials;
  }

  /**
   * Takes the `WWW-Authenticate` headers of a 401 and uses the strongest scheme. False if none is supported, or if the same challenge was
   * refused before. Not every server announces a stale nonce, so a new nonce is always tried.
   */
  accept(headers: readonly string[]): boolean {
    const challenges = headers.map(parseChallenge);
    const digest = challenges.find(({ scheme, parameters }) => scheme === 'digest' && algorithmOf(parameters) !== null);
    const chosen = digest ?? challenges.find(({ scheme }) => scheme === 'basic');
    if (chosen === undefined) return false;
    const before = this.#challenge;
    this.#challenge = chosen;
    this.#count = 0;
    return before === null || before.parameters.get('nonce') !== chosen.parameters.get('nonce');
  }

  /** Value of `Authorization`; null before a challenge. */
  header(method: string, uri: string): string | null {
    if (this.#challenge === null) return null;
    const { user, password } = this.#credentials;
    if (this.#challenge.scheme === 'basic') return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
    return this.#digest(this.#challenge.parameters, method, uri);
  }

  #digest(parameters: ReadonlyMap<string, string>, method: string, uri: string): string {
    const { user, password } = this.#credentials;
    const algorithm = algorithmOf(parameters) ?? 'MD5';
    const hash = (text: string): string =>
      createHash(HASHES[algorithm] ?? 'md5')
        .update(text)
        .digest('hex');
    const realm = parameters.get('realm') ?? '';
    const nonce = parameters.get('nonce') ?? '';
    const secret = hash(`${user}:${realm}:${password}`);
    const request = hash(`${method}:${uri}`);
    const fields = [`username="${quoted(user)}"`, `realm="${quoted(realm)}"`, `nonce="${quoted(nonce)}"`, `uri="${uri}"`];
    if (offersAuth(parameters)) {
      this.#count += 1;
      const count = this.#count.toString(16).padStart(8, '0');
      const own = randomBytes(8).toString('hex');
      fields.push(
        `response="${hash([secret, nonce, count, own, 'auth', request].join(':'))}"`,
        'qop=auth',
        `nc=${count}`,
        `cnonce="${own}"`,
      );
    } else {
      fields.push(`response="${hash(`${secret}:${nonce}:${request}`)}"`);
    }
    if (parameters.has('algorithm')) fields.push(`algorithm=${algorithm}`);
    const opaque = parameters.get('opaque');
    if (opaque !== undefined) fields.push(`opaque="${quoted(opaque)}"`);
    return `Digest ${fields.join(', ')}`;
  }
}

function offersAuth(parameters: ReadonlyMap<string, string>): boolean {
  return (parameters.get('qop') ?? '').split(',').some((word) => word.trim().toLowerCase() === 'auth');
}

function algorithmOf(parameters: ReadonlyMap<string, string>): string | null {
  const name = (parameters.get('algorithm') ?? 'MD5').toUpperCase();
  return name in HASHES ? name : null;
}

/** `Scheme name=value, name="quoted value" …` */
function parseChallenge(header: string): Challenge {
  const space = header.indexOf(' ');
  const scheme = (space < 0 ? header : header.slice(0, space)).toLowerCase();
  const parameters = new Map<string, string>();
  const rest = space < 0 ? '' : header.slice(space + 1);
  for (const [, name = '', quotedValue, token] of rest.matchAll(PARAMETER)) {
    parameters.set(name.toLowerCase(), quotedValue === undefined ? (token ?? '') : quotedValue.replace(/\\(.)/g, '$1'));
  }
  return { scheme, parameters };
}

function quoted(text: string): string {
  return text.replace(/["\\]/g, '\\$&').replace(/[\r\n]/g, '');
}
