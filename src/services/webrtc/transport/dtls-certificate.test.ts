import { createHash, X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { createCertificate, formatFingerprint } from './dtls-certificate.ts';

test('the certificate matches its fingerprint', () => {
  const certificate = createCertificate(Date.now());
  const parsed = new X509Certificate(certificate.certificate);
  expect(parsed.verify(parsed.publicKey)).toBe(true);
  expect(parsed.subject).toBe('CN=Millrace');
  expect(parsed.fingerprint256).toBe(certificate.fingerprint);
  expect(formatFingerprint(createHash('sha256').update(parsed.raw).digest())).toBe(certificate.fingerprint);
  expect(Date.parse(parsed.validTo) - Date.now()).toBeGreaterThan(300 * 24 * 3600 * 1000);
});
