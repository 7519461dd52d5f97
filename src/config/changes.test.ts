import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { atOnce } from '../util/in-slices.ts';
import { changeSentence, configChangeSteps, configChanges, followedSteps } from './changes.ts';
import { sealed } from './secrets.ts';
import { defaultServerFile, parseServerConfig } from './server-file.ts';

interface Parts {
  readonly api?: string;
  readonly bind?: string;
  readonly more?: string;
  readonly host?: string;
  readonly apps?: string;
}

const APP =
  '<Application><Name>live</Name><Type>live</Type><Publishers><LLHLS><ChunkDuration>0.5</ChunkDuration></LLHLS></Publishers></Application>';

function config({ api = '', bind = '', more = '', host = '', apps = APP }: Parts = {}) {
  const xml = `<Server version="8"><Type>origin</Type><IP>*</IP>
    <Bind>${bind}</Bind><Managers><API>${api}</API></Managers>${more}
    <VirtualHosts><VirtualHost><Name>default</Name><Host><Names><Name>*</Name></Names></Host>${host}
      <Applications>${apps}</Applications></VirtualHost></VirtualHosts></Server>`;
  return parseServerConfig(xml, 'Server.xml').config;
}

function sentences(before: Parts, after: Parts): string[] {
  return configChanges(config(before), config(after)).map(changeSentence);
}

const IN_APP = 'Server/VirtualHosts/VirtualHost[default]/Applications/Application[live]';
const ANEW = "(application 'default/live' starts anew, its streams end)";
const RESTART = '(needs a restart, the setting before holds until then)';

test('the same configuration has no changes, also where a default is written out', () => {
  expect(sentences({}, {})).toEqual([]);
  expect(sentences({}, { more: '<Limits><PerApplication><Streams>1000</Streams></PerApplication></Limits>' })).toEqual([]);
  const shipped = readFileSync(defaultServerFile, 'utf8');
  const [one, other] = [parseServerConfig(shipped, 'a').config, parseServerConfig(shipped, 'a').config];
  expect(configChanges(one, JSON.parse(JSON.stringify(other)))).toEqual([]);
});

test.each<[string, Parts, Parts, string[]]>([
  [
    'a setting of an application',
    {},
    { apps: APP.replace('0.5', '0.2') },
    [`${IN_APP}/Publishers/LLHLS/ChunkDuration changed: 0.5 → 0.2 ${ANEW}`],
  ],
  [
    'an added and a removed application',
    { apps: APP },
    { apps: '<Application><Name>news</Name><Type>live</Type></Application>' },
    [`${IN_APP} removed`, `${IN_APP.replace('live', 'news')} added`],
  ],
  [
    'a key, which changes at run time and is not shown',
    { apps: '<Application><Name>live</Name><Type>live</Type><PublishKeys/></Application>' },
    {
      apps: `<Application><Name>live</Name><Type>live</Type><PublishKeys>
        <PublishKey><Name>anna</Name><Key>a-secret-of-anna-1</Key></PublishKey></PublishKeys></Application>`,
    },
    [`${IN_APP}/PublishKeys/PublishKey[anna] added`],
  ],
  [
    'the key of a signed policy',
    {
      host: `<SignedPolicy><PolicyQueryKeyName>policy</PolicyQueryKeyName><SignatureQueryKeyName>signature</SignatureQueryKeyName>
        <SecretKey>first</SecretKey></SignedPolicy>`,
    },
    {
      host: `<SignedPolicy><PolicyQueryKeyName>policy</PolicyQueryKeyName><SignatureQueryKeyName>signature</SignatureQueryKeyName>
        <SecretKey>second</SecretKey></SignedPolicy>`,
    },
    ['Server/VirtualHosts/VirtualHost[default]/SignedPolicy/SecretKey changed'],
  ],
  [
    'the token of the API and its origins',
    { api: '<AccessToken>first</AccessToken>' },
    { api: '<AccessToken>second</AccessToken><CrossDomains><Url>https://a.example</Url></CrossDomains>' },
    ['Server/Managers/API/AccessToken changed', 'Server/Managers/API/CrossDomains added'],
  ],
  [
    'a port, and modules',
    { bind: '<Providers><RTMP><Port>1935</Port></RTMP></Providers>' },
    { bind: '<Providers><RTMP><Port>1936</Port></RTMP></Providers>', more: '<Modules><HTTP2><Enable>false</Enable></HTTP2></Modules>' },
    [`Server/Modules/HTTP2/Enable changed: true → false ${RESTART}`, `Server/Bind/Providers/RTMP/Port changed: 1935 → 1936 ${RESTART}`],
  ],
  ['settings without effect', {}, { more: '<Analytics><UserKey>x</UserKey></Analytics>' }, ['Server/Analytics added (has no effect)']],
  [
    'limits and the level of the log',
    {},
    { more: '<Limits><PerApplication><Streams>5</Streams></PerApplication></Limits><Log><Level>debug</Level></Log>' },
    ['Server/Log/Level changed: "info" → "debug"', 'Server/Limits/PerApplication/Streams changed: 1000 → 5'],
  ],
  [
    'the order of applications',
    { apps: `${APP}<Application><Name>news</Name><Type>live</Type></Application>` },
    { apps: `<Application><Name>news</Name><Type>live</Type></Application>${APP}` },
    ['Server/VirtualHosts/VirtualHost[default]/Applications/Application reordered'],
  ],
])('names %s', (_what, before, after, told) => {
  expect(sentences(before, after)).toEqual(told);
});

test('only followed changes differ afterwards, and equal parts stay the same objects', () => {
  const running = config({ bind: '<Providers><RTMP><Port>1935</Port></RTMP></Providers>' });
  const next = config({
    bind: '<Providers><RTMP><Port>1936</Port></RTMP></Providers>',
    apps: `${APP}<Application><Name>news</Name><Type>live</Type></Application>`,
    api: '<AccessToken>second</AccessToken>',
  });
  const after = atOnce(followedSteps(running, next));
  expect(configChanges(after, next).map(({ path }) => path)).toEqual(['Server/Bind/Providers/RTMP/Port']);
  expect(after.virtualHosts[0]?.applications[0]).toBe(running.virtualHosts[0]?.applications[0]);
  expect(after.virtualHosts[0]?.host).toBe(running.virtualHosts[0]?.host);
  expect(atOnce(followedSteps(running, config({ bind: '<Providers><RTMP><Port>1935</Port></RTMP></Providers>' })))).toBe(running);
});

test('a sealed copy contains no secret, and still shows which secret changed', () => {
  const seal = (secret: string): string => `<${secret.length}>`;
  const app = (key: string) =>
    `<Application><Name>live</Name><Type>live</Type><PublishKeys><PublishKey><Name>anna</Name><Key>${key}</Key></PublishKey></PublishKeys></Application>`;
  const [one, other] = ['topsecret', 'topsecrets'].map((token) =>
    config({ api: `<AccessToken>${token}</AccessToken>`, apps: app(`${token}-of-anna-1234`) }),
  );
  if (one === undefined || other === undefined) throw new Error('two are made');
  expect(JSON.stringify(sealed(one, seal))).not.toContain('topsecret');
  expect(configChanges(sealed(one, seal), sealed(one, seal))).toEqual([]);
  expect(configChanges(sealed(one, seal), sealed(other, seal)).map(({ path, values }) => [path, values])).toEqual([
    ['Server/Managers/API/AccessToken', ''],
  ]);
});

test('a long list of applications is compared in a step for each', () => {
  const many = (count: number, more = '') =>
    config({
      apps: Array.from({ length: count }, (_, n) => `<Application><Name>app${n}</Name><Type>live</Type>${more}</Application>`).join(''),
    });
  const [running, same, fewer] = [many(100), many(100), many(99)];
  const stepsOf = (steps: Iterable<unknown>): number => [...steps].length;
  for (const next of [same, fewer, many(100, '<Providers><RTMP/></Providers>')]) {
    expect(stepsOf(configChangeSteps(running, next))).toBeGreaterThanOrEqual(100);
    expect(stepsOf(followedSteps(running, next))).toBeGreaterThanOrEqual(99);
  }
  expect(configChanges(running, same)).toEqual([]);
  expect(atOnce(followedSteps(running, same))).toBe(running);
  expect(configChanges(running, fewer).map(changeSentence)).toEqual([expect.stringContaining('Application[app99] removed')]);
  const after = atOnce(followedSteps(running, fewer));
  expect(after.virtualHosts[0]?.applications).toHaveLength(99);
  expect(after.virtualHosts[0]?.applications.every((application, n) => application === running.virtualHosts[0]?.applications[n])).toBe(
    true,
  );
});
