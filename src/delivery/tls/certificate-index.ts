/** Finds the certificate of a server name: an exact name takes precedence over patterns, as with virtual hosts. */
import { compileWildcard } from '../../util/wildcard.ts';

/** A certificate with its host names (wildcards allowed). Texts are PEM. */
export interface Certificate {
  readonly hostNames: readonly string[];
  /** Leaf first, chain behind it. */
  readonly cert: string;
  readonly key: string;
}

interface Pattern<Context> {
  readonly matches: (host: string) => boolean;
  readonly context: Context;
}

/** `Context`: a TLS implementation's object for a certificate. Empty before `replace`. */
export class CertificateIndex<Context> {
  readonly #byName = new Map<string, Context>();
  #patterns: readonly Pattern<Context>[] = [];
  #first: Context | undefined;

  /** For clients without SNI and for unknown names. */
  get first(): Context | undefined {
    return this.#first;
  }

  /** Replaces all certificates. Passes on exceptions of `make` without changing anything. */
  replace(certificates: readonly Certificate[], make: (certificate: Certificate) => Context): void {
    const loaded = certificates.map((certificate) => ({ hostNames: certificate.hostNames, context: make(certificate) }));
    const names = loaded.flatMap(({ hostNames, context }) => hostNames.map((name) => ({ name: name.toLowerCase(), context })));
    this.#first = loaded[0]?.context;
    this.#byName.clear();
    for (const { name, context } of names) if (!isPattern(name) && !this.#byName.has(name)) this.#byName.set(name, context);
    this.#patterns = names.filter(({ name }) => isPattern(name)).map(({ name, context }) => ({ matches: compileWildcard(name), context }));
  }

  find(serverName: string): Context | undefined {
    const host = serverName.toLowerCase();
    return this.#byName.get(host) ?? this.#patterns.find(({ matches }) => matches(host))?.context ?? this.#first;
  }
}

function isPattern(name: string): boolean {
  return /[*?]/.test(name);
}
