import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { selfSigned } from '../../../test/fakes/self-signed.ts';
import { until } from '../../../test/harness/poll.ts';
import { whileTurning } from '../../../test/support/turns-during.ts';
import type { VirtualHost } from '../../core/virtual-host.ts';
import { Conditions } from '../../util/conditions.ts';
import type { Certificate } from './certificate-index.ts';
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

it('has the certificate of a virtual host while the host exists', async () => {
  const store = new CertificateStore(new RecordingLogger());
  store.follow([secured()]);
  await store.settled();
  expect([store.available, store.loaded.map(({ hostNames }) => hostNames)]).toEqual([true, [['media.example']]]);
  store.follow([]);
  await store.settled();
  expect([store.available, store.loaded]).toEqual([false, []]);
});

it.each(['at once', 'later'])('has no certificate for a virtual host without TLS that takes the name of one with TLS %s', async (when) => {
  const store = new CertificateStore(new RecordingLogger());
  store.follow([secured()]);
  if (when === 'later') await store.settled();
  store.follow([virtualHost(undefined)]);
  await store.settled();
  expect([store.available, store.loaded]).toEqual([false, []]);
});

it('follows a virtual host through other files, no files, and the first files again', async () => {
  const store = new CertificateStore(new RecordingLogger());
  const { cert, key } = selfSigned('other.example');
  writeFileSync(join(folder, 'other-cert.pem'), cert);
  writeFileSync(join(folder, 'other-key.pem'), key);
  const vhost = secured() as Omit<VirtualHost, 'definition'> & { definition: { config: { host: { tls: unknown } } } };
  const follow = async (tls: unknown): Promise<string | undefined> => {
    vhost.definition.config.host.tls = tls;
    store.follow([vhost as unknown as VirtualHost]);
    await store.settled();
    return store.loaded[0]?.cert;
  };
  const first = await follow({ certPath: join(folder, 'cert.pem'), keyPath: join(folder, 'key.pem') });
  expect(await follow({ certPath: join(folder, 'other-cert.pem'), keyPath: join(folder, 'other-key.pem') })).toContain(cert.trim());
  expect(await follow(undefined)).toBeUndefined();
  expect(await follow({ certPath: join(folder, 'cert.pem'), keyPath: join(folder, 'key.pem') })).toBe(first);
  store.close();
});

it('drops the certificate of a virtual host removed while its files were read', async () => {
  const store = new CertificateStore(new RecordingLogger());
  store.follow([secured()]);
  store.follow([]);
  await store.settled();
  expect(store.available).toBe(false);
});

describe('files of a host', () => {
  const QUICK = { poll: 30, settle: 10 };

  interface Host {
    readonly vhost: VirtualHost;
    write(cert: string, key?: string): void;
  }

  function host(name: string): Host {
    const own = join(folder, name);
    mkdirSync(own, { recursive: true });
    const [certPath, keyPath] = [join(own, 'cert.pem'), join(own, 'key.pem')];
    rmSync(certPath, { force: true });
    rmSync(keyPath, { force: true });
    const vhost = { name, hostNames: [name], definition: { config: { host: { tls: { certPath, keyPath } } } } } as unknown as VirtualHost;
    const write = (cert: string, key?: string): void => {
      writeFileSync(certPath, cert);
      if (key !== undefined) writeFileSync(keyPath, key);
    };
    return { vhost, write };
  }

  function storeOf(...hosts: readonly Host[]) {
    const [logger, conditions] = [new RecordingLogger(), new Conditions()];
    const store = new CertificateStore(logger, { conditions, times: QUICK });
    onTestFinished(() => store.close());
    let told: readonly Certificate[] = [];
    store.addFollower((all) => {
      told = all;
    });
    store.follow(hosts.map(({ vhost }) => vhost));
    const errors = (): string[] => logger.lines.filter(({ level }) => level === 'error').map(({ message }) => message);
    return { store, logger, conditions, errors, keys: () => told.map(({ hostNames, key }) => [hostNames[0], key]) };
  }

  it('are followed: a renewed pair is used without a reload', async () => {
    const [a, b] = [host('a.example'), host('b.example')];
    const [first, second, fixed] = [selfSigned('a.example'), selfSigned('a.example'), selfSigned('b.example')];
    a.write(first.cert, first.key);
    b.write(fixed.cert, fixed.key);
    const { store, logger, errors, keys } = storeOf(a, b);
    await store.settled();
    expect(keys()).toEqual([
      ['a.example', first.key],
      ['b.example', fixed.key],
    ]);
    a.write(second.cert, second.key);
    await until('the new pair', () => keys()[0]?.[1] === second.key);
    expect(keys()[1]).toEqual(['b.example', fixed.key]);
    expect(errors()).toEqual([]);
    expect(logger.matching("certificate of virtual host 'a.example' renewed from its files").map(({ fields }) => fields)).toEqual([
      { vhost: 'a.example', validTo: '2049-12-31T23:59:59.000Z' },
    ]);
  });

  it('keep the old pair while half of the new pair is there, and log that once', async () => {
    const a = host('half.example');
    const [first, second] = [selfSigned('half.example'), selfSigned('half.example')];
    a.write(first.cert, first.key);
    const { store, conditions, errors, keys } = storeOf(a);
    await store.settled();
    a.write(second.cert);
    await until('the fault', () => errors().length > 0);
    expect(conditions.reasons).toEqual(['the certificate files of a virtual host cannot be used']);
    // The same half again is the same fault.
    for (const _time of [1, 2, 3]) {
      a.write(second.cert);
      await store.reload([]);
    }
    expect(keys()).toEqual([['half.example', first.key]]);
    a.write(second.cert, second.key);
    await until('the new pair', () => keys()[0]?.[1] === second.key);
    expect(errors()).toEqual([
      expect.stringMatching(
        /^certificate of virtual host 'half\.example': the key .*key\.pem is not that of the certificate .*cert\.pem; the one before stays until the files change$/,
      ),
    ]);
    expect(conditions.reasons).toEqual([]);
  });

  it('may be created after the host', async () => {
    const a = host('late.example');
    const { store, errors, keys } = storeOf(a);
    await store.settled();
    expect([store.available, keys()]).toEqual([false, []]);
    const pair = selfSigned('late.example');
    a.write(pair.cert, pair.key);
    await until('the certificate is available', () => store.available);
    expect(keys()).toEqual([['late.example', pair.key]]);
    expect(errors()).toEqual([expect.stringMatching(/cannot be read: .*cert\.pem.*; there is none until the files change$/)]);
  });

  it('of several hosts are reloaded all or none, and the log names the host at fault', async () => {
    const [a, b] = [host('one.example'), host('two.example')];
    const [first, second, fixed] = [selfSigned('one.example'), selfSigned('one.example'), selfSigned('two.example')];
    a.write(first.cert, first.key);
    b.write(fixed.cert, fixed.key);
    const logger = new RecordingLogger();
    const store = new CertificateStore(logger, { times: { poll: 3_600_000, settle: 3_600_000 } });
    onTestFinished(() => store.close());
    store.follow([a.vhost, b.vhost]);
    await store.settled();
    a.write(second.cert, second.key);
    b.write('nonsense');
    await expect(store.reload([a.vhost, b.vhost])).rejects.toThrow(/virtual host 'two\.example'/);
    expect(store.loaded.map(({ key }) => key)).toEqual([first.key, fixed.key]);
    expect(logger.lines.at(-1)).toMatchObject({
      level: 'error',
      message: expect.stringMatching(/^certificates were not reloaded: .*'two\.example'.* there is no certificate in .*cert\.pem/),
    });
    await store.reload([a.vhost]);
    expect(store.loaded.map(({ key }) => key)).toEqual([second.key, fixed.key]);
  });

  it('are in use when a reload is answered', async () => {
    const a = host('slow.example');
    const pair = selfSigned('slow.example');
    a.write(pair.cert, pair.key);
    const { store } = storeOf(a);
    await store.settled();
    const { promise, resolve } = Promise.withResolvers<void>();
    let told = 0;
    store.addFollower(() => {
      told += 1;
      return promise;
    });
    const order: string[] = [];
    const reloading = store.reload([a.vhost]).then(() => order.push('answered'));
    await until('the port gets the certificate', () => told === 2);
    await new Promise((done) => setImmediate(done));
    order.push('in use');
    resolve();
    await reloading;
    expect(order).toEqual(['in use', 'answered']);
  });

  it('reads the certificates of many hosts one after the other', async () => {
    const store = new CertificateStore(new RecordingLogger());
    onTestFinished(() => store.close());
    const hosts = Array.from({ length: 60 }, () => secured());
    store.follow(hosts);
    await store.settled();
    const reads = (): number => process.getActiveResourcesInfo().filter((resource) => resource === 'FSReqPromise').length;
    await until('the watches over the files are calm', () => reads() === 0);
    let most = 0;
    await whileTurning(
      () => store.reload(hosts),
      () => {
        most = Math.max(most, reads());
      },
    );
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThan(10);
  });
});
