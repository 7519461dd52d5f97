import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { selfSigned } from '../../../test/fakes/self-signed.ts';
import { Conditions } from '../../util/conditions.ts';
import { HostCertificate } from './host-certificate.ts';

const NEVER = { poll: 3_600_000, settle: 3_600_000 };
let folder = '';
let tls = { certPath: '', keyPath: '' };
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'host-certificate-'));
  tls = { certPath: join(folder, 'cert.pem'), keyPath: join(folder, 'key.pem') };
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write({ cert, key }: { cert: string; key: string }): void {
  writeFileSync(tls.certPath, cert);
  writeFileSync(tls.keyPath, key);
}

function made() {
  const [logger, conditions] = [new RecordingLogger(), new Conditions()];
  const certificate = new HostCertificate({
    ...{ tls, logger, conditions, what: 'certificate of the test', whoseFault: 'the test', fields: { vhost: 'v' }, times: NEVER },
    onFiles: async () => undefined,
  });
  onTestFinished(() => certificate.close());
  const lines = (): string[] => logger.lines.map(({ level, message }) => `${level}: ${message}`);
  return { certificate, conditions, lines };
}

test('logs each fault once with the certificate that stays, and its end', async () => {
  const [first, second] = [selfSigned('a'), selfSigned('a')];
  write(first);
  const { certificate, conditions, lines } = made();
  expect([await certificate.renew(), await certificate.renew(), lines()]).toEqual([true, false, []]);
  write({ ...second, key: first.key });
  for (const _time of [1, 2, 3]) expect(await certificate.renew()).toBe(false);
  writeFileSync(tls.keyPath, 'half');
  for (const _time of [1, 2, 3]) expect(await certificate.renew()).toBe(false);
  expect([certificate.pair?.key, conditions.reasons]).toEqual([first.key, ['the certificate files of the test cannot be used']]);
  write(second);
  expect([await certificate.renew(), certificate.pair?.key, conditions.reasons]).toEqual([true, second.key, []]);
  expect(lines()).toEqual([
    `error: certificate of the test: the key ${tls.keyPath} is not that of the certificate ${tls.certPath}; the one before stays until the files change`,
    expect.stringMatching(/^error: certificate of the test: .*key\.pem cannot be read.*; the one before stays until the files change$/),
    'info: certificate of the test renewed from its files',
  ]);
});

test('a reload reports a fault to its caller, and keeps the previous certificate', async () => {
  const pair = selfSigned('a');
  write(pair);
  const { certificate } = made();
  expect((await certificate.reload()).key).toBe(pair.key);
  rmSync(tls.certPath);
  await expect(certificate.reload()).rejects.toThrow(/^certificate of the test: the file cannot be read: ENOENT.*cert\.pem/);
  expect(certificate.pair?.key).toBe(pair.key);
});

test('a result read after the close is neither used nor logged', async () => {
  write({ cert: 'none', key: 'none' });
  const bad = made();
  const failing = bad.certificate.renew();
  bad.certificate.close();
  expect([await failing, bad.conditions.reasons, bad.lines()]).toEqual([false, [], []]);

  write(selfSigned('a'));
  const good = made();
  const [renewing, reloading] = [good.certificate.renew(), good.certificate.reload()];
  good.certificate.close();
  // Another one may have its name by now.
  good.conditions.raise('certificate of the test', 'that of another');
  expect([await renewing, (await reloading).cert === '', good.certificate.pair]).toEqual([false, false, null]);
  expect(good.conditions.reasons).toEqual(['that of another']);
});

test('a close clears its condition', async () => {
  write({ cert: 'none', key: 'none' });
  const { certificate, conditions } = made();
  await certificate.renew();
  expect(conditions.reasons).toHaveLength(1);
  certificate.close();
  certificate.close();
  expect(conditions.reasons).toEqual([]);
});
