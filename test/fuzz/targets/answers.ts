/** Requests that the addon answers, or holds, without JavaScript, on connections of viewers. */
import { loadAddon } from '../../../src/native/addon.ts';
import { AnsweringThread, type PlainViewer } from '../../fakes/answering-thread.ts';
import { until } from '../../harness/poll.ts';
import type { FuzzTarget } from '../support/fuzz-target.ts';

const WAIT = { deadlineMs: 10_000, everyMs: 1 };

/**
 * A viewer with known requests sends the input while another request is held; that request and a third one must still get their answers.
 */
function viewerRequests(): FuzzTarget {
  let thread: AnsweringThread | null = null;
  let [held, other]: readonly (PlainViewer | null)[] = [null, null];
  let token = '';
  let runs = 0;
  async function open() {
    if (thread === null) {
      thread = await AnsweringThread.start();
      [held, other, token] = [thread.open(), thread.open(), await thread.session()];
      for (const viewer of [held, other]) await thread.warm(viewer, 'text', token);
    }
    return { thread, held: held as PlainViewer, other: other as PlainViewer };
  }
  const request = (file: string, lines = ''): Buffer =>
    Buffer.from(`GET /app/s/${file}?session=${token} HTTP/1.1\r\nHost: a\r\n${lines}\r\n`);
  return {
    name: 'viewer-requests',
    form: 'text',
    seeds: async () => {
      await open();
      const one = [
        request('later'),
        request('text'),
        request('small'),
        request('later', 'Accept-Encoding: gzip\r\n'),
        request('list.m3u8'),
      ];
      return [...one, Buffer.concat([request('later'), request('text')]), Buffer.concat([request('small'), request('later')])];
    },
    run: async (input) => {
      const { thread: all, held: first, other: second } = await open();
      const asked = all.heldFor.length;
      first.ask('later', token);
      await until('the request that is held', () => all.heldFor.length > asked, WAIT);
      const before = all.asked.length;
      const viewer = all.open();
      await all.warm(viewer, 'text', token);
      second.ask('later', token);
      const cut = (input[0] ?? 0) % (input.length + 1);
      viewer.socket.write(input.subarray(0, cut));
      viewer.socket.write(input.subarray(cut));
      second.ask('text', token);
      runs += 1;
      const text = `text ${runs}`;
      // A request that arrives after an update waits for the next update.
      const updates = setInterval(() => all.update(text), 2);
      try {
        for (const waiting of [first, second, second]) {
          const words = await waiting.text();
          if (!words.includes(`?session=${token}\n?session=${token}.`)) throw new Error(`a viewer beside it got ${words}`);
        }
        viewer.socket.end();
        await until('the end of the connection', () => viewer.ended, WAIT);
      } finally {
        clearInterval(updates);
      }
      return all.asked.length - before;
    },
    close: () => {
      thread?.close();
      thread = null;
    },
    most: (length) => 16 + length / 16,
    cost: 60,
  };
}

export const ANSWER_TARGETS: readonly FuzzTarget[] = loadAddon().addon === null ? [] : [viewerRequests()];
