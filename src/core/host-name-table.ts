import { compileWildcard } from '../util/wildcard.ts';

/** A virtual host as host matching sees it. */
export interface NamedHosts {
  readonly name: string;
  /** Literal names and patterns with `*` and `?`. */
  readonly hostNames: readonly string[];
}

/**
 * Finds the virtual host for a requested host name: a literal name wins over every pattern, then
 * patterns in order of declaration. (With the first match alone, a catch-all `*` in the first virtual
 * host would hide every virtual host made later.)
 */
export class HostNameTable {
  readonly #literal = new Map<string, string>();
  readonly #patterns: { readonly matches: (host: string) => boolean; readonly vhost: string }[] = [];

  constructor(virtualHosts: Iterable<NamedHosts>) {
    for (const { name, hostNames } of virtualHosts) {
      for (const hostName of hostNames) {
        if (/[*?]/.test(hostName)) this.#patterns.push({ matches: compileWildcard(hostName), vhost: name });
        else if (!this.#literal.has(hostName)) this.#literal.set(hostName, name);
      }
    }
  }

  /** Name of the virtual host that serves `host` (without port), or undefined. */
  find(host: string): string | undefined {
    return this.#literal.get(host) ?? this.#patterns.find(({ matches }) => matches(host))?.vhost;
  }
}
