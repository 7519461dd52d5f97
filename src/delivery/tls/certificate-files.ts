/** Certificates in files: the certificate, its key and the intermediate certificates. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { TlsConfig } from '../../config/index.ts';
import { messageOf } from '../../util/message-of.ts';

/** Member of the configuration that names a file. */
export type CertificateFile = 'certPath' | 'keyPath' | 'chainCertPath';

/** Contents of the files, by the member that names them. */
export type CertificateTexts = { readonly [file in CertificateFile]?: string | undefined };

/** Certificate and key of a TLS port. Texts are PEM. */
export interface CertificatePair {
  /** The certificate, then its chain, each once. */
  readonly cert: string;
  readonly key: string;
  /** End of validity. */
  readonly validTo: Date;
}

/** The files cannot be used; `message` names the faulty one. */
export class CertificateFault extends Error {
  override readonly name = 'CertificateFault';
  readonly file: CertificateFile;

  constructor(file: CertificateFile, message: string, cause?: unknown) {
    super(message, { cause });
    this.file = file;
  }
}

const FILES: readonly CertificateFile[] = ['certPath', 'keyPath', 'chainCertPath'];
const BEGIN = /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/g;
const WHOLE = /-----BEGIN ((?:X509 |TRUSTED )?CERTIFICATE)-----[\s\S]*?-----END \1-----/g;

/** The files of `tls`, in the order in which they are read. */
export function filesOf(tls: TlsConfig): string[] {
  return FILES.flatMap((file) => tls[file] ?? []);
}

/** Reads the files and checks whether a TLS port can use them. Rejects with `CertificateFault`. */
export async function readCertificate(tls: TlsConfig): Promise<CertificatePair> {
  const texts: { [file in CertificateFile]?: string } = {};
  for (const file of FILES) {
    const path = tls[file];
    if (path === undefined) continue;
    try {
      texts[file] = await readFile(path, 'utf8');
    } catch (error) {
      throw new CertificateFault(file, `the file cannot be read: ${messageOf(error)}`, error);
    }
  }
  return certificateOf(texts, tls);
}

/**
 * The pair in `texts`. Throws `CertificateFault` also for errors that OpenSSL ignores: it reads a chain up to the first error, and clients
 * would miss the rest.
 */
export function certificateOf(texts: CertificateTexts, paths: TlsConfig): CertificatePair {
  const own = certificatesIn('certPath', texts, paths);
  const chain = paths.chainCertPath === undefined ? [] : certificatesIn('chainCertPath', texts, paths);
  const [leaf] = own;
  if (leaf === undefined) throw unusable('certPath', `there is no certificate in ${paths.certPath}`);
  if (!isKeyOf(leaf, texts.keyPath ?? '', paths.keyPath)) {
    throw new CertificateFault('keyPath', `the key ${paths.keyPath} is not that of the certificate ${paths.certPath}`);
  }
  const each = new Map([...own, ...chain].map((certificate) => [certificate.fingerprint256, certificate.toString()]));
  const pair = { cert: [...each.values()].join(''), key: texts.keyPath ?? '', validTo: new Date(leaf.validTo) };
  try {
    createSecureContext(pair);
  } catch (error) {
    throw unusable('certPath', messageOf(error), error);
  }
  return pair;
}

function certificatesIn(file: 'certPath' | 'chainCertPath', texts: CertificateTexts, paths: TlsConfig): X509Certificate[] {
  const text = texts[file] ?? '';
  const whole = text.match(WHOLE) ?? [];
  if (whole.length < (text.match(BEGIN) ?? []).length) throw unusable(file, `${paths[file]} ends within a certificate`);
  if (whole.length === 0) throw unusable(file, `there is no certificate in ${paths[file]}`);
  return whole.map((pem, index) => {
    try {
      return new X509Certificate(pem);
    } catch (error) {
      throw unusable(file, `certificate ${index + 1} of ${paths[file]} cannot be read: ${messageOf(error)}`, error);
    }
  });
}

function isKeyOf(certificate: X509Certificate, key: string, path: string): boolean {
  try {
    return certificate.checkPrivateKey(createPrivateKey(key));
  } catch (error) {
    throw unusable('keyPath', `${path} cannot be read: ${messageOf(error)}`, error);
  }
}

function unusable(file: CertificateFile, why: string, cause?: unknown): CertificateFault {
  return new CertificateFault(file, `the certificate or key cannot be used: ${why}`, cause);
}
