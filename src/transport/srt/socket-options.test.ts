import { expect, test } from 'vitest';
import { readListenerOptions } from './socket-options.ts';

const read = (options: Record<string, string>): ReturnType<typeof readListenerOptions> =>
  readListenerOptions(Object.entries(options).map(([key, value]) => ({ key, value })));

test('without options everything is as in libsrt', () => {
  expect(read({})).toEqual({
    passphrase: null,
    keyLength: null,
    latency: { receive: 120, peer: 0 },
    keyRefresh: { every: 16_777_216, announceBefore: 4096 },
    connectionLimits: {
      idleTimeout: 5_000_000,
      sendBuffer: 8192,
      receiveBuffer: 8192,
      bandwidth: { maximum: 125_000_000, input: 0, overhead: 25 },
    },
    ignored: [],
  });
});

test('options are read with and without their prefix, in any case', () => {
  const settings = read({
    SRTO_PASSPHRASE: 'correct horse',
    pbkeylen: '32',
    LATENCY: '300',
    RcvLatency: '400',
    SRTO_IPTTL: '64',
    SNDBUF: '3000000',
  });
  expect(settings).toMatchObject({ passphrase: 'correct horse', keyLength: 32, latency: { receive: 400, peer: 300 }, ignored: ['IPTTL'] });
  expect(settings.connectionLimits.sendBuffer).toBe(2048);
});

test('bandwidth options follow libsrt: MAXBW of -1 is a gigabit, with 0 the other two apply', () => {
  const bandwidth = (options: Record<string, string>) => read(options).connectionLimits.bandwidth;
  expect(bandwidth({ MAXBW: '-1' })).toEqual({ maximum: 125_000_000, input: 0, overhead: 25 });
  expect(bandwidth({ SRTO_MAXBW: '0', INPUTBW: '500000', OHEADBW: '50' })).toEqual({ maximum: 0, input: 500_000, overhead: 50 });
});

test.each([
  [{ MAXBW: '-2' }, /MAXBW is "-2", must be a whole number from -1 /],
  [{ INPUTBW: '-1' }, /INPUTBW is "-1", must be a whole number from 0 /],
  [{ OHEADBW: '4' }, /OHEADBW is "4", must be a whole number from 5 to 100/],
  [{ RCVSYN: 'true' }, /RCVSYN cannot be set/],
  [{ SNDSYN: 'true' }, /SNDSYN cannot be set/],
  [{ LATENCYY: '1' }, /LATENCYY is no option of a listener; known: PASSPHRASE, /],
  [{ LATENCY: '-1' }, /LATENCY is "-1", must be a whole number from 0 to 65535/],
  [{ LATENCY: 'fast' }, /LATENCY is "fast"/],
  [{ PASSPHRASE: 'short' }, /PASSPHRASE has 5 bytes, must have 10 to 79/],
  [{ PBKEYLEN: '20' }, /PBKEYLEN is "20", must be 0, 16, 24 or 32/],
  [{ KMREFRESHRATE: '10', KMPREANNOUNCE: '10' }, /KMPREANNOUNCE is "10", must be a whole number from 1 to 9/],
])('%j is refused', (options, message) => {
  expect(() => read(options)).toThrow(message);
});
