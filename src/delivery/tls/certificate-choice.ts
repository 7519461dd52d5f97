/** Which certificate a TLS client gets: by the server name it asks for (SNI), replaceable while ports are open. */
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import { compileWildcard } from '../../util/wildcard.ts';

/** A certificate with the host names (wildcards allowed) it is for. Texts are PEM. */
export interface Certificate {
  readonly hostNames: readonly string[];
  /** Leaf first, chain behind it. */
  readonly cert: string;
  readonly key: string;
}

interface Pattern {
  readonly matches: (host: string) => boolean;
  readonly context: SecureContext;
}

/** The part of a TLS server that keeps the certificate of clients without SNI. */
interface TlsServer {
  setSecureContext(options: SecureContextOptions): void;
}

/** One for each TLS server. Before `replace` no client gets a certificate. */
export class CertificateChoice {
  readonly #byName = new Map<string, SecureContext>();
  #patterns: readonly Pattern[] = [];
  #first: SecureContext | undefined;

  /**
   * Replaces all certificates; open connections of `server` keep theirs. The first is for clients without SNI and for
   * names that nobody has. Throws for bad PEM, and then nothing has changed.
   */
  replace(certificates: readonly Certificate[], server: TlsServer): void {
    const loaded = certificates.map(({ hostNames, cert, key }) => ({ hostNames, context: createSecureContext({ cert, key }) }));
    const [first] = certificates;
    server.setSecureContext(first === undefined ? {} : { cert: first.cert, key: first.key });
    const names = loaded.flatMap(({ hostNames, context }) => hostNames.map((name) => ({ name: name.toLowerCase(), context })));
    this.#first = loaded[0]?.context;
    this.#byName.clear();
    for (const { name, context } of names) if (!isPattern(name) && !this.#byName.has(name)) this.#byName.set(name, context);
    this.#patterns = names.filter(({ name }) => isPattern(name)).map(({ name, context }) => ({ matches: compileWildcard(name), context }));
  }

  /** For `SNICallback`. A literal name wins over patterns, as it does when requests look for their virtual host. */
  readonly answer = (serverName: string, done: (error: Error | null, context?: SecureContext) => void): void => {
    const host = serverName.toLowerCase();
    const context = this.#byName.get(host) ?? this.#patterns.find(({ matches }) => matches(host))?.context ?? this.#first;
    if (context === undefined) done(new Error('there is no certificate'));
    else done(null, context);
  };
}

function isPattern(name: string): boolean {
  return /[*?]/.test(name);
}
