import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AUDIO, LADDER, media, names, setUpOutputs, VIDEO } from '../../test/fakes/source-outputs.ts';
import { constantFrames, videoPackets } from '../../test/fakes/synthetic-media.ts';
import type { Packet } from '../media/packet.ts';
import type { Track } from '../media/track.ts';
import type { OutboundStream } from './outbound-stream.ts';
import { Urgency } from './urgency.ts';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('StreamOutputs', () => {
  it('reports profiles whose streams cannot be made', () => {
    const { outputs } = setUpOutputs([LADDER, { ...LADDER, name: 'again' }]);
    outputs.setTracks([VIDEO, AUDIO], true);
    expect(outputs.streams).toHaveLength(1);
    const sentence = "the output profile 'again' makes no stream: there is one of the name 's' already";
    expect(outputs.leftOut).toMatchObject([{ output: 's', profile: { name: 'again' }, sentence }]);
  });

  it('makes encoded and bypassed tracks of one stream, numbered in the order of the profile', async () => {
    const { outputs, viewer, push, transcoder } = setUpOutputs();
    outputs.setTracks([VIDEO, AUDIO], true);
    push(media());
    await turn();
    expect(viewer().announcements.length).toBe(1);
    expect(names(viewer().announcements[0])).toEqual(['0 source', '1 small', '2 aac', '3 opus', '4 picture']);
    expect(viewer().announcements[0]?.map(({ bypass }) => bypass)).toEqual([true, false, true, false, false]);
    expect(viewer().announcements[0]?.[3]).toMatchObject({ codec: 'OPUS', publicName: `${AUDIO.publicName}_3` });
    expect(transcoder.sessions.length).toBe(1);
    expect(transcoder.session.job).toMatchObject({
      vhost: 'v',
      app: 'app',
      stream: 's',
      decoderThreads: 2,
      onlyKeyframes: false,
      hardware: { enable: true, modules: 'nv' },
      hardwareDecoding: { enable: false, modules: 'qsv' },
    });
    for (const variant of ['source', 'small', 'picture']) expect(viewer().of(variant).length).toBe(60);
    expect(viewer().of('opus').length).toBe(viewer().of('aac').length);
    expect(viewer().of('small')[0]?.data).toBe(viewer().of('source')[0]?.data);
  });

  it('continues without a failed encode', async () => {
    const { outputs, viewer, push, transcoder, logger } = setUpOutputs();
    transcoder.echo = false;
    outputs.setTracks([VIDEO, AUDIO], true);
    push(media());
    const { session } = transcoder;
    session.announce(session.encode('opus').id);
    session.announce(session.encode('picture').id);
    const facts = { module: 'nv', errors: { count: 3, withinMs: 20 } };
    session.fail(session.encode('small').id, 'no encoder for H264', 'encoder', facts);
    await turn();
    expect(names(viewer().announcements[0])).toEqual(['0 source', '2 aac', '3 opus', '4 picture']);
    expect(logger.lines).toContainEqual(
      expect.objectContaining({ level: 'error', message: 'encode ladder/small failed: no encoder for H264' }),
    );
    session.fail(session.encode('opus').id, 'crashed too often');
    expect(names(viewer().announcements[1])).toEqual(['0 source', '2 aac', '4 picture']);
    // Where the API shows it.
    const failures = ["the encode 'small' is left out: no encoder for H264", "the encode 'opus' is left out: crashed too often"];
    expect((viewer().stream as OutboundStream).warnings).toEqual(failures);
    const [first] = (viewer().stream as OutboundStream).failures;
    expect(first).toMatchObject({
      fault: 'encoder',
      facts,
      trackId: 1,
      sourceTrackId: VIDEO.id,
      profile: { name: LADDER.name },
      kind: 'video',
    });
    session.announce(session.encode('small').id);
    expect((viewer().stream as OutboundStream).warnings).toEqual(failures.slice(1));
  });

  it('leaves encodes out without a transcoder, and logs them', () => {
    const { outputs, viewer, push, logger } = setUpOutputs([LADDER], { transcoder: null });
    outputs.setTracks([VIDEO, AUDIO], true);
    push(media());
    expect(names(viewer().announcements[0])).toEqual(['0 source', '1 aac']);
    expect(viewer().of('source').length).toBe(60);
    expect(logger.lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields['encodes'])).toEqual([
      ['small', 'opus', 'picture'],
    ]);
  });

  it('is in real time until it plays, then as urgent as for its publishers; the transcoder needs low latency', () => {
    const bypass = { name: 'source', outputStreamName: 's', encodes: { videos: [{ name: 'source', bypass: true }] } };
    const { outputs, viewer, push } = setUpOutputs([bypass]);
    expect(outputs.urgency).toBe(Urgency.REAL_TIME);
    outputs.setTracks([VIDEO], true);
    viewer().urgency = Urgency.NONE;
    expect(outputs.urgency).toBe(Urgency.REAL_TIME);
    push(media(0, 1).filter(({ track }) => track === VIDEO));
    for (const urgency of [Urgency.NONE, Urgency.LOW_LATENCY, Urgency.REAL_TIME]) {
      viewer().urgency = urgency;
      expect(outputs.urgency).toBe(urgency);
    }

    const ladder = setUpOutputs();
    ladder.outputs.setTracks([VIDEO, AUDIO], true);
    ladder.viewer().urgency = Urgency.NONE;
    ladder.push(media());
    expect(ladder.outputs.urgency).toBe(Urgency.LOW_LATENCY);
    ladder.viewer().urgency = Urgency.REAL_TIME;
    expect(ladder.outputs.urgency).toBe(Urgency.REAL_TIME);
  });

  it('needs packets when its publishers do, and any of them until it plays and while it is encoded', () => {
    const bypass = { name: 'source', outputStreamName: 's', encodes: { videos: [{ name: 'source', bypass: true }] } };
    const { outputs, viewer, push } = setUpOutputs([bypass]);
    outputs.setTracks([VIDEO], true);
    viewer().urgency = Urgency.LOW_LATENCY;
    expect(outputs.neededAt).toBe(Number.NEGATIVE_INFINITY);
    push(media(0, 1).filter(({ track }) => track === VIDEO));
    expect(outputs.neededAt).toBe(5000);

    const ladder = setUpOutputs();
    ladder.outputs.setTracks([VIDEO, AUDIO], true);
    ladder.viewer().urgency = Urgency.LOW_LATENCY;
    ladder.push(media());
    expect(ladder.outputs.neededAt).toBe(Number.NEGATIVE_INFINITY);
  });

  it('makes equal encodes of different profiles once, under the names of each', async () => {
    const other = {
      name: 'other',
      outputStreamName: '${OriginStreamName}_other',
      encodes: {
        videos: [{ name: 'tiny', codec: 'h264', bitrate: 500_000, height: 360 }],
        audios: [{ name: 'opus', codec: 'opus', bitrate: 64_000 }],
      },
    };
    const { outputs, viewer, push, transcoder } = setUpOutputs([LADDER, other]);
    outputs.setTracks([VIDEO, AUDIO], true);
    push(media());
    await turn();
    expect(transcoder.sessions.length).toBe(1);
    expect(transcoder.session.job.encodes.map(({ encode }) => encode.name)).toEqual(['small', 'opus', 'picture', 'opus']);
    expect(new Set(transcoder.session.job.encodes.map(({ id }) => id)).size).toBe(4);
    expect(names(viewer('s_other').announcements[0])).toEqual(['0 tiny', '1 opus']);
    expect(
      viewer('s_other')
        .of('tiny')
        .map(({ pts }) => pts),
    ).toEqual(
      viewer()
        .of('small')
        .map(({ pts }) => pts),
    );
    const bytes = (stream: string | undefined, encode: string) =>
      viewer(stream)
        .of(encode)
        .map(({ data }) => data);
    const shared = bytes(undefined, 'small');
    expect(shared.length).toBeGreaterThan(0);
    // The very same bytes: nothing was made or copied twice.
    expect(bytes('s_other', 'tiny').every((data, index) => data === shared[index])).toBe(true);
  });

  it('announces new parameters of the source and of an encode, under the same ids', async () => {
    const { outputs, viewer, push, transcoder } = setUpOutputs();
    outputs.setTracks([VIDEO, AUDIO], true);
    push(media());
    await turn();
    const larger: Track = { ...VIDEO, width: 1920, height: 1080 };
    outputs.setTracks([larger, AUDIO], true);
    expect(transcoder.sessions.length).toBe(1);
    expect(transcoder.session.trackCalls.at(-1)?.[0]).toBe(larger);
    expect(names(viewer().announcements.at(-1))).toEqual(names(viewer().announcements[0]));
    expect(viewer().announcements.at(-1)?.[0]).toMatchObject({ id: 0, width: 1920 });
    // Only changed objects are new.
    expect(viewer().announcements.at(-1)?.[2]).toBe(viewer().announcements[0]?.[2]);
    transcoder.session.announce(transcoder.session.encode('small').id, { width: 640 });
    expect(viewer().announcements.at(-1)?.[1]).toMatchObject({ id: 1, width: 640, variantName: 'small' });
    push(media(2, 1, larger));
    await turn();
    expect(viewer().of('small').at(-1)?.track).toBe(viewer().announcements.at(-1)?.[1]);
    expect(viewer().of('source').at(-1)?.track).toBe(viewer().announcements.at(-1)?.[0]);
  });

  it('encodes a track that can no longer be bypassed, under the same id', async () => {
    const rule = { name: 'v', codec: 'h264', bitrate: 500_000, width: 1280, height: 720, bypassIfMatch: { codec: 'eq', height: 'lte' } };
    const { outputs, viewer, push, transcoder } = setUpOutputs([{ name: 'p', outputStreamName: 'o', encodes: { videos: [rule] } }]);
    const fits: Track = { ...VIDEO, width: 1280, height: 720 };
    const tall: Track = { ...VIDEO, width: 1920, height: 1080 };
    outputs.setTracks([fits], true);
    push(media(0, 1, fits as typeof VIDEO));
    expect(transcoder.sessions.length).toBe(0);
    expect(viewer('o').announcements).toMatchObject([[{ id: 0, bypass: true, height: 720 }]]);
    outputs.setTracks([tall], true);
    push(media(1, 1, tall as typeof VIDEO));
    await turn();
    expect(viewer('o').announcements.at(-1)).toMatchObject([{ id: 0, bypass: false }]);
    outputs.setTracks([fits], true);
    push(media(2, 1, fits as typeof VIDEO));
    expect(transcoder.session.closed).toBe(true);
    expect(viewer('o').announcements.at(-1)).toMatchObject([{ id: 0, bypass: true, height: 720 }]);
    expect(viewer('o').of('v').length).toBe(90);
  });

  it.each([
    ['as announced', 30, 30, 'bypass'],
    ['when nothing is announced', 25, 0, 'bypass'],
    ['when less is announced than comes', 60, 30, 'encode'],
    ['when more is announced than comes', 15, 60, 'bypass'],
  ])('judges the frame rate of a source by its first frames: %s', (_name, rate, framerateConf, expected) => {
    const rule = { codec: 'h264', bitrate: 1_000_000, framerate: 30, bypassIfMatch: { framerate: 'lte' } };
    const { outputs, push, transcoder, viewer } = setUpOutputs([{ ...LADDER, encodes: { videos: [{ name: 'source', ...rule }] } }]);
    const video = { ...VIDEO, framerateConf } as typeof VIDEO;
    const packets = videoPackets(video, constantFrames({ rate, gop: rate, seconds: 2 }));
    outputs.setTracks([video], true);
    push(packets.slice(0, 15));
    expect(viewer).toThrow('no output');
    push(packets.slice(15));
    expect(transcoder.sessions.length).toBe(expected === 'bypass' ? 0 : 1);
    if (expected === 'bypass') expect(viewer().packets.length).toBe(packets.length);
    else expect(transcoder.session.pushed.length).toBe(packets.length);
  });

  it('passes the bypassed sources to the transcoder, and restarts it when the first source is bypassed', () => {
    const rule = { bypassIfMatch: { height: 'lte' }, codec: 'h264', bitrate: 1_000_000, height: 720 };
    const encodes = { videos: [{ name: 'source', ...rule }, LADDER.encodes.videos[1]] };
    const large = { ...VIDEO, height: 1080 } as Track;
    const { outputs, transcoder } = setUpOutputs([{ ...LADDER, encodes }]);
    outputs.setTracks([large], true);
    expect(transcoder.sessions.map(({ job }) => [job.encodes.length, job.bypassedSources])).toEqual([[2, []]]);
    outputs.setTracks([VIDEO], true);
    expect(transcoder.sessions.map(({ closed }) => closed)).toEqual([true, false]);
    expect(transcoder.sessions[1]?.job).toMatchObject({ encodes: [{ trackId: 1, encode: { name: 'small' } }], bypassedSources: [0] });
    outputs.setTracks([{ ...VIDEO }, AUDIO], true);
    expect(transcoder.sessions.map(({ closed }) => closed)).toEqual([true, false]);
    outputs.setTracks([large, AUDIO], true);
    expect(transcoder.sessions.map(({ job, closed }) => [job.bypassedSources, closed])).toEqual([
      [[], true],
      [[0], false],
      [[0], false],
    ]);
  });

  it('keeps running encodes when the source gets another track', async () => {
    const { outputs, viewer, push, transcoder } = setUpOutputs();
    outputs.setTracks([VIDEO], true);
    push(videoPackets(VIDEO, constantFrames({ rate: 30, gop: 30, seconds: 1 })));
    await turn();
    const [first] = transcoder.sessions;
    expect(names(viewer().announcements.at(-1))).toEqual(['0 source', '1 small', '2 picture']);
    outputs.setTracks([VIDEO, AUDIO], true);
    push(media(1, 1));
    await turn();
    expect(transcoder.sessions.length).toBe(2);
    expect(first?.closed).toBe(false);
    expect(transcoder.session.job.encodes.map(({ encode }) => encode.name)).toEqual(['opus']);
    expect(names(viewer().announcements.at(-1))).toEqual(['0 source', '1 small', '3 aac', '4 opus', '2 picture']);
    expect(viewer().of('small').length).toBe(60);
    expect(viewer().of('opus').length).toBeGreaterThan(40);
    outputs.setTracks([AUDIO], true);
    expect(first?.closed).toBe(true);
    expect(transcoder.session.closed).toBe(false);
    outputs.close({ code: 'peer-left', detail: 'bye' });
    expect(transcoder.sessions.every(({ closed }) => closed)).toBe(true);
  });

  it('passes requests for keyframes of encoded video on, not more than two a second', () => {
    const { outputs, viewer, push, transcoder, clock } = setUpOutputs();
    outputs.setTracks([VIDEO, AUDIO], true);
    push(media());
    const small = transcoder.session.encode('small').id;
    for (let viewers = 0; viewers < 5; viewers += 1) viewer().stream?.requestKeyframe(1);
    for (const other of [0, 2, 3, 4, 99]) viewer().stream?.requestKeyframe(other);
    expect(transcoder.session.keyframeRequests).toEqual([small]);
    clock.advance(500);
    viewer().stream?.requestKeyframe(1);
    expect(transcoder.session.keyframeRequests).toEqual([small, small]);
  });

  it('passes requests for keyframes of bypassed video on to the source, at most one a second', () => {
    const { outputs, viewer, push, transcoder, clock, sourceKeyframes } = setUpOutputs();
    outputs.setTracks([VIDEO, AUDIO], true);
    push(media());
    for (let viewers = 0; viewers < 5; viewers += 1) viewer().stream?.requestKeyframe(0);
    for (const other of [1, 2, 3, 4, 99]) viewer().stream?.requestKeyframe(other);
    expect(sourceKeyframes).toEqual([VIDEO.id]);
    clock.advance(999);
    viewer().stream?.requestKeyframe(0);
    clock.advance(1);
    viewer().stream?.requestKeyframe(0);
    expect(sourceKeyframes).toEqual([VIDEO.id, VIDEO.id]);
    expect(transcoder.session.keyframeRequests.length).toBe(1);
  });

  it('requests only keyframes when only images are made', () => {
    const images = { name: 'p', outputStreamName: 'o', encodes: { videos: [{ bypass: true }], images: [{ codec: 'png' }] } };
    const { outputs, transcoder } = setUpOutputs([images]);
    outputs.setTracks([VIDEO], true);
    expect(transcoder.session.job.onlyKeyframes).toBe(true);
  });

  it('ends the session and the outbound streams with the inbound stream, and ignores later results', async () => {
    const { outputs, viewer, push, transcoder } = setUpOutputs();
    outputs.setTracks([VIDEO, AUDIO], true);
    push(media());
    await turn();
    const { session } = transcoder;
    const reason = { code: 'peer-left', detail: 'bye' } as const;
    outputs.close(reason);
    outputs.close(reason);
    expect(session.closed).toBe(true);
    expect(viewer().closed).toBe(reason);
    const before = viewer().packets.length;
    session.announce(session.encode('small').id);
    session.emit(session.encode('small').id, media()[0] as Packet);
    session.fail(session.encode('small').id, 'killed');
    await turn();
    expect(viewer().packets.length).toBe(before);
    expect(viewer().announcements.length).toBe(1);
  });

  it('loses, repeats and reorders no packet, for arbitrary orders of events', async () => {
    const event = fc.oneof(
      { weight: 4, arbitrary: fc.record({ kind: fc.constant('media' as const), seconds: fc.constantFrom(0.2, 1, 3) }) },
      fc.record({ kind: fc.constantFrom('announce' as const, 'fail' as const, 'emit' as const), encode: fc.integer({ min: 0, max: 3 }) }),
      fc.record({ kind: fc.constantFrom('resize' as const, 'same' as const, 'turn' as const) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 25 }), async (events) => {
        const { outputs, viewer, push, transcoder } = setUpOutputs();
        transcoder.echo = false;
        let video = VIDEO;
        let now = 0;
        outputs.setTracks([video, AUDIO], true);
        const { session } = transcoder;
        const encodes = session.job.encodes.map(({ id }) => id);
        const announced = new Set<number>();
        const sent: Packet[] = [];
        for (const one of events) {
          if (one.kind === 'media') {
            const packets = media(now, one.seconds, video);
            now += one.seconds;
            sent.push(...packets);
            push(packets);
          } else if (one.kind === 'announce') {
            const id = encodes[one.encode];
            if (id === undefined) continue;
            announced.add(id);
            session.announce(id);
          } else if (one.kind === 'fail') {
            announced.delete(encodes[one.encode] ?? -1);
            session.fail(encodes[one.encode] ?? -1, 'made to fail');
          } else if (one.kind === 'emit') {
            const id = encodes[one.encode];
            const last = sent.at(-1);
            if (id !== undefined && last !== undefined && announced.has(id)) session.emit(id, last);
          } else if (one.kind === 'turn') {
            await turn();
          } else {
            if (one.kind === 'resize') video = { ...video, width: video.width + 16 };
            outputs.setTracks([video, AUDIO], true);
          }
        }
        outputs.close({ code: 'peer-left', detail: 'end' });
        const { announcements } = viewer();
        if (announcements.length === 0) {
          expect(viewer().packets).toEqual([]);
          return;
        }
        const ids = new Map<string, number>();
        for (const { id, variantName } of announcements.flat()) {
          expect(ids.get(variantName) ?? id).toBe(id);
          ids.set(variantName, id);
        }
        for (const [variant, type] of [
          ['source', 'video'],
          ['aac', 'audio'],
        ]) {
          const expected = sent.filter(({ track }) => track.type === type).map(({ pts }) => pts);
          expect(
            viewer()
              .of(variant ?? '')
              .map(({ pts }) => pts),
          ).toEqual(expected);
        }
        for (const { track } of viewer().packets) expect(ids.has(track.variantName)).toBe(true);
      }),
      { numRuns: 60 },
    );
  });
});
