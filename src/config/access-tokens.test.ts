import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { ConfigErrors, parseServerConfig } from './index.ts';

const HASH = 'f52fbd32b2b3b86ff88ef6c490628285f482af15ddcb29541f94bcf526a3f6c7';

function tokensOf(api: string, metrics = '') {
  const xml = `<Server version="8"><Name>t</Name><Type>origin</Type><IP>127.0.0.1</IP><Bind/><Managers><API>${api}</API><Metrics>${metrics}</Metrics></Managers></Server>`;
  return parseServerConfig(xml, '/etc/millrace/Server.xml').config.managers.api.accessTokens;
}

function faultOf(api: string, metrics = ''): string {
  try {
    tokensOf(api, metrics);
  } catch (error) {
    if (error instanceof ConfigErrors) return error.message;
    throw error;
  }
  return 'accepted';
}

const token = (inner: string): string => `<Token>${inner}</Token>`;
const list = (...tokens: readonly string[]): string => `<AccessTokens>${tokens.map(token).join('')}</AccessTokens>`;

test('tokens are read-only unless they have write access', () => {
  const both = list('<Name>a</Name><Value>one</Value>', `<Name>b</Name><Value>sha256:${HASH}</Value><Access>Write</Access>`);
  expect(tokensOf(both)).toEqual([
    { name: 'a', value: 'one', access: 'read' },
    { name: 'b', value: `sha256:${HASH}`, access: 'write' },
  ]);
});

test.each([
  ['a name', list('<Value>one</Value>'), /Name/],
  ['a name that is not empty', list('<Name></Name><Value>one</Value>'), /Name/],
  ['unique names', list('<Name>a</Name><Value>one</Value>', '<Name>a</Name><Value>two</Value>'), /two tokens of the name 'a'/],
  ['unique tokens', list('<Name>a</Name><Value>one</Value>', '<Name>b</Name><Value>one</Value>'), /Value of the token 'b' is that of 'a'/],
  [
    'a token other than the first token',
    `<AccessToken>one</AccessToken>${list('<Name>b</Name><Value>one</Value>')}`,
    /'b' is that of 'AccessToken'/,
  ],
  [
    'a token other than a hashed token',
    list('<Name>a</Name><Value>millrace</Value>', `<Name>b</Name><Value>sha256:${sha('millrace')}</Value>`),
    /Value of the token 'b' is that of 'a'/,
  ],
  ['a known access', list('<Name>a</Name><Value>one</Value><Access>admin</Access>'), /Access.*admin/],
  ['a whole hash', list(`<Name>a</Name><Value>sha256:${HASH.slice(1)}</Value>`), /token 'a' must be the token itself, or 'sha256:' and 64/],
  [
    'a whole hash in AccessToken',
    `<AccessToken>sha256:${HASH}0</AccessToken>`,
    /AccessToken must be the token itself, or 'sha256:' and 64/,
  ],
])('needs %s', (_what, api, message) => {
  expect(faultOf(api)).toMatch(message);
  expect(faultOf(api)).not.toContain(HASH.slice(1, 60));
});

test('any number of tokens may have no value', () => {
  expect(faultOf(list('<Name>a</Name>', '<Name>b</Name><Value></Value>'))).toBe('accepted');
});

function sha(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

test.each([
  [
    'is not a token of the API',
    '<AccessToken>one</AccessToken>',
    'one',
    /AccessToken of Managers\/Metrics is that of 'Managers\/API\/AccessToken'/,
  ],
  ['is not a further token of the API', list('<Name>b</Name><Value>two</Value>'), `sha256:${sha('two')}`, /is that of 'b'/],
  ['is a whole hash', '', 'sha256:12', /AccessToken of Managers\/Metrics must be the token itself, or 'sha256:' and 64/],
])('the token of metrics %s', (_what, api, value, message) => {
  expect(faultOf(api, `<AccessToken>${value}</AccessToken>`)).toMatch(message);
});

test.each(['-1', '10001', 'many'])('MaxStreams %s is refused', (value) => {
  expect(faultOf('', `<MaxStreams>${value}</MaxStreams>`)).toMatch(/MaxStreams/);
});
