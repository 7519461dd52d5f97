/** Self-signed certificates for DTLS: made at every start, known to peers by fingerprint only (RFC 8122, RFC 8827 section 6.5). */
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';

const YEAR_MS = 365 * 24 * 3600 * 1000;
/** Clocks of peers may be a little behind. */
const DAY_MS = 24 * 3600 * 1000;

const Tag = { INTEGER: 0x02, BIT_STRING: 0x03, UTF8_STRING: 0x0c, UTC_TIME: 0x17, SEQUENCE: 0x30, SET: 0x31 } as const;
/** Object identifiers with tag and length: ecdsa-with-SHA256 and commonName. */
const ECDSA_SHA256 = Buffer.from('06082a8648ce3d040302', 'hex');
const COMMON_NAME = Buffer.from('0603550403', 'hex');

/** Made once for each transport; the private key stays in the process. */
export interface DtlsCertificate {
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
  /** SHA-256 of the DER form, as SDP writes it: upper-case hex pairs with colons. */
  readonly fingerprint: string;
}

/** A certificate with a fresh P-256 key, valid for a year around `now` (ms since the epoch). */
export function createCertificate(now: number): DtlsCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const algorithm = der(Tag.SEQUENCE, ECDSA_SHA256);
  const name = der(Tag.SEQUENCE, der(Tag.SET, der(Tag.SEQUENCE, COMMON_NAME, der(Tag.UTF8_STRING, Buffer.from('Millrace')))));
  // Positive, and never empty: the first bit is 0, the second 1.
  const serial = randomBytes(8);
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  const body = der(
    Tag.SEQUENCE,
    der(Tag.INTEGER, serial),
    algorithm,
    name,
    der(Tag.SEQUENCE, utcTime(now - DAY_MS), utcTime(now + YEAR_MS)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
  );
  const signature = sign('sha256', body, privateKey);
  const bytes = der(Tag.SEQUENCE, body, algorithm, der(Tag.BIT_STRING, Buffer.of(0), signature));
  const lines = bytes.toString('base64').replaceAll(/.{64}/g, '$&\n').trimEnd();
  return {
    certificate: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    fingerprint: formatFingerprint(createHash('sha256').update(bytes).digest()),
  };
}

/** A digest as SDP writes it (RFC 8122 section 5). */
export function formatFingerprint(digest: Uint8Array): string {
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0').toUpperCase()).join(':');
}

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  let head = [tag, length];
  if (length >= 0x100) head = [tag, 0x82, length >> 8, length & 0xff];
  else if (length >= 0x80) head = [tag, 0x81, length];
  return Buffer.concat([Buffer.from(head), content]);
}

/** `YYMMDDHHMMSSZ`. */
function utcTime(ms: number): Buffer {
  const text = new Date(ms).toISOString().replaceAll(/[-:T]/g, '').slice(2, 14);
  return der(Tag.UTC_TIME, Buffer.from(`${text}Z`));
}
