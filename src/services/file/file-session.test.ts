import { afterEach, expect, it } from 'vitest';
import { audioTrack, videoPacket, videoTrack } from '../../../test/fakes/source.ts';
import type { CloseReason, SourcePacket, SourceTrack } from '../../core/ingest.ts';
import { MILLISECONDS } from '../../media/timebase.ts';
import type { FileEvent, MediaFile } from '../../playout/media-file.ts';
import { systemClock } from '../../util/clock.ts';
import { FileSession } from './file-session.ts';

class Sink {
  readonly tracks: (readonly SourceTrack[])[] = [];
  readonly packets: { readonly packet: SourcePacket; readonly at: number }[] = [];
  bytes = 0;
  reason: CloseReason | null = null;
  #waiters: (() => void)[] = [];

  setTracks(tracks: readonly SourceTrack[]): void {
    this.tracks.push(tracks);
  }

  push(packet: SourcePacket): void {
    this.packets.push({ packet, at: performance.now() });
    for (const waiter of this.#waiters) waiter();
  }

  pushEvent(): boolean {
    return true;
  }

  countBytes(bytes: number): void {
    this.bytes += bytes;
  }

  heard(): void {}

  close(reason: CloseReason): void {
    this.reason = reason;
    for (const waiter of this.#waiters) waiter();
  }

  async until(holds: () => boolean): Promise<void> {
    await new Promise<void>((resolve) => {
      const check = (): void => {
        if (holds()) resolve();
      };
      this.#waiters.push(check);
      check();
    });
  }
}

/** `count` frames, 33 ms apart, and audio of 20 ms; times start at 5 s. */
class FakeFile implements Pick<MediaFile, 'next' | 'rewind'> {
  rounds = 0;
  readonly #events: FileEvent[];
  #next = 0;

  constructor(count: number) {
    const packets: FileEvent[] = [];
    for (let index = 0; index < count; index += 1) {
      packets.push({ type: 'packet', packet: videoPacket(index, { startMs: 5000 }), timebase: MILLISECONDS, duration: 33 });
    }
    for (let at = 5000; at < 5000 + count * 33; at += 20) {
      packets.push({ type: 'packet', packet: { ...videoPacket(0), trackId: 1, dts: at, pts: at }, timebase: MILLISECONDS, duration: 20 });
    }
    packets.sort((a, b) => (a.type === 'packet' && b.type === 'packet' ? a.packet.dts - b.packet.dts : 0));
    this.#events = [{ type: 'tracks', tracks: [videoTrack(), audioTrack()] }, ...packets];
  }

  async next(): Promise<FileEvent | null> {
    this.#next += 1;
    return this.#events[this.#next - 1] ?? null;
  }

  rewind(): void {
    this.rounds += 1;
    this.#next = 0;
  }
}

const sessions: FileSession[] = [];
afterEach(() => {
  for (const session of sessions.splice(0)) session.close();
});

async function start(file: FakeFile) {
  const sink = new Sink();
  let closes = 0;
  const session = await FileSession.start(file, { sink, clock: systemClock, close: () => (closes += 1) });
  sessions.push(session);
  return { sink, session, closes: () => closes };
}

/** Starts a session that plays on; the function resolves when it has sent 10 packets more. */
async function witness(): Promise<() => Promise<void>> {
  const { sink } = await start(new FakeFile(30));
  return async () => {
    const before = sink.packets.length;
    await sink.until(() => sink.packets.length > before + 10);
  };
}

it('plays in real time, and loops without a jump in time', async () => {
  const file = new FakeFile(10);
  const startedAt = performance.now();
  const { sink } = await start(file);
  await sink.until(() => file.rounds >= 2 && sink.packets.length > 60);
  for (const trackId of [0, 1]) {
    const times = sink.packets.filter(({ packet }) => packet.trackId === trackId).map(({ packet }) => packet.dts);
    const steps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    expect(Math.min(...steps)).toBeGreaterThanOrEqual(trackId === 0 ? 33 : 20);
    expect(Math.max(...steps)).toBeLessThanOrEqual(55);
  }
  // No packet comes before its time; timers may run up to a millisecond early.
  for (const { packet, at } of sink.packets) expect(at - startedAt).toBeGreaterThan(packet.dts - 5000 - 2);
  expect(sink.bytes).toBe(sink.packets.reduce((sum, { packet }) => sum + packet.data.length, 0));
  expect(sink.tracks.length).toBe(1);
});

it('waits while the server has too much to do', async () => {
  const othersPlay = await witness();
  const { sink, session } = await start(new FakeFile(30));
  await sink.until(() => sink.packets.length > 5);
  session.pause();
  session.pause();
  await new Promise((resolve) => setImmediate(resolve));
  const before = sink.packets.length;
  await othersPlay();
  expect(sink.packets.length).toBeLessThanOrEqual(before + 1);
  session.resume();
  await sink.until(() => sink.packets.length > before + 5);
});

it('sends nothing after its end, even when closed twice or during a pause', async () => {
  const othersPlay = await witness();
  const { sink, session, closes } = await start(new FakeFile(30));
  await sink.until(() => sink.packets.length > 2);
  session.pause();
  session.close();
  session.close();
  session.pause();
  const before = sink.packets.length;
  await othersPlay();
  expect([sink.packets.length, closes(), sink.reason]).toEqual([before, 1, null]);
});

it('passes on the reason of its end', async () => {
  const file = new FakeFile(10);
  file.rewind = () => {
    throw new Error('the disk is gone');
  };
  const { sink } = await start(file);
  await sink.until(() => sink.reason !== null);
  expect(sink.reason).toEqual({ code: 'peer-error', detail: 'the disk is gone' });
});

it.each([0, 1])('refuses to loop a file of %i frames', async (count) => {
  const { sink } = await start(new FakeFile(count));
  await sink.until(() => sink.reason !== null);
  expect(sink.reason?.detail).toMatch(/too little to play/);
});
