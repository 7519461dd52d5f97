import { describe, expect, it } from 'vitest';
import type { FakeTranscodeSession } from '../../test/fakes/fake-transcoder.ts';
import { HeldTurns } from '../../test/fakes/held-turns.ts';
import { AUDIO, LADDER, media, names, setUpOutputs, VIDEO } from '../../test/fakes/source-outputs.ts';
import { audioPackets, constantFrames, videoPackets } from '../../test/fakes/synthetic-media.ts';
import type { Packet } from '../media/packet.ts';
import { toSeconds } from '../media/timebase.ts';
import type { Track } from '../media/track.ts';
import type { OutboundStream } from './outbound-stream.ts';
import { Urgency } from './urgency.ts';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const seconds = ({ pts, track }: Packet) => toSeconds(pts, track.timebase);

/** The encoders' output equals their input. */
function encodeAll(session: FakeTranscodeSession): void {
  for (const { type, id, sourceId } of session.job.encodes)
    if (type !== 'image') for (const packet of session.pushed) if (packet.track.id === sourceId) session.emit(id, packet);
}

describe('the beginning of outputs', () => {
  it('waits for its turn and then starts with all held packets, at any timestamps', async () => {
    const turns = new HeldTurns();
    const { outputs, viewer, viewers, push } = setUpOutputs([LADDER], { transcoder: null, turns });
    outputs.setTracks([VIDEO, AUDIO], true);
    push(media(0, 8));
    outputs.setTracks([VIDEO, AUDIO], true);
    await turn();
    expect(viewers.size).toBe(0);
    expect(outputs.urgency).toBe(Urgency.REAL_TIME);
    expect(turns.waiting).toHaveLength(1);
    expect(turns.waiting[0]?.client).toBe('192.0.2.1');
    turns.waiting[0]?.enter();
    expect(viewer().announcements).toHaveLength(1);
    expect(viewer().of('source')).toHaveLength(240);
    push(media(8, 1));
    expect(viewer().of('source')).toHaveLength(270);
  });

  it('starts without its turn when the held packets reach their limit', () => {
    const turns = new HeldTurns();
    const { outputs, viewer, viewers, push } = setUpOutputs([LADDER], { transcoder: null, turns });
    outputs.setTracks([VIDEO, AUDIO], true);
    push(media(0, 60));
    expect(viewers.size).toBe(1);
    expect(turns.left).toBe(1);
    turns.waiting[0]?.enter();
    expect(viewers.size).toBe(1);
    expect(viewer().announcements).toHaveLength(1);
  });

  it('gives its turn up when it is closed', () => {
    const turns = new HeldTurns();
    const { outputs, viewers, push } = setUpOutputs([LADDER], { transcoder: null, turns });
    outputs.setTracks([VIDEO, AUDIO], true);
    push(media());
    outputs.close({ code: 'peer-left', detail: 'gone' });
    expect(turns.left).toBe(1);
    turns.waiting[0]?.enter();
    expect(viewers.size).toBe(0);
  });

  it('holds bypassed media until the encodes are announced, then passes all packets on in order of time', async () => {
    const { outputs, viewer, push, transcoder } = setUpOutputs();
    transcoder.echo = false;
    outputs.setTracks([VIDEO, AUDIO], true);
    push(media());
    await turn();
    expect(viewer()).toMatchObject({ announcements: [], packets: [] });
    const { session } = transcoder;
    for (const { id } of session.job.encodes) session.announce(id);
    encodeAll(session);
    while (viewer().of('small').length < 60) await turn();
    expect(viewer().announcements.length).toBe(1);
    expect(viewer().of('source').length).toBe(60);
    expect(viewer().of('source')[0]?.pts).toBe(viewer().of('small')[0]?.pts);
    const held = viewer()
      .packets.filter(({ track }) => track.bypass)
      .map(seconds);
    expect(held).toEqual([...held].sort((a, b) => a - b));
  });

  it('holds bypassed media back to the progress of the encodes, until they have caught up', async () => {
    const { outputs, viewer, push, transcoder } = setUpOutputs();
    transcoder.echo = false;
    outputs.setTracks([VIDEO, AUDIO], true);
    push(media(0, 3));
    const { session } = transcoder;
    for (const { id } of session.job.encodes) session.announce(id);
    await turn();
    expect(viewer().announcements.length).toBe(1);
    expect(viewer().packets).toEqual([]);
    const [small, opus] = [session.encode('small').id, session.encode('opus').id];
    for (const packet of media(0, 1)) session.emit(packet.track === VIDEO ? small : opus, packet);
    for (const packet of media(1, 1)) if (packet.track === VIDEO) session.emit(small, packet);
    await turn();
    for (const name of ['source', 'small', 'aac', 'opus']) {
      const times = viewer().of(name).map(seconds);
      expect([name, times.length > 0, Math.max(...times) < 1.03]).toEqual([name, true, true]);
    }
    // Encoders may hold half a second.
    for (const packet of media(1, 1.6)) session.emit(packet.track === VIDEO ? small : opus, packet);
    while (viewer().of('source').length < 90) await turn();
    push(media(3, 1));
    expect(viewer().of('source').length).toBe(120);
  });

  it('waits for slow encodes no longer than it waited for their announcement', async () => {
    const { outputs, viewer, push, transcoder } = setUpOutputs();
    transcoder.echo = false;
    outputs.setTracks([VIDEO, AUDIO], true);
    push(media(0, 2));
    const { session } = transcoder;
    for (const { id } of session.job.encodes) session.announce(id);
    push(media(2, 1.9));
    await turn();
    expect(viewer().packets).toEqual([]);
    push(media(3.9, 0.2));
    while (viewer().of('source').length < 123) await turn();
    push(media(4.1, 1));
    expect(viewer().of('source').length).toBe(153);
  });

  it('keeps the announced encodes when the source changes before the start', async () => {
    const { outputs, viewer, push, transcoder } = setUpOutputs();
    transcoder.echo = false;
    outputs.setTracks([VIDEO, AUDIO], true);
    push(media(0, 1));
    const { session } = transcoder;
    session.announce(session.encode('small').id);
    const larger: Track = { ...VIDEO, width: 1920, height: 1080 };
    outputs.setTracks([larger, AUDIO], true);
    push(media(1, 1, larger));
    session.announce(session.encode('opus').id);
    session.announce(session.encode('picture').id);
    encodeAll(session);
    while (viewer().of('source').length < 60) await turn();
    expect(transcoder.sessions.length).toBe(1);
    expect(names(viewer().announcements[0])).toEqual(['0 source', '1 small', '2 aac', '3 opus', '4 picture']);
    expect(viewer().announcements[0]?.[0]).toMatchObject({ width: 1920 });
    const widths = viewer()
      .of('source')
      .map(({ track }) => (track.type === 'video' ? track.width : 0));
    expect([widths[0], widths.at(-1), widths.length]).toEqual([1280, 1920, 60]);
  });

  it('starts without an encode that sends nothing for five seconds of media, and adds it when it starts', async () => {
    const { outputs, viewer, push, transcoder, logger } = setUpOutputs();
    transcoder.echo = false;
    outputs.setTracks([VIDEO, AUDIO], true);
    push(media(0, 6));
    while (viewer().of('source').length < 180) await turn();
    expect(names(viewer().announcements[0])).toEqual(['0 source', '2 aac']);
    expect(logger.lines.filter(({ level }) => level === 'warn')).toMatchObject([{ fields: { missing: ['small', 'opus', 'picture'] } }]);
    const { session } = transcoder;
    session.announce(session.encode('opus').id);
    expect(names(viewer().announcements[1])).toEqual(['0 source', '2 aac', '3 opus']);
    expect(viewer().of('source').map(seconds)).toEqual(
      media(0, 6)
        .filter(({ track }) => track === VIDEO)
        .map(seconds),
    );
  });

  it('begins with the bypassed tracks when the transcoder cannot be opened', async () => {
    const { outputs, viewer, push, transcoder, logger } = setUpOutputs();
    transcoder.refusal = new Error('no processes left');
    outputs.setTracks([VIDEO, AUDIO], true);
    push(media());
    expect(names(viewer().announcements[0])).toEqual(['0 source', '2 aac']);
    expect(logger.lines.some(({ level, message }) => level === 'error' && message.includes('transcoder could not be started'))).toBe(true);
    expect((viewer().stream as OutboundStream).warnings).toEqual(
      ['small', 'opus', 'picture'].map(
        (name) => `the encode '${name}' is left out: the transcoder could not be started: no processes left`,
      ),
    );
  });

  it('knows the wall clock of media time 0 by all packets of the first turn before publishers get the first', () => {
    const bypass = { name: 'b', outputStreamName: 'b', encodes: { videos: [{ bypass: true }], audios: [{ bypass: true }] } };
    const { outputs, viewer, push, clock } = setUpOutputs([bypass]);
    outputs.setTracks([VIDEO, AUDIO], true);
    const epochs: number[] = [];
    viewer('b').onPacketSeen = () => epochs.push(outputs.streams[0]?.startedAt ?? Number.NaN);
    const first = media(0, 1.5);
    const last = first.at(-1);
    if (last === undefined) throw new Error('no media');
    push(first);
    // The last packet has waited least.
    const latest = Math.max(...first.map(({ dts, track }) => (dts * 1000 * track.timebase.num) / track.timebase.den));
    expect(epochs.length).toBe(first.length);
    expect(new Set(epochs)).toEqual(new Set([clock.now() - latest]));
  });

  it('starts a bypass-only profile at once, regardless of the other profiles', () => {
    const bypass = { name: 'b', outputStreamName: 'b', encodes: { videos: [{ bypass: true }], audios: [{ bypass: true }] } };
    const { outputs, viewer, push, transcoder } = setUpOutputs([LADDER, bypass]);
    transcoder.echo = false;
    outputs.setTracks([VIDEO, AUDIO], true);
    push(media());
    expect(viewer('b').packets.length).toBe(media().length);
    expect(viewer().packets.length).toBe(0);
  });

  it('starts when frames stop before their rate can be measured', () => {
    const rule = { codec: 'h264', bitrate: 1_000_000, framerate: 30, bypassIfMatch: { framerate: 'lte' } };
    const encodes = { videos: [{ name: 'source', ...rule }], audios: [{ name: 'aac', bypass: true }] };
    const { outputs, push, transcoder } = setUpOutputs([{ ...LADDER, encodes }]);
    outputs.setTracks([{ ...VIDEO, framerateConf: 0 } as Track, AUDIO], true);
    push(audioPackets(AUDIO, 4.9));
    expect(transcoder.sessions.length).toBe(0);
    push(audioPackets(AUDIO, 0.5, 4.9));
    expect(transcoder.session.job.encodes.length).toBe(1);
  });

  it('waits for tracks of the source with in-band parameters', () => {
    const { outputs, viewers, viewer, push, transcoder } = setUpOutputs();
    outputs.setTracks([AUDIO], false);
    push(audioPackets(AUDIO, 0.5));
    expect(viewers.size).toBe(0);
    outputs.setTracks([VIDEO, AUDIO], true);
    push(videoPackets(VIDEO, constantFrames({ rate: 30, gop: 30, seconds: 1 })));
    expect(names(viewer().announcements[0])).toEqual(['0 source', '1 small', '2 aac', '3 opus', '4 picture']);
    expect(viewer().of('aac').length).toBe(23);
    expect(transcoder.session.pushed.length).toBe(53);
  });

  it('starts without a track that never sends packets', () => {
    const { outputs, viewers, push } = setUpOutputs();
    outputs.setTracks([AUDIO], false);
    push(audioPackets(AUDIO, 6));
    expect(viewers.size).toBe(1);
  });
});
