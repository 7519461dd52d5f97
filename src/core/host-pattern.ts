/**
 * Compiles a host name pattern: `*` is any text, `?` is zero or one character, everything else is literal;
 * the whole name must match, case-sensitively.
 */
export function compileHostPattern(pattern: string): RegExp {
  const escaped = pattern.replace(/[.+^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`^${escaped.replaceAll('*', '.*').replaceAll('?', '.?')}$`);
}

/** A virtual host as host matching sees it. */
export interface NamedHosts {
  readonly name: string;
  readonly hostNames: readonly string[];
}

/**
 * Finds the virtual host for a requested host name: a literal name wins over every pattern, then
 * patterns in order of declaration. (With the first match alone, a catch-all `*` in the first virtual
 * host would hide every virtual host made later.)
 */
export class HostTable {
  readonly #literal = new Map<string, string>();
  readonly #patterns: { readonly pattern: RegExp; readonly vhost: string }[] = [];

  constructor(virtualHosts: Iterable<NamedHosts>) {
    for (const { name, hostNames } of virtualHosts) {
      for (const hostName of hostNames) {
        if (/[*?]/.test(hostName)) this.#patterns.push({ pattern: compileHostPattern(hostName), vhost: name });
        else if (!this.#literal.has(hostName)) this.#literal.set(hostName, name);
      }
    }
  }

  /** Name of the virtual host that serves `host` (without port), or undefined. */
  find(host: string): string | undefined {
    return this.#literal.get(host) ?? this.#patterns.find(({ pattern }) => pattern.test(host))?.vhost;
  }
}
