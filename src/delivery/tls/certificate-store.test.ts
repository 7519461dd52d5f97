import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { selfSigned } from '../../../test/fakes/self-signed.ts';
import type { VirtualHost } from '../../core/virtual-host.ts';
import { CertificateStore } from './certificate-store.ts';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'certificate-store-'));
  const { cert, key } = selfSigned('media.example');
  writeFileSync(join(folder, 'cert.pem'), cert);
  writeFileSync(join(folder, 'key.pem'), key);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function virtualHost(tls: { certPath: string; keyPath: string } | undefined): VirtualHost {
  return { name: 'media', hostNames: ['media.example'], definition: { config: { host: { tls } } } } as unknown as VirtualHost;
}

function secured(): VirtualHost {
  return virtualHost({ certPath: join(folder, 'cert.pem'), keyPath: join(folder, 'key.pem') });
}

it('has the certificate of a virtual host as long as it is there', async () => {
  const store = new CertificateStore(new RecordingLogger());
  store.follow([secured()]);
  await store.settled();
  expect([store.available, store.loaded.map(({ hostNames }) => hostNames)]).toEqual([true, [['media.example']]]);
  store.follow([]);
  await store.settled();
  expect([store.available, store.loaded]).toEqual([false, []]);
});

it.each(['at once', 'later'])('has none for a virtual host without TLS that takes the name of one with TLS %s', async (when) => {
  const store = new CertificateStore(new RecordingLogger());
  store.follow([secured()]);
  if (when === 'later') await store.settled();
  store.follow([virtualHost(undefined)]);
  await store.settled();
  expect([store.available, store.loaded]).toEqual([false, []]);
});

it('keeps nothing of a virtual host that went while its files were read', async () => {
  const store = new CertificateStore(new RecordingLogger());
  store.follow([secured()]);
  store.follow([]);
  await store.settled();
  expect(store.available).toBe(false);
});
