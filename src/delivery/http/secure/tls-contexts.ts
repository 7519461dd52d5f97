/** OpenSSL contexts for the certificates of TLS ports, with the ciphers and versions that Node would use. */
import { DEFAULT_CIPHERS, DEFAULT_ECDH_CURVE, DEFAULT_MIN_VERSION } from 'node:tls';
import type { Handle, NativeAddon } from '../../../native/addon.ts';
import type { Certificate } from '../../tls/certificate-index.ts';
import { CertificateIndex } from '../../tls/certificate-index.ts';

/** By Node's names; RFC 8446 section 4.1.2. */
const VERSIONS: Readonly<Record<string, number>> = { TLSv1: 0x301, 'TLSv1.1': 0x302, 'TLSv1.2': 0x303, 'TLSv1.3': 0x304 };
/** OpenSSL has a separate list for suites of TLS 1.3. */
const SUITE = /^TLS_/;

/** The contexts of one listener. A context is freed when neither this nor a connection refers to it. */
export class TlsContexts {
  readonly #addon: NativeAddon;
  readonly #http2: boolean;
  readonly #book = new CertificateIndex<Handle>();
  readonly #none: Handle;

  /** `http2`: clients may choose HTTP/2. Throws if this Node lacks the needed functions. */
  constructor(addon: NativeAddon, http2: boolean) {
    this.#addon = addon;
    this.#http2 = http2;
    this.#none = this.#make({ cert: '', key: '' });
  }

  /** The context of the first certificate, used by connections without SNI; without one no handshake succeeds. */
  get first(): Handle {
    return this.#book.first ?? this.#none;
  }

  /** The context for a requested server name; null: there is no certificate. */
  readonly choose = (serverName: string): Handle | null => this.#book.find(serverName) ?? null;

  /** Replaces all certificates; open connections keep theirs. Throws for invalid PEM without changing anything. */
  replace(certificates: readonly Certificate[]): void {
    this.#book.replace(certificates, (certificate) => this.#make(certificate));
  }

  #make({ cert, key }: Pick<Certificate, 'cert' | 'key'>): Handle {
    const ciphers = DEFAULT_CIPHERS.split(':');
    const older = ciphers.filter((name) => !SUITE.test(name)).join(':');
    const suites = ciphers.filter((name) => SUITE.test(name)).join(':');
    const groups = DEFAULT_ECDH_CURVE === 'auto' ? '' : DEFAULT_ECDH_CURVE;
    return this.#addon.tlsContext(cert, key, older, suites, groups, VERSIONS[DEFAULT_MIN_VERSION] ?? 0x303, this.#http2);
  }
}
