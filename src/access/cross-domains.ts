/**
 * Cross-origin answers (CORS) as configured by `CrossDomains`. Pure: settings and two request headers in, response headers out. The rules
 * are those of the reference server: the server-wide default first, then the element of the publisher or of the API, which wins.
 */
import { compileWildcard } from '../util/wildcard.ts';

/** CORS rules as configured (`CrossDomains`). */
export interface CrossDomainRules {
  readonly urls: readonly string[];
  readonly headers: readonly { readonly key: string; readonly value: string }[];
}

/** Response headers, as pairs and as complete lines (`Name: value\r\n`…) that can be written unchanged. */
export interface CrossDomainHeaders {
  readonly pairs: readonly (readonly [name: string, value: string])[];
  readonly block: string;
}

/** Methods of the default rules, and of the API. */
export const ALL_METHODS = 'OPTIONS, HEAD, GET, POST, PUT, PATCH, DELETE';

/** A response without this header keeps the origin out. */
export const ALLOW_ORIGIN = 'Access-Control-Allow-Origin';
const ALLOW_CREDENTIALS = 'Access-Control-Allow-Credentials';
const ALLOW_METHODS = 'Access-Control-Allow-Methods';
const ALLOW_HEADERS = 'Access-Control-Allow-Headers';
const BEHIND_SCHEME = '://';
const CORS_NAMES = [ALLOW_ORIGIN, ALLOW_CREDENTIALS, ALLOW_METHODS, ALLOW_HEADERS];

/** Limit of origins remembered per policy; the oldest is forgotten first. */
const MAX_CACHE = 256;
/** A scheme, a host name of 253 characters and a port are shorter. Headers of requests can be a hundred times as long, and each stream has a policy. */
const MAX_KEPT_ORIGIN = 300;

/** One `CrossDomains` element, compiled. */
class Pass {
  /** `Access-Control-Allow-Origin` for every request; undefined if it depends on the origin. */
  readonly #always: string | undefined;
  readonly #patterns: readonly ((origin: string) => boolean)[];
  readonly #overrides = new Map<string, string>();
  readonly #extra: (readonly [string, string])[] = [];
  readonly #methods: string;

  constructor(rules: CrossDomainRules, methods: string) {
    this.#methods = methods;
    this.#always = rules.urls.includes('*') ? '*' : rules.urls.length === 1 && rules.urls[0] === 'null' ? 'null' : undefined;
    this.#patterns = this.#always === undefined ? rules.urls.filter((url) => url !== 'null').map(compileOrigin) : [];
    for (const { key, value } of rules.headers) {
      const known = CORS_NAMES.find((name) => name.toLowerCase() === key.toLowerCase());
      if (known === undefined) this.#extra.push([key, value]);
      // The reference server cannot use a value with a colon here.
      else if (!value.includes(':')) this.#overrides.set(known, value);
    }
  }

  apply(headers: Map<string, string>, origin: string, requestHeaders: string | undefined): void {
    const allowed = this.#always ?? (this.#patterns.some((matches) => matches(origin)) ? origin : undefined);
    for (const name of CORS_NAMES) headers.delete(name);
    if (allowed !== undefined) {
      this.#set(headers, ALLOW_ORIGIN, allowed);
      this.#set(headers, ALLOW_CREDENTIALS, 'true');
      this.#set(headers, ALLOW_METHODS, this.#methods);
      this.#set(headers, ALLOW_HEADERS, requestHeaders);
    }
    for (const [name, value] of this.#extra) headers.set(name, value);
  }

  #set(headers: Map<string, string>, name: string, value: string | undefined): void {
    const chosen = this.#overrides.get(name) ?? value;
    if (chosen !== undefined && chosen !== '') headers.set(name, chosen);
  }
}

/** A pattern without scheme matches any scheme. Schemes and host names are case-insensitive. */
function compileOrigin(pattern: string): (origin: string) => boolean {
  const matches = compileWildcard(pattern.toLowerCase());
  if (pattern.includes(BEHIND_SCHEME)) return (origin) => matches(origin.toLowerCase());
  return (origin) => {
    const scheme = origin.indexOf(BEHIND_SCHEME);
    return scheme > 0 && matches(origin.slice(scheme + BEHIND_SCHEME.length).toLowerCase());
  };
}

/** Response headers of one handler (a publisher, the API) for requests from other origins. A bounded cache keeps them. */
export class CrossDomainPolicy {
  readonly #defaults: Pass;
  readonly #own: Pass | null;
  readonly #methods: string;
  readonly #cache = new Map<string, CrossDomainHeaders>();

  /**
   * `defaults`: `Server/Defaults/CrossDomains` (no element: no URL); `own`: the element of the publisher or of the API, or null; `methods`:
   * for `Access-Control-Allow-Methods`.
   */
  constructor(options: { readonly defaults: CrossDomainRules; readonly own: CrossDomainRules | null; readonly methods: string }) {
    this.#defaults = new Pass(options.defaults, ALL_METHODS);
    this.#own = options.own === null ? null : new Pass(options.own, options.methods);
    this.#methods = options.methods;
  }

  /** Headers for a request with this `Origin` and `Access-Control-Request-Headers` (undefined: not sent). */
  headers(origin: string | undefined, requestHeaders: string | undefined): CrossDomainHeaders {
    const key = origin ?? '';
    if (requestHeaders !== undefined || key.length > MAX_KEPT_ORIGIN) return this.#make(key, requestHeaders);
    const known = this.#cache.get(key);
    if (known !== undefined) return known;
    const made = this.#make(key, undefined);
    if (this.#cache.size >= MAX_CACHE) {
      const oldest = this.#cache.keys().next();
      if (!oldest.done) this.#cache.delete(oldest.value);
    }
    this.#cache.set(key, made);
    return made;
  }

  #make(origin: string, requestHeaders: string | undefined): CrossDomainHeaders {
    const headers = new Map<string, string>();
    this.#defaults.apply(headers, origin, requestHeaders);
    // Without an own element the handler's methods are sent even to an origin that does not match.
    if (this.#own === null) headers.set(ALLOW_METHODS, this.#methods);
    else this.#own.apply(headers, origin, requestHeaders);
    let block = '';
    for (const [name, value] of headers) block += `${name}: ${value}\r\n`;
    return { pairs: [...headers], block };
  }
}
