import { expect, test } from 'vitest';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { clockLook } from './clock-look.ts';

const NOW = Date.UTC(2027, 5, 1);

/** `step`: time by which the clock is set during the check. */
async function look({ now = NOW, step = 0, files = [] as readonly string[] } = {}) {
  const clock = new ManualClock(now);
  const wait = async (ms: number): Promise<void> => {
    clock.advance(ms);
    clock.setOn(step);
  };
  return await clockLook(clock, { wait, isThere: (path) => files.includes(path) });
}

test.each([Date.UTC(1970, 0, 2), Date.UTC(2025, 11, 31), Date.UTC(2106, 1, 7)])('a clock at %d is wrong', async (now) => {
  expect(await look({ now })).toMatchObject({ status: 'problem', text: expect.stringContaining(new Date(now).toISOString()) });
});

test('a clock that jumps is reported, a slewed clock is not', async () => {
  expect(await look({ step: 500 })).toMatchObject({ status: 'warning', text: expect.stringContaining('by 500 ms') });
  expect(await look({ step: -3_600_000 })).toMatchObject({ status: 'warning', text: expect.stringContaining('by 3600000 ms') });
  expect(await look({ step: 2 })).toMatchObject({ status: 'ok' });
});

test.each([
  [
    'systemd-timesyncd has reached a server',
    ['/run/systemd/timesync', '/run/systemd/timesync/synchronized'],
    'ok',
    'synchronized by systemd-timesyncd',
  ],
  ['systemd-timesyncd has not reached a server', ['/run/systemd/timesync'], 'warning', 'has not reached a time server yet'],
  ['another service keeps the clock', ['/run/systemd/timesync', '/run/chrony/chronyd.pid'], 'ok', 'chrony runs'],
  ['no service is visible', [], 'ok', 'whether it is synchronized cannot be checked from here'],
] as const)('%s', async (_what, files, status, text) => {
  expect(await look({ files })).toMatchObject({ status, text: expect.stringContaining(text) });
});
