import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { TokenAuth } from './auth.ts';
import { ApiError } from './errors.ts';

const TOKEN = 'user:pass';
const ENCODED = Buffer.from(TOKEN).toString('base64');
const auth = new TokenAuth([{ name: 'main', value: TOKEN, mayWrite: true }]);

const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;

test.each([
  [undefined, 'Authorization header is required to call API'],
  ['', 'Authorization header is required to call API'],
  [`Basic ${ENCODED}`, null],
  [`basic ${ENCODED}`, null],
  [`BASIC ${ENCODED}`, null],
  [`Basic ${ENCODED.replace(/=+$/, '')}`, null],
  [ENCODED, 'Invalid authorization header'],
  [`Basic  ${ENCODED}`, 'Invalid authorization header'],
  [`Basic ${ENCODED} more`, 'Invalid authorization header'],
  ['Digest x', 'Not supported credential type: Digest'],
  ['Bearer x', 'Invalid credential'],
  ['Bearer ', 'Invalid credential format'],
  [`Bearer ${ENCODED}`, 'Invalid credential'],
  [`Bearer ${TOKEN}`, null],
  [`bearer ${TOKEN}`, null],
  ['Basic ', 'Invalid credential format'],
  ['Basic !!!', 'Invalid credential'],
  [`Basic ${Buffer.from('user:pass:').toString('base64')}`, 'Invalid credential'],
  [`Basic ${Buffer.from('user:pasS').toString('base64')}`, 'Invalid credential'],
  [`Basic ${Buffer.from('user:pass\n').toString('base64')}`, 'Invalid credential'],
  [basic('user:'), 'Invalid credential'],
  [basic(':pass'), 'Invalid credential'],
  [basic('x:user:pass'), null],
])('judges %j', (header, message) => {
  for (const _time of [1, 2]) {
    const answer = auth.check(header);
    expect(answer instanceof ApiError ? answer.message : null).toBe(message);
    if (answer instanceof ApiError) expect(answer.status).toBe(401);
    else expect(answer).toEqual({ name: 'main', mayWrite: true });
  }
});

const SECRET = 'S3cret-of-th\u00e9-panel';
const hash = createHash('sha256').update(SECRET, 'utf8').digest('hex');
const several = new TokenAuth([
  { name: 'main', value: 'first', mayWrite: true },
  { name: 'panel', value: `sha256:${hash}`, mayWrite: false },
  { name: 'other', value: `SHA256:${createHash('sha256').update('third').digest('hex').toUpperCase()}`, mayWrite: true },
]);

test.each([
  ['as user, as curl sends TOKEN:', basic(`${SECRET}:`), 'panel'],
  ['as password, as curl sends :TOKEN', basic(`:${SECRET}`), 'panel'],
  ['as password of any user', basic(`x:${SECRET}`), 'panel'],
  ['as the whole credential', basic(SECRET), 'panel'],
  ['as Bearer, in the bytes of UTF-8', `Bearer ${Buffer.from(SECRET, 'utf8').toString('latin1')}`, 'panel'],
  ['of another', basic('first:'), 'main'],
  ['kept as a hash in capitals', 'Bearer third', 'other'],
  ['with a letter too few', basic(`:${SECRET.slice(1)}`), 'Invalid credential'],
  ['in the form in which it is kept', `Bearer sha256:${hash}`, 'Invalid credential'],
  ['that no client has', basic(':'), 'Invalid credential'],
])('accepts any of several tokens %s', (_how, header, expected) => {
  for (const _time of [1, 2]) {
    const answer = several.check(header);
    expect(answer instanceof ApiError ? answer.message : answer.name).toBe(expected);
  }
});

test('returns the rights of a holder, also at repeated requests', () => {
  for (const _time of [1, 2]) {
    expect(several.check(basic(`:${SECRET}`))).toEqual({ name: 'panel', mayWrite: false });
    expect(several.check(basic(':first'))).toEqual({ name: 'main', mayWrite: true });
  }
});

test('any number of spellings is accepted', () => {
  for (let user = 0; user < 200; user += 1) expect(several.check(basic(`${user}:first`))).toMatchObject({ name: 'main' });
});

test('an empty token is refused at once', () => {
  expect(() => new TokenAuth([{ name: 'main', value: '', mayWrite: true }])).toThrow(TypeError);
});

test('half a hash is refused, and not shown', () => {
  const half = `sha256:${hash.slice(2)}`;
  expect(() => new TokenAuth([{ name: 'panel', value: half, mayWrite: true }])).toThrow(
    /^The access token 'panel' of the API cannot be used$/,
  );
});
