import { expect, test, vi } from 'vitest';
import { ControlServerFault } from '../util/control-server-client.ts';
import { ClosingQueue } from './closing-queue.ts';

/** A queue whose messages are settled by the test. */
function queue(maxWaiting?: number) {
  const sent: { readonly message: object; readonly answer: () => void; readonly fail: () => void }[] = [];
  const onFault = vi.fn();
  const onIdle = vi.fn();
  const made = new ClosingQueue({
    send: (message) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      sent.push({ message, answer: resolve, fail: () => reject(new ControlServerFault('connection', 'late')) });
      return promise;
    },
    ...{ onFault, onIdle, maxInFlight: 64 },
    ...(maxWaiting !== undefined && { maxWaiting }),
  });
  return { made, sent, onFault, onIdle };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('sends at most 64 messages at once, the others in order after them', async () => {
  const { made, sent, onIdle } = queue();
  for (let n = 0; n < 66; n += 1) made.push({ n });
  expect([sent.length, made.pending]).toEqual([64, 66]);
  sent[9]?.answer();
  await settled();
  expect(sent[64]?.message).toEqual({ n: 64 });
  for (const { answer } of sent) answer();
  await settled();
  expect(sent).toHaveLength(66);
  expect(onIdle).not.toHaveBeenCalled();
  sent[65]?.answer();
  await settled();
  expect([made.delivered, made.lost, made.pending, onIdle.mock.calls.length]).toEqual([66, 0, 0, 1]);
});

test('counts messages as lost that overflow the queue, fail or are cleared', async () => {
  const { made, sent, onFault } = queue(2);
  for (let n = 0; n < 67; n += 1) made.push({ n });
  expect([made.lost, made.pending, onFault.mock.calls]).toEqual([1, 66, [[null]]]);
  sent[0]?.fail();
  await settled();
  expect([made.lost, onFault.mock.calls[1]?.[0]]).toEqual([2, expect.any(ControlServerFault)]);
  made.clear();
  expect([made.lost, made.pending]).toEqual([3, 64]);
});
