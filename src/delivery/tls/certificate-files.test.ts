import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chained, selfSigned } from '../../../test/fakes/self-signed.ts';
import { CertificateFault, certificateOf, filesOf, readCertificate } from './certificate-files.ts';

const PATHS = { certPath: '/c.pem', keyPath: '/k.pem' };
const WITH_CHAIN = { ...PATHS, chainCertPath: '/chain.pem' };
const { cert, key, intermediate, root } = chained('media.example');
const other = selfSigned('other.example');

function faultOf(action: () => unknown): [string, string] {
  try {
    action();
  } catch (error) {
    if (error instanceof CertificateFault) return [error.file, error.message];
    throw error;
  }
  return ['', 'accepted'];
}

describe('the certificate and its chain', () => {
  test('may be in two files or in one, and are sent once', () => {
    const both = cert + intermediate;
    expect(certificateOf({ certPath: cert, keyPath: key, chainCertPath: intermediate }, WITH_CHAIN)).toMatchObject({ cert: both, key });
    expect(certificateOf({ certPath: both, keyPath: key }, PATHS).cert).toBe(both);
    expect(certificateOf({ certPath: both, keyPath: key, chainCertPath: intermediate }, WITH_CHAIN).cert).toBe(both);
    expect(certificateOf({ certPath: cert, keyPath: key, chainCertPath: intermediate + root }, WITH_CHAIN).cert).toBe(both + root);
  });

  test('may have text around them, Windows line endings, and no final line ending', () => {
    const texts = {
      certPath: `subject=x\r\n${cert.trimEnd().replaceAll('\n', '\r\n')}`,
      keyPath: key,
      chainCertPath: `${intermediate}\nbye`,
    };
    expect(certificateOf(texts, WITH_CHAIN).cert).toBe(cert + intermediate);
  });

  test('have an end of validity', () => {
    expect(certificateOf({ certPath: cert, keyPath: key }, PATHS).validTo.toISOString()).toBe('2049-12-31T23:59:59.000Z');
  });
});

describe('an unusable certificate is reported with its file', () => {
  const half = intermediate.slice(0, intermediate.length / 2);
  const damaged = intermediate.replace(/\n.{20}/, '\nAAAAAAAAAAAAAAAAAAAA');
  const encrypted = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
    ...{ type: 'pkcs8', format: 'pem', cipher: 'aes-128-cbc', passphrase: 'x' },
  });

  test.each([
    ['an empty file', { certPath: '', keyPath: key }, 'certPath', /there is no certificate in \/c\.pem/],
    ['a key instead of the certificate', { certPath: key, keyPath: key }, 'certPath', /there is no certificate in \/c\.pem/],
    ['half a certificate', { certPath: cert.slice(0, 300), keyPath: key }, 'certPath', /\/c\.pem ends within a certificate/],
    ['a certificate with half a chain', { certPath: cert + half, keyPath: key }, 'certPath', /\/c\.pem ends within a cert/],
    ['no key', { certPath: cert, keyPath: '' }, 'keyPath', /\/k\.pem cannot be read/],
    ['half a key', { certPath: cert, keyPath: key.slice(0, 100) }, 'keyPath', /\/k\.pem cannot be read/],
    ['a key with a passphrase', { certPath: cert, keyPath: String(encrypted) }, 'keyPath', /\/k\.pem cannot be read/],
    [
      'the key of another certificate',
      { certPath: cert, keyPath: other.key },
      'keyPath',
      /key \/k\.pem is not that of the certificate \/c\.pem/,
    ],
  ])('%s', (_what, texts, file, message) => {
    const fault = faultOf(() => certificateOf(texts, PATHS));
    expect(fault).toEqual([file, expect.stringMatching(message)]);
    expect(fault[1]).not.toContain('-----');
  });

  test.each([
    ['an empty chain', '', /there is no certificate in \/chain\.pem/],
    ['a chain that is not a certificate', 'to be copied here', /there is no certificate in \/chain\.pem/],
    ['half a chain', half, /\/chain\.pem ends within a certificate/],
    ['a damaged chain', cert + damaged, /certificate 2 of \/chain\.pem cannot be read/],
  ])('%s', (_what, chain, message) => {
    expect(faultOf(() => certificateOf({ certPath: cert, keyPath: key, chainCertPath: chain }, WITH_CHAIN))).toEqual([
      'chainCertPath',
      expect.stringMatching(message),
    ]);
  });

  test('although OpenSSL would do without a chain that it cannot read', () => {
    expect(() => createSecureContext({ cert: `${cert}to be copied here`, key })).not.toThrow();
  });
});

describe('files', () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'certificate-files-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('are read, and a missing file is named', async () => {
    const tls = { certPath: join(folder, 'c.pem'), keyPath: join(folder, 'k.pem'), chainCertPath: join(folder, 'chain.pem') };
    expect(filesOf(tls)).toEqual([tls.certPath, tls.keyPath, tls.chainCertPath]);
    writeFileSync(tls.certPath, cert);
    writeFileSync(tls.keyPath, key);
    await expect(readCertificate(tls)).rejects.toMatchObject({
      file: 'chainCertPath',
      message: expect.stringContaining(tls.chainCertPath),
    });
    writeFileSync(tls.chainCertPath, intermediate);
    expect((await readCertificate(tls)).cert).toBe(cert + intermediate);
  });
});
