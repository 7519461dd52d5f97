import { expect, test } from 'vitest';
import { TokenAuth } from './auth.ts';

const TOKEN = 'user:pass';
const ENCODED = Buffer.from(TOKEN).toString('base64');
const auth = new TokenAuth(TOKEN);

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
  ['Bearer x', 'Not supported credential type: Bearer'],
  ['Basic ', 'Invalid credential format'],
  ['Basic !!!', 'Invalid credential'],
  [`Basic ${Buffer.from('user:pass:').toString('base64')}`, 'Invalid credential'],
  [`Basic ${Buffer.from('user:pasS').toString('base64')}`, 'Invalid credential'],
  [`Basic ${Buffer.from('user:pass\n').toString('base64')}`, 'Invalid credential'],
])('judges %j', (header, message) => {
  for (const _time of [1, 2]) {
    const error = auth.check(header);
    expect(error?.message ?? null).toBe(message);
    if (error !== null) expect(error.status).toBe(401);
  }
});

test('an empty token is refused at once', () => {
  expect(() => new TokenAuth('')).toThrow(TypeError);
});
