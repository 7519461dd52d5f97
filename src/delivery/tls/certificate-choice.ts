/** Chooses the certificate of a TLS client by its server name (SNI); certificates are replaceable while ports are open. */
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import { type Certificate, CertificateIndex } from './certificate-index.ts';

/** The part of a TLS server with the certificate for clients without SNI. */
interface TlsServer {
  setSecureContext(options: SecureContextOptions): void;
}

/** One for each TLS server. Before `replace` no client gets a certificate. */
export class CertificateChoice {
  readonly #index = new CertificateIndex<SecureContext>();

  /**
   * Replaces all certificates; open connections of `server` keep theirs. The first is for clients without SNI and for
   * unknown names. Throws for invalid PEM without changing anything.
   */
  replace(certificates: readonly Certificate[], server: TlsServer): void {
    this.#index.replace(certificates, ({ cert, key }) => createSecureContext({ cert, key }));
    const [first] = certificates;
    server.setSecureContext(first === undefined ? {} : { cert: first.cert, key: first.key });
  }

  /** For `SNICallback`. An exact name takes precedence over patterns, as in the search for virtual hosts. */
  readonly answer = (serverName: string, done: (error: Error | null, context?: SecureContext) => void): void => {
    const context = this.#index.find(serverName);
    if (context === undefined) done(new Error('there is no certificate'));
    else done(null, context);
  };
}
