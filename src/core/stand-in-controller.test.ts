import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { audioPacket, videoPacket } from '../../test/fakes/source.ts';
import { ENTRY, expectContinuous, LEFT, lost, send, setUp, shown, URL } from '../../test/fakes/stand-in-studio.ts';
import { IngestRefused } from './ingest.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'clearImmediate'] });
});
afterEach(() => {
  vi.useRealTimers();
});

describe('a stand-in', () => {
  it('is prepared while the encoder is connected, and continues the stream when the encoder leaves', async () => {
    const studio = setUp();
    const encoder = studio.publish();
    await send(studio, encoder);
    await studio.pass(200);
    const [standIn] = studio.made;
    expect(standIn!.told).toEqual(['prepare']);
    const left = studio.clock.now();
    encoder.close(LEFT);
    expect(standIn!.told).toEqual(['prepare', 'play']);
    expect(left - standIn!.since).toBeGreaterThan(150);
    const stream = studio.application.stream('s')!;
    expect([stream.source.present, stream.sourceType, stream.sourceUrl, studio.meter.ingests.rtmp]).toEqual([
      false,
      'Rtmp',
      'TCP://127.0.0.1:1',
      0,
    ]);
    standIn!.begin();
    standIn!.send(20);
    await studio.pass(50);
    expect([stream.sourceType, stream.sourceUrl]).toEqual(['File', URL]);
    expect(shown(studio.packets)).toEqual([...Array<number>(30).fill(64), ...Array<number>(20).fill(999)]);
    expectContinuous(studio.packets);
    expect(studio.lines(`the encoder left, stand-in ${URL}: bye`)).toHaveLength(1);
    await studio.pass(3_600_000 / 60);
    expect(studio.ended).toEqual([]);
  });

  it('yields to the next encoder over any protocol at its first keyframe, with its audio', async () => {
    const studio = setUp();
    const standIn = await lost(studio);
    await studio.pass(2000);
    const before = studio.packets.length;
    const next = studio.publish({ provider: 'srt', sourceType: 'SRT', sourceUrl: 'SRT://127.0.0.1:2' });
    const stream = studio.application.stream('s')!;
    expect([stream.source.present, stream.sourceUrl, studio.meter.ingests.srt]).toEqual([true, URL, 1]);
    for (let index = 10; index < 30; index += 1) next.push(videoPacket(index));
    next.push(audioPacket(47));
    standIn.send(2);
    await studio.pass(50);
    expect(shown(studio.packets.slice(before))).toEqual([999, 999]);
    next.push(videoPacket(30));
    next.push(videoPacket(31));
    await studio.pass(50);
    standIn.send(2);
    expect(shown(studio.packets.slice(before))).toEqual([999, 999, 64, 64]);
    expect(studio.packets.at(-2)).toMatchObject({ keyframe: true });
    expect(studio.packets.slice(before).filter(({ track }) => track.type === 'audio')).toHaveLength(1);
    expectContinuous(studio.packets);
    expect(standIn.told.slice(0, 3)).toEqual(['prepare', 'play', 'rest']);
    expect([stream.sourceType, stream.sourceUrl]).toEqual(['SRT', 'SRT://127.0.0.1:2']);
    expect(studio.lines('the encoder is back after 2.')).toHaveLength(1);
    await studio.pass(100);
    expect(standIn.told.at(-1)).toBe('prepare');
  });

  it('ends at the last keyframe of the packets that an encoder sends at once', async () => {
    const studio = setUp();
    await lost(studio);
    const before = studio.packets.length;
    const next = studio.publish();
    for (let index = 0; index < 70; index += 1) next.push(videoPacket(index));
    await studio.pass(50);
    expect(shown(studio.packets.slice(before))).toHaveLength(10);
  });

  it('plays while an encoder is silent, until that has sent a keyframe', async () => {
    const studio = setUp({ rtmp: { packetSilenceTimeoutMs: 3000 } });
    const encoder = studio.publish();
    await send(studio, encoder);
    await studio.pass(400);
    const [standIn] = studio.made;
    expect(standIn!.told).toEqual(['prepare']);
    await studio.pass(250);
    expect(standIn!.told).toEqual(['prepare', 'play']);
    expect(studio.lines('the encoder is silent, stand-in')).toHaveLength(1);
    standIn!.begin();
    standIn!.send(5);
    const stream = studio.application.stream('s')!;
    expect([stream.source.present, stream.sourceUrl]).toEqual([true, URL]);
    encoder.push(videoPacket(31));
    await studio.pass(50);
    expect(shown(studio.packets)).toHaveLength(35);
    encoder.push(videoPacket(60));
    await studio.pass(50);
    expect(shown(studio.packets).slice(-2)).toEqual([999, 64]);
    // Packets of the stand-in do not end the encoder's silence.
    await studio.pass(600);
    standIn!.begin();
    for (let ms = 0; ms < 2600; ms += 100) {
      standIn!.send(3);
      await studio.pass(100);
    }
    expect(studio.closes).toMatchObject([{ code: 'timeout' }]);
    expect([stream.source.present, studio.ended]).toEqual([false, []]);
  });

  it('is not started by a stall of the server after which the encoder sends again', async () => {
    const studio = setUp();
    const encoder = studio.publish();
    await send(studio, encoder);
    await studio.pass(200);
    const [standIn] = studio.made;
    // The server was held up: the timer runs before the socket is read.
    studio.clock.advance(3000);
    await vi.advanceTimersByTimeAsync(100);
    expect(standIn!.told).toEqual(['prepare']);
    encoder.push(videoPacket(120));
    await studio.pass(300);
    expect(standIn!.told).toEqual(['prepare']);
  });

  it('has its cues shown while it is on air, and neither before nor after', async () => {
    const rendition = [{ label: 'English', language: 'en', autoSelect: true, forced: false }];
    const studio = setUp({ mediaOptions: { subtitles: { enable: true, defaultLabel: 'English', rendition } } });
    const encoder = studio.publish();
    await send(studio, encoder);
    const [standIn] = studio.made;
    const cue = { at: 5000, duration: 1000, settings: '', text: 'please wait' };
    const cues = () => studio.packets.filter(({ track }) => track.type === 'subtitle').length;
    expect([standIn!.stage.pushCue('en', cue), cues()]).toEqual([false, 0]);
    encoder.close(LEFT);
    standIn!.begin();
    standIn!.send(10);
    await studio.pass(50);
    expect([standIn!.stage.pushCue('en', cue), cues()]).toEqual([true, 1]);
    const next = studio.publish();
    next.push(videoPacket(0));
    await studio.pass(50);
    expect([standIn!.stage.pushCue('en', cue), cues()]).toEqual([false, 1]);
  });

  it('stops when the encoder sends again before the first frame of the stand-in', async () => {
    const studio = setUp();
    const encoder = studio.publish();
    await send(studio, encoder);
    await studio.pass(700);
    const [standIn] = studio.made;
    expect(standIn!.told).toEqual(['prepare', 'play']);
    encoder.push(videoPacket(50));
    await studio.pass(100);
    expect(standIn!.told.slice(0, 3)).toEqual(['prepare', 'play', 'rest']);
    expect(shown(studio.packets)).toHaveLength(31);
    expect(studio.lines('the encoder sends again')).toHaveLength(1);
  });

  it('continues the timestamps of the encoder in mode Original', async () => {
    const studio = setUp({ rtmp: { timestampMode: 'Original' } });
    const encoder = studio.publish();
    await send(studio, encoder, { startMs: 100_000 });
    encoder.close(LEFT);
    studio.made[0]!.begin();
    studio.made[0]!.send(30);
    await studio.pass(50);
    const seconds = () => studio.packets.filter(({ track }) => track.type === 'video').at(-1)!.dts / 90_000;
    expect(seconds()).toBeCloseTo(102, 0);
    const next = studio.publish();
    next.push(videoPacket(0, { startMs: 105_000 }));
    await studio.pass(50);
    expect(seconds()).toBeCloseTo(105, 1);
  });

  it('starts only when the encoder leaves if AfterMs is 0', async () => {
    const studio = setUp({ entry: { afterMs: 0 } });
    const encoder = studio.publish();
    await send(studio, encoder);
    await studio.pass(10_000);
    expect(studio.made[0]!.told).toEqual(['prepare']);
    encoder.close(LEFT);
    expect(studio.made[0]!.told).toEqual(['prepare', 'play']);
  });

  it('continues while encoders connect and leave without a keyframe, and when one leaves after a keyframe', async () => {
    const studio = setUp();
    const standIn = await lost(studio);
    for (let round = 0; round < 20; round += 1) {
      const next = studio.publish();
      next.push(videoPacket(5));
      await studio.pass(50);
      next.close(LEFT);
      standIn.send(2);
    }
    const last = studio.publish();
    last.push(videoPacket(0));
    // The encoder ends between its keyframe and the turn that would have put it on air.
    last.close(LEFT);
    standIn.send(2);
    await studio.pass(50);
    expect(standIn.told).toEqual(['prepare', 'play']);
    expect(
      shown(studio.packets)
        .slice(30)
        .every((size) => size === 999),
    ).toBe(true);
    expect(studio.application.stream('s')!.source.present).toBe(false);
    expectContinuous(studio.packets);
  });

  it('is interrupted at a limited rate by an encoder that connects and leaves repeatedly', async () => {
    const studio = setUp();
    const standIn = await lost(studio);
    for (let round = 0; round < 60; round += 1) {
      const next = studio.publish();
      next.push(videoPacket(0));
      next.push(videoPacket(1));
      await studio.pass(100);
      next.close(LEFT);
      standIn.begin();
      standIn.send(3);
      await studio.pass(100);
    }
    const returns = standIn.told.filter((what) => what === 'rest').length;
    expect(returns).toBeGreaterThan(5);
    expect(returns).toBeLessThan(13);
    expectContinuous(studio.packets);
  });

  it('asks a returning encoder for a keyframe, and no source while it plays', async () => {
    const studio = setUp();
    const standIn = await lost(studio);
    const asked: number[] = [];
    const next = studio.publish({ onKeyframeWanted: (trackId) => asked.push(trackId) });
    studio.application.stream('s')!.requestKeyframe(0);
    expect(asked).toEqual([]);
    for (let index = 1; index < 29; index += 1) {
      next.push(videoPacket(index));
      await studio.pass(50);
    }
    expect(asked).toEqual([0, 0]);
    studio.application.stream('s')!.wake();
    expect(standIn.told.at(-1)).toBe('wake');
  });

  it('does not start a stream, and does not continue a stream without a frame', async () => {
    const studio = setUp();
    const encoder = studio.publish();
    encoder.push(videoPacket(1));
    await studio.pass(2000);
    encoder.close(LEFT);
    expect(studio.made[0]!.told).toEqual(['close']);
    expect(studio.application.hasStream('s')).toBe(false);
  });

  it('is made for streams with a matching name, and never of the stream itself', () => {
    const studio = setUp({
      sourceLoss: {
        standIn: [
          { ...ENTRY, streamName: 'tv*', url: 'stream://v/app/tv1' },
          { ...ENTRY, streamName: 'tv?' },
        ],
      },
    });
    for (const streamName of ['tv1', 'tv22', 'radio']) studio.publish({ streamName });
    studio.application.openPulled(studio.request({ streamName: 'tv3', provider: 'rtsppull' }));
    expect(studio.made.map(({ url, stage }) => [stage.address.stream, url])).toEqual([
      ['tv1', URL],
      ['tv22', 'stream://v/app/tv1'],
    ]);
  });
});

describe('a stream with a stand-in', () => {
  it.each(['deleted', 'application-restart', 'shutdown', 'denied', 'expired', 'no-room', 'replaced'] as const)(
    'ends when it is %s',
    async (code) => {
      const studio = setUp();
      const standIn = await lost(studio);
      studio.application.stream('s')!.terminate({ code, detail: 'x' });
      expect(studio.ended).toMatchObject([{ code }]);
      expect(standIn.told.at(-1)).toBe('close');
      standIn.send(1);
      expect(studio.application.hasStream('s')).toBe(false);
    },
  );

  it.each(['denied', 'expired'] as const)('ends when its encoder was %s', async (code) => {
    const studio = setUp();
    const encoder = studio.publish();
    await send(studio, encoder);
    encoder.close({ code, detail: 'x' });
    expect(studio.ended).toMatchObject([{ code }]);
    expect(studio.made[0]!.told).toEqual(['prepare', 'close']);
    const waiting = setUp();
    await lost(waiting);
    waiting.publish().close({ code, detail: 'x' });
    expect(waiting.ended).toMatchObject([{ code }]);
  });

  it('ends without an encoder after KeepMs, but not while an encoder is connected', async () => {
    const studio = setUp({ entry: { keepMs: 5000 } });
    await lost(studio);
    await studio.pass(4800);
    const next = studio.publish();
    for (let ms = 0; ms < 2000; ms += 100) {
      next.push(videoPacket(1 + (ms % 20)));
      await studio.pass(100);
    }
    expect(studio.ended).toEqual([]);
    next.close(LEFT);
    await studio.pass(200);
    expect(studio.ended).toMatchObject([{ code: 'peer-left', detail: 'no encoder came within 5000 ms (StandIn/KeepMs) after: bye' }]);
  });

  it('retries a failed stand-in, and ends when neither it nor an encoder returns', async () => {
    const studio = setUp();
    const standIn = await lost(studio);
    standIn.stage.onFailed('the stream ended');
    expect(standIn.told.slice(-2)).toEqual(['play', 'rest']);
    await studio.pass(1100);
    expect(standIn.told.slice(-2)).toEqual(['rest', 'play']);
    standIn.begin();
    standIn.send(5);
    await studio.pass(20_000);
    expect(studio.ended).toEqual([]);
    standIn.stage.onFailed('the stream ended');
    for (let second = 0; second < 12; second += 1) {
      await studio.pass(1000);
      standIn.stage.onFailed('there is no stream');
    }
    expect(studio.ended).toMatchObject([{ detail: 'neither an encoder nor the stand-in came within 10000 ms after: bye' }]);
    expect(studio.lines('the stand-in cannot be played: there is no stream').length).toBe(1);
  });

  it('ends when the control server refuses it while the stand-in plays', async () => {
    const studio = setUp();
    await lost(studio);
    studio.application.stream('s')!.judge('refused', 'denied');
    await studio.pass(50);
    expect(studio.ended).toMatchObject([{ code: 'denied' }]);
  });

  it('holds encoders to the rules that they have without', async () => {
    const studio = setUp({ sourceLoss: { takeOver: 'afterSilence' } });
    await lost(studio);
    const next = studio.publish();
    next.push(videoPacket(1));
    expect(() => studio.publish()).toThrow(IngestRefused);
    await studio.pass(2100);
    const third = studio.publish({ sourceUrl: 'TCP://127.0.0.1:3' });
    expect(studio.closes).toMatchObject([{ code: 'replaced' }]);
    third.push(videoPacket(0));
    await studio.pass(50);
    expect(studio.application.stream('s')!.sourceUrl).toBe('TCP://127.0.0.1:3');
  });

  it('disconnects a waiting encoder that sends garbage, and continues', async () => {
    const studio = setUp();
    const standIn = await lost(studio);
    const next = studio.publish();
    for (let index = 0; index < 700; index += 1) next.push({ ...videoPacket(0), keyframe: null, data: Buffer.alloc(64, 0xff) });
    await studio.pass(50);
    expect(studio.closes).toMatchObject([{ code: 'peer-error', detail: expect.stringContaining('cannot be read') }]);
    standIn.send(3);
    await studio.pass(50);
    expect(shown(studio.packets).slice(-3)).toEqual([999, 999, 999]);
    expect(studio.application.stream('s')!.source.present).toBe(false);
  });

  it('pauses a stand-in that sends unreadable packets', async () => {
    const studio = setUp();
    const standIn = await lost(studio);
    for (let index = 0; index < 700; index += 1) standIn.stage.push({ ...videoPacket(0), data: Buffer.alloc(3) });
    await studio.pass(50);
    expect(standIn.told.at(-1)).toBe('rest');
    expect(studio.ended).toEqual([]);
    await studio.pass(1100);
    expect(standIn.told.at(-1)).toBe('play');
  });
});
