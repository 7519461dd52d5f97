import { expect, test } from 'vitest';
import { fitsKey } from '../../test/support/fits-key.ts';
import { saltOf } from '../util/key-hash.ts';
import { ConfigError, readApplication, readVirtualHost } from './index.ts';
import { parseServerConfig } from './server-file.ts';

const KEY = 'a-long-enough-key';
const HASH = 'sha256:c2FsdA:dqHcW-h_x3VFUEPaZ7HrIiQpBrIdSSrHfHvbRYR-5cM';

const serverXml = (members: string): string =>
  `<Server version="8"><Name>s</Name><Type>origin</Type><IP>*</IP><Bind/><VirtualHosts><VirtualHost><Name>v</Name><Applications><Application>
  <Name>app</Name><Type>live</Type>${members}</Application></Applications></VirtualHost></VirtualHosts></Server>`;

const fault = (application: object): string => {
  try {
    readApplication({ name: 'app', type: 'live', ...application });
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return 'no fault';
};

test('a file declares keys by elements; only their hashes are left of them', () => {
  const keys = `<PublishKeys><PublishKey><Name>studio</Name><Key>${KEY}</Key><Expires>2030-01-31</Expires><Streams>show-*</Streams></PublishKey>
    <PublishKey><Name>truck</Name><Hash>${HASH}</Hash></PublishKey></PublishKeys>
    <PlayTokens><PlayToken><Name>site</Name><Token>${KEY}</Token></PlayToken></PlayTokens>`;
  const loaded = parseServerConfig(serverXml(keys), 'Server.xml');
  expect(loaded.warnings).toEqual([]);
  const [{ typed, echo } = { typed: null, echo: null }] = loaded.virtualHosts[0]?.applications ?? [];
  expect(typed?.publishKeys).toEqual([
    { name: 'studio', hash: expect.stringMatching(/^sha256:/), expires: '2030-01-31', streams: 'show-*' },
    { name: 'truck', hash: HASH },
  ]);
  expect(fitsKey(typed?.publishKeys?.[0]?.hash ?? '', KEY)).toBe(true);
  expect(fitsKey(typed?.playTokens?.[0]?.hash ?? '', KEY)).toBe(true);
  expect([echo?.['publishKeys'], echo?.['playTokens']]).toEqual([typed?.publishKeys, typed?.playTokens]);
  expect(JSON.stringify(loaded)).not.toContain(KEY);
});

test('keys given in plain text share a salt, so that a key of a peer is hashed once', () => {
  const publishKeys = ['one', 'two'].map((name) => ({ name, key: `${KEY}-${name}` }));
  const { typed } = readApplication({ name: 'app', type: 'live', publishKeys });
  const [one = '', two = ''] = typed.publishKeys?.map(({ hash = '' }) => hash) ?? [];
  expect([one === two, saltOf(one) === saltOf(two), fitsKey(two, `${KEY}-two`)]).toEqual([false, true, true]);
});

test('an empty list differs from no list', () => {
  const [host] = parseServerConfig(serverXml('<PublishKeys/>'), 'Server.xml').virtualHosts;
  expect(host?.applications[0]?.typed).toMatchObject({ publishKeys: [] });
  expect(host?.applications[0]?.typed.playTokens).toBeUndefined();
  expect(readApplication({ name: 'app', type: 'live', playTokens: [] })).toMatchObject({
    typed: { playTokens: [] },
    echo: { playTokens: [] },
  });
});

test('the echo of JSON has hashes for keys, at every level', () => {
  const application = { name: 'app', type: 'live', publishKeys: [{ name: 'a', key: KEY }], playTokens: [{ name: 'b', token: KEY }] };
  const whole = readVirtualHost({ name: 'v', applications: [application] }).applications[0];
  for (const { typed, echo } of [readApplication(application), whole ?? readApplication({})]) {
    expect(echo).toMatchObject({ publishKeys: [{ name: 'a', hash: typed.publishKeys?.[0]?.hash }], playTokens: [{ name: 'b' }] });
    expect(JSON.stringify([typed, echo])).not.toContain(KEY);
    // The saved form is read unchanged.
    expect(readApplication(echo)).toEqual({ typed, echo });
  }
});

const FAULTS: readonly (readonly [application: object, message: string])[] = [
  [{ publishKeys: [{ key: KEY }] }, 'publishKey.name is not optional'],
  [{ publishKeys: [{ name: 'a' }] }, "key 'a': key or hash must be given"],
  [{ publishKeys: [{ name: 'a', key: KEY, hash: HASH }] }, "key 'a': key and hash must not both be given"],
  [{ publishKeys: [{ name: 'a', key: 'too-short' }] }, "key 'a': key must have 16 to 256 characters, but has 9"],
  [{ playTokens: [{ name: 'a', token: `${KEY}&x=y` }] }, "key 'a': key must be letters, digits and _ . ~ -"],
  [{ playTokens: [{ name: 'a', hash: KEY }] }, "key 'a': hash must be sha256:SALT:DIGEST, both in base64url"],
  [{ publishKeys: [{ name: 'a', key: KEY, expires: 'tomorrow' }] }, "key 'a': expires must be a time"],
  [{ publishKeys: [{ name: 'a', key: KEY, streams: '' }] }, "key 'a': streams must have 1 to 256 characters"],
  [{ publishKeys: [{ name: 'a', key: KEY, stream: 'x' }] }, 'Unknown item found: publishKey.stream'],
  [{ publishKeys: ['a', 'b', 'a'].map((name) => ({ name, key: KEY })) }, "application.publishKeys has 'a' twice"],
  [
    { playTokens: Array.from({ length: 101 }, (_, n) => ({ name: `${n}`, hash: HASH })) },
    'application.playTokens must not have more than 100 items',
  ],
];

test.each(FAULTS.map(([application, message]) => ({ application, message })))('$message', ({ application, message }) => {
  const told = fault(application);
  expect(told).toContain(message);
  // Faults are shown and logged.
  expect(told).not.toContain(KEY);
});
