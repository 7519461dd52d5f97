import { Socket } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { systemClock } from '../../util/clock.ts';
import { RefusedPublishers } from './refused-publishers.ts';
import { DEFAULT_RTMP_LIMITS, DEFAULT_RTMP_TIMEOUTS } from './rtmp-options.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('whoever says nothing is closed when the time for it is over, as long as the server has for its peers', () => {
  const timeouts = { ...DEFAULT_RTMP_TIMEOUTS, refusal: 5000 };
  const refused = new RefusedPublishers({ limits: DEFAULT_RTMP_LIMITS, timeouts, clock: systemClock });
  const socket = new Socket();
  refused.answer(socket);
  vi.advanceTimersByTime(4999);
  expect(socket.destroyed).toBe(false);
  vi.advanceTimersByTime(1);
  expect(socket.destroyed).toBe(true);
});
