import assert from 'node:assert';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { RtmpPublisher } from '../../../test/fakes/rtmp-publisher.ts';
import { AAC_CONFIG, AAC_FRAME, cleanUp, holdSweeps, publishing, socketPolls, start } from '../../../test/support/rtmp-bench.ts';
import { Urgency } from '../../core/urgency.ts';
import { controlMessage } from '../../wire/rtmp/control.ts';
import { MessageType } from '../../wire/rtmp/message.ts';
import type { RtmpProviderOptions } from './rtmp-options.ts';

describe('a stream without viewers', () => {
  /** Publishes audio; `frames` sends that many and waits until they have arrived. */
  async function unwatched(options: Partial<RtmpProviderOptions> = {}) {
    const started = await publishing(options);
    const { publisher, stream } = started;
    stream.urgency = Urgency.NONE;
    publisher.metadata({ audiocodecid: 10 });
    publisher.audio(0, AAC_CONFIG);
    const frames = async (count: number): Promise<void> => {
      const before = stream.packets.length;
      for (let frame = 1; frame <= count; frame += 1) publisher.audio(20 * (before + frame), AAC_FRAME);
      await stream.until((it) => it.packets.length === before + count);
    };
    await frames(1);
    return { ...started, frames };
  }

  /** Resolves when sent data has been read, unless its socket rests. */
  let settle: () => Promise<void>;
  beforeEach(async () => {
    settle = await socketPolls();
  });

  test('is read in batches, complete and in order', async () => {
    const { sweep } = holdSweeps();
    const { publisher, stream } = await unwatched();
    // The connection was new: it rests from the second sweep on.
    sweep();
    sweep();
    let sent = 1;
    for (let bundle = 0; bundle < 5; bundle += 1) {
      for (let frame = 0; frame < 3; frame += 1) {
        sent += 1;
        publisher.audio(20 * sent, AAC_FRAME);
        await settle();
      }
      // The first frame may have been read before the socket rested.
      expect(stream.packets.length).toBeLessThanOrEqual(sent - 2);
      sweep();
      await stream.until((it) => it.packets.length === sent);
    }
    expect(stream.packets.map(({ dts }) => dts)).toEqual(Array.from({ length: 16 }, (_, index) => 20 * (index + 1)));
  });

  test('is read immediately after the next batch when it gets a real-time viewer', async () => {
    const { sweep } = holdSweeps();
    const { stream, frames } = await unwatched();
    sweep();
    sweep();
    await frames(1);
    stream.urgency = Urgency.REAL_TIME;
    sweep();
    // No further sweep helps.
    for (let frame = 0; frame < 5; frame += 1) await frames(1);
  });

  test('is read at once when a viewer starts, and at `readNow`', async () => {
    const { sweep } = holdSweeps();
    const { provider, publisher, stream, frames } = await unwatched();
    sweep();
    sweep();
    await frames(1);
    for (const endRest of [() => stream.request.onWatched?.(), () => provider.readNow()]) {
      const before = stream.packets.length;
      publisher.audio(20 * (before + 1), AAC_FRAME);
      await settle();
      expect(stream.packets).toHaveLength(before);
      endRest();
      await stream.until((it) => it.packets.length === before + 1);
    }
  });

  test('is read immediately when its publisher asks for frequent acknowledgements', async () => {
    const { sweep } = holdSweeps();
    const { publisher, stream, frames } = await unwatched();
    publisher.send(controlMessage(MessageType.WINDOW_ACK_SIZE, 100_000));
    sweep();
    sweep();
    // No further sweep helps.
    for (let frame = 0; frame < 5; frame += 1) await frames(1);
    expect(stream.urgency).toBe(Urgency.NONE);
  });

  test('is read more often for low latency, immediately for real time, and in batches again afterwards', async () => {
    const { sweep } = holdSweeps('all');
    const now = performance.now.bind(performance);
    /** Lead of the monotonic time, ms: a sweep of the listener leaves out sockets that were read just now. */
    let lead = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => now() + lead);
    cleanUp(() => vi.restoreAllMocks());
    /** Since the listener's last sweep, or some more of them. */
    let elapsed = 0;
    const shortSweep = (): void => {
      elapsed += 25;
      vi.advanceTimersByTime(25);
    };
    const started = await publishing();
    const publishers = [started.publisher];
    for (const key of ['second', 'third', 'fourth', 'fifth', 'sixth']) publishers.push(await RtmpPublisher.publish(started.port, { key }));
    cleanUp(() => publishers.map((publisher) => publisher.close()));
    const streams = await Promise.all(publishers.map((_publisher, index) => started.gate.stream(index)));
    let sent = 0;
    const send = (): void => {
      sent += 1;
      for (const publisher of publishers) publisher.audio(20 * sent, AAC_FRAME);
    };
    const come = (): boolean[] => streams.map(({ packets }) => packets.length === sent);
    const allCome = () => Promise.all(streams.map((stream) => stream.until((it) => it.packets.length === sent)));
    /** Data that misses one sweep is read by one of the next; there are too few for other readers to stay hidden. */
    const sweeps = async (once: () => void, most = 5): Promise<void> => {
      let count = 0;
      do {
        count += 1;
        expect(count).toBeLessThanOrEqual(most);
        once();
        await settle();
      } while (!come().every(Boolean));
    };
    const shortSweeps = () => sweeps(shortSweep);
    const sweepsOfListener = () =>
      sweeps(() => {
        lead += 200;
        vi.advanceTimersByTime(100 - (elapsed % 100));
        elapsed += 100 - (elapsed % 100);
      });
    const none = streams.map(() => false);
    const firstOnly = streams.map((_stream, index) => index === 0);
    for (const publisher of publishers) {
      publisher.metadata({ audiocodecid: 10 });
      publisher.audio(0, AAC_CONFIG);
    }
    for (const stream of streams) stream.urgency = Urgency.LOW_LATENCY;
    // The connections are new and have acknowledgements to write, and the first ones of a kind are read as they come.
    vi.advanceTimersByTime(200);
    vi.advanceTimersByTime(200);
    do {
      await sweeps(shortSweep, Number.POSITIVE_INFINITY);
      send();
      await settle();
    } while (come().some(Boolean));
    for (let round = 0; round < 3; round += 1) {
      await shortSweeps();
      send();
      await settle();
      expect(come()).toEqual(none);
    }
    await shortSweeps();

    // The first sweeps of the listener come each fifth of a second, those behind them each tenth.
    for (let round = 0; round < 2; round += 1) {
      send();
      await settle();
      await sweepsOfListener();
    }

    // No data is needed for now, and then all data again.
    for (const stream of streams) stream.neededAt = Number.POSITIVE_INFINITY;
    send();
    await settle();
    await sweepsOfListener();
    send();
    for (let round = 0; round < 3; round += 1) {
      await settle();
      shortSweep();
    }
    await settle();
    expect(come()).toEqual(none);
    // `neededAt` is read after each read of the socket.
    for (const stream of streams) stream.neededAt = 0;
    await sweepsOfListener();
    send();
    await settle();
    expect(come()).toEqual(none);
    await shortSweeps();

    // A viewer by WebRTC comes to the first.
    const [watched] = streams;
    assert.ok(watched);
    watched.urgency = Urgency.REAL_TIME;
    send();
    watched.request.onWatched?.();
    for (let round = 0; round < 2; round += 1) {
      await watched.until((it) => it.packets.length === sent);
      await settle();
      expect(come()).toEqual(firstOnly);
      await shortSweeps();
      send();
    }

    // The last viewers go.
    for (const stream of streams) stream.urgency = Urgency.NONE;
    await shortSweeps();
    // Up to the next sweep of the listener, which finds nothing: what comes next is read at once.
    lead += 200;
    vi.advanceTimersByTime(300 - (elapsed % 100));
    await settle();
    send();
    await allCome();
    send();
    await settle();
    shortSweep();
    await settle();
    expect(come()).toEqual(none);
    sweep();
    await allCome();
  });

  test('ends with its connection, also when the provider stops', async () => {
    const first = await unwatched();
    first.publisher.close();
    await first.stream.until((it) => it.closed);
    expect(first.stream.closeReason).toMatchObject({ code: 'peer-left' });
    const second = await unwatched();
    await second.provider.stop();
    expect(second.stream.closeReason).toMatchObject({ code: 'shutdown' });
  });

  test.each(['the same', 'another'])('has ended when its publisher asks for it on a new connection to %s listener', async (which) => {
    const { sweep } = holdSweeps();
    const { port: same, provider, publisher, stream, gate, frames } = await unwatched();
    const port = which === 'another' ? (await start({ gate, onArrival: () => provider.readNow() })).port : same;
    sweep();
    sweep();
    await frames(1);
    // The socket rests: the last message and the end stay in it.
    publisher.audio(1000, AAC_FRAME);
    await new Promise<void>((resolve) => publisher.socket.end(resolve));
    const again = await RtmpPublisher.publish(port);
    cleanUp(() => again.close());
    await gate.stream(1);
    expect([stream.closed, stream.packets.length]).toEqual([true, 3]);
  });

  test('stays paused while the core has too much to do', async () => {
    const { sweep } = holdSweeps();
    const { publisher, stream, frames } = await unwatched();
    stream.request.onCongested?.();
    publisher.audio(1000, AAC_FRAME);
    for (let n = 0; n < 3; n += 1) {
      await settle();
      sweep();
    }
    await settle();
    stream.request.onWatched?.();
    await settle();
    expect(stream.packets).toHaveLength(1);
    stream.request.onRelieved?.();
    await stream.until((it) => it.packets.length === 2);
    const next = frames(1);
    await settle();
    sweep();
    await next;
  });
});
