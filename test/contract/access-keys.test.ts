/** Publish keys and play tokens through the API: when they are shown, what is stored, and what a change leaves as it is. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { grantOf } from '../../src/access/access-keys.ts';
import { restoreVirtualHosts } from '../../src/core/restored-state.ts';
import type { StateStore } from '../../src/state/state-store.ts';
import { hashKey, saltOf } from '../../src/util/key-hash.ts';
import { fitsKey } from '../support/fits-key.ts';
import { APP, checkedCalls, done, error, FILE_APP, found } from './checked-calls.ts';
import { type ApiHarness, startApi } from './harness.ts';

const KEY = 'a-key-that-somebody-chose';

let api: ApiHarness;
beforeEach(async () => {
  api = await startApi();
  await createApp();
});
afterEach(() => api.close());

const { call, createApp } = checkedCalls(() => api);

const LISTS = [
  { list: 'publishKeys', noun: 'publish key', secret: 'key' },
  { list: 'playTokens', noun: 'play token', secret: 'token' },
] as const;

/** The definition in the core, and the document on disk. */
const held = (): string => JSON.stringify([api.orchestrator.application('v', 'a')?.definition, [...api.store.documents.values()]]);
const hashOf = (list: 'publishKeys' | 'playTokens', name: string): string =>
  api.orchestrator.application('v', 'a')?.definition.config[list]?.find((key) => key.name === name)?.hash ?? '';

describe.each(LISTS)('$list', ({ list, noun, secret }) => {
  const path = `${APP}/${list}`;

  test('a key of the server is shown once, and kept hashed', async () => {
    await api.publish('v', 'a', 'live');
    expect(await call('GET', path)).toEqual(found([]));
    const { status, json } = await call('POST', path, { name: 'one' });
    expect([status, json.statusCode, json.message]).toEqual([201, 201, 'Created']);
    expect(json.response).toEqual({
      name: 'one',
      created: new Date(api.clock.now()).toISOString(),
      [secret]: expect.stringMatching(/^[\w-]{32}$/),
    });
    const key: string = json.response[secret];
    expect(fitsKey(hashOf(list, 'one'), key)).toBe(true);
    expect(held()).not.toContain(key);
    expect(held()).toContain(hashOf(list, 'one'));
    const { [secret]: _shown, ...left } = json.response;
    expect(await call('GET', path)).toEqual(found([left]));
    expect((await call('GET', APP)).json.response[list]).toEqual([left]);
    // The application was not restarted.
    expect((await call('GET', `${APP}/streams`)).json.response).toEqual(['live']);
  });

  test('a key may be given, with its end and its streams, or as a hash', async () => {
    const more = { expires: '2100-01-31T18:00:00Z', streams: 'show-*' };
    const made = await call('POST', path, { name: 'one', [secret]: KEY, ...more });
    expect([made.status, made.json.response]).toMatchObject([201, { name: 'one', [secret]: KEY, ...more }]);
    const hash = hashOf(list, 'one');
    expect(fitsKey(hash, KEY)).toBe(true);
    const hashed = await call('POST', path, { name: 'two', hash });
    expect([hashed.status, Object.keys(hashed.json.response).sort()]).toEqual([201, ['created', 'name']]);
    expect([hashOf(list, 'two'), held().includes(KEY)]).toEqual([hash, false]);
    expect((await call('GET', path)).json.response).toMatchObject([{ name: 'one', ...more }, { name: 'two' }]);
    expect(JSON.stringify((await call('GET', path)).json)).not.toContain('sha256');
  });

  test('are removed by name; an empty list still requires a key', async () => {
    await call('POST', path, { name: 'one' });
    expect(await call('DELETE', `${path}/two`)).toEqual(error(404, `Could not find the ${noun}: [two]`));
    expect(await call('DELETE', `${path}/one`)).toEqual(done);
    expect(await call('DELETE', `${path}/one`)).toEqual(error(404, `Could not find the ${noun}: [one]`));
    expect((await call('GET', APP)).json.response[list]).toEqual([]);
    expect(api.orchestrator.application('v', 'a')?.definition.config[list]).toEqual([]);
    expect((await call('PATCH', APP, { [list]: null })).json.response[list]).toBeUndefined();
    expect(api.orchestrator.application('v', 'a')?.definition.config[list]).toBeUndefined();
  });

  test('unusable keys are refused, without showing them', async () => {
    await call('POST', path, { name: 'one' });
    expect(await call('POST', path, { name: 'one' })).toEqual(error(409, `The ${noun} already exists: [one]`));
    expect(await call('POST', path, [{ name: 'two' }])).toEqual(error(400, 'Request body must be an object'));
    for (const [body, text] of [
      [{}, 'name is not optional'],
      [{ name: 'a/b' }, 'name must not contain'],
      [{ name: 'two', [secret]: 'short' }, "key 'two': key must have 16 to 256 characters, but has 5"],
      [{ name: 'two', [secret]: `${KEY} ${KEY}` }, "key 'two': key must be letters, digits and _ . ~ -"],
      [{ name: 'two', [secret]: KEY, hash: hashOf(list, 'one') }, 'key and hash must not both be given'],
      [{ name: 'two', expires: 'soon' }, "expires must be a time as 2026-01-31 or 2026-01-31T18:00:00Z, but got 'soon'"],
      [{ name: 'two', lastUsed: 'x' }, 'Unknown item found'],
    ] as const) {
      const { status, json } = await call('POST', path, body);
      expect([status, json.message]).toEqual([400, expect.stringContaining(text)]);
      expect(json.message).not.toContain(KEY);
    }
    expect((await call('GET', path)).json.response).toHaveLength(1);
  });

  test('an application has a hundred at most', async () => {
    const [one, ...keys] = Array.from({ length: 100 }, (_, n) => ({ name: `k${n}`, key: `${KEY}${n}` }));
    await call('PATCH', APP, { [list]: keys });
    expect((await call('POST', path, one)).status).toBe(201);
    expect(await call('POST', path, { name: 'more' })).toEqual(error(400, `Too many of the kind ${noun}: an application may have 100`));
  });

  test('keys of one list share a salt, so that a given key is hashed once', async () => {
    const salted = hashKey(KEY, 'salt-of-before');
    await call('POST', path, { name: 'zero', hash: salted });
    for (const name of ['one', 'two']) await call('POST', path, { name });
    await call('POST', path, { name: 'three', [secret]: `${KEY}-3` });
    expect(['zero', 'one', 'two', 'three'].map((name) => saltOf(hashOf(list, name)))).toEqual(Array(4).fill('salt-of-before'));
    expect(fitsKey(hashOf(list, 'three'), `${KEY}-3`)).toBe(true);
  });

  test('keys of a configuration file are listed, and read-only', async () => {
    expect(await call('GET', `${FILE_APP}/${list}`)).toEqual(found([]));
    const readOnly = error(403, 'The VirtualHost is read-only: [default]');
    expect(await call('POST', `${FILE_APP}/${list}`, { name: 'one' })).toEqual(readOnly);
    expect(await call('DELETE', `${FILE_APP}/${list}/one`)).toEqual(readOnly);
  });

  test('a change that the disk refuses has not happened', async () => {
    await call('POST', path, { name: 'one' });
    const before = held();
    api.store.full = true;
    expect(await call('POST', path, { name: 'two' })).toEqual(error(500, 'Failed to save the keys of the application: [v/a]'));
    expect(await call('DELETE', `${path}/one`)).toEqual(error(500, 'Failed to save the keys of the application: [v/a]'));
    api.store.full = false;
    expect(held()).toBe(before);
  });

  test('the time of the last use is listed', async () => {
    await call('POST', path, { name: 'one', expires: '2031-01-31', streams: 'live-*' });
    const asked: string[] = [];
    api.keyUses.usedAt = (grant) => {
      asked.push(grant);
      return Date.UTC(2030, 0, 31);
    };
    const [{ lastUsed }] = (await call('GET', path)).json.response;
    expect(Date.parse(lastUsed)).toBe(Date.UTC(2030, 0, 31));
    const [key] = api.orchestrator.application('v', 'a')?.definition.config[list] ?? [];
    expect(asked).toEqual([grantOf({ vhost: 'v', app: 'a', list }, key ?? { name: '' })]);
  });
});

test('definitions of applications accept keys and show only their names', async () => {
  const keys = { publishKeys: [{ name: 'one', key: KEY }], playTokens: [{ name: 'two', token: KEY, streams: 'x' }] };
  const created = await call('POST', '/v1/vhosts/v/apps', [{ name: 'b', type: 'live', ...keys }]);
  const shown = { publishKeys: [{ name: 'one' }], playTokens: [{ name: 'two', streams: 'x' }] };
  expect(created.json[0].response).toMatchObject(shown);
  const nested = await call('POST', '/v1/vhosts', [
    { name: 'w', host: { names: ['w'] }, applications: [{ name: 'c', type: 'live', ...keys }] },
  ]);
  expect(nested.status).toBe(200);
  for (const path of ['/v1/vhosts/v/apps/b', '/v1/vhosts/w/apps/c']) {
    const { json } = await call('GET', path);
    expect(json.response).toMatchObject(shown);
    expect(JSON.stringify(json)).not.toMatch(/sha256|hash/);
  }
  expect(JSON.stringify([created, nested, ...api.store.documents.values()])).not.toContain(KEY);
  expect(JSON.stringify(api.logger.lines)).not.toContain(KEY);
});

test('a client that sends back a shown definition changes no key', async () => {
  await call('PATCH', APP, { publishKeys: [{ name: 'one', key: KEY }] });
  await call('POST', `${APP}/publishKeys`, { name: 'two', streams: 'x' });
  const [one, two] = [hashOf('publishKeys', 'one'), hashOf('publishKeys', 'two')];
  const { publishKeys } = (await call('GET', APP)).json.response;
  const { status } = await call('PATCH', APP, { publishKeys: [...publishKeys, { name: 'three', key: KEY }] });
  expect([status, hashOf('publishKeys', 'one'), hashOf('publishKeys', 'two')]).toEqual([200, one, two]);
  expect(fitsKey(hashOf('publishKeys', 'three'), KEY)).toBe(true);
  // A change of another member, too.
  await call('PATCH', APP, { type: 'vod' });
  await call('POST', `${APP}/outputProfiles`, [
    { name: 'p', outputStreamName: '${OriginStreamName}_p', encodes: { videos: [{ name: 'v', bypass: true }] } },
  ]);
  expect(hashOf('publishKeys', 'one')).toBe(one);
  expect((await call('PATCH', APP, { publishKeys: [{ name: 'four' }] })).json.message).toContain("key 'four': key or hash must be given");
});

test('gatekeepers are notified of every change at once', async () => {
  const names = (): unknown => {
    const lists = api.hostChanges.at(-1)?.get('v')?.applications.get('a');
    return [lists?.publishKeys?.map(({ name }) => name), lists?.playTokens?.map(({ name }) => name)];
  };
  await call('POST', `${APP}/publishKeys`, { name: 'one' });
  expect(names()).toEqual([['one'], undefined]);
  await call('POST', `${APP}/playTokens`, { name: 'two' });
  expect(names()).toEqual([['one'], ['two']]);
  await call('DELETE', `${APP}/publishKeys/one`);
  expect(names()).toEqual([[], ['two']]);
  await call('PATCH', APP, { publishKeys: null, playTokens: null });
  expect(names()).toEqual([undefined, undefined]);
  // A new key admits clients while it is still being saved.
  api.store.full = true;
  const changes = api.hostChanges.length;
  await call('POST', '/v1/vhosts/v/apps', [{ name: 'b', type: 'live', publishKeys: [] }]);
  expect(api.hostChanges.length).toBe(changes + 2);
});

test('keys are restored from the state folder', async () => {
  await call('POST', `${APP}/publishKeys`, { name: 'one', expires: '2100-01-31', streams: 'x' });
  const before = api.orchestrator.application('v', 'a')?.definition;
  const other = await startApi();
  const store = { load: async () => [...api.store.documents.values()] } as unknown as StateStore;
  await restoreVirtualHosts(store, other.orchestrator, { logger: other.logger, reading: {} });
  expect(other.orchestrator.application('v', 'a')?.definition.config.publishKeys).toEqual(before?.config.publishKeys);
  await other.close();
});
