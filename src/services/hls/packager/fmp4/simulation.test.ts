import { describe, expect, it } from 'vitest';
import {
  audioPackets,
  audioTrack,
  constantFrames,
  type FrameTime,
  interleave,
  videoPackets,
  videoTrack,
} from '../../../../../test/fakes/synthetic-media.ts';
import { LlhlsSimulation, type WatchedTrack } from '../../../../../test/validator/llhls-simulation.ts';
import { readFragment } from '../../../../../test/validator/llhls-validator.ts';
import { MILLISECONDS } from '../../../../media/timebase.ts';

function watched(simulation: LlhlsSimulation, id: number): WatchedTrack {
  const track = simulation.watched.find((candidate) => candidate.id === id);
  if (track === undefined) throw new Error(`track ${id} is not served`);
  return track;
}

function segmentDurations(track: WatchedTrack): (number | null)[] {
  return track.playlist?.segments.map((segment) => segment.duration) ?? [];
}

describe('an LL-HLS stream over time', () => {
  it('obeys rfc8216bis for 30 fps with AAC', () => {
    const video = videoTrack();
    const audio = audioTrack();
    const simulation = new LlhlsSimulation([video, audio]);
    simulation.run(interleave(videoPackets(video, constantFrames({ rate: 30, gop: 60, seconds: 120 })), audioPackets(audio, 120)));
    expect(simulation.problems).toEqual([]);
    const v = watched(simulation, 0);
    const a = watched(simulation, 1);
    expect(v.playlist?.partTarget).toBe(0.5);
    expect(a.playlist?.partTarget).toBe(0.491);
    expect(v.playlist?.targetDuration).toBe(6);
    expect(
      segmentDurations(v)
        .slice(0, -1)
        .every((duration) => duration === 6),
    ).toBe(true);
    expect(v.jumps).toEqual([]);
    expect(a.jumps).toEqual([]);
    // 10 + 3 complete segments are held, one of which is not listed any more.
    expect(v.playlist?.segments.length).toBe(13);
  });

  it('cuts audio where video is cut', () => {
    const video = videoTrack();
    const audio = audioTrack();
    const simulation = new LlhlsSimulation([video, audio]);
    simulation.run(interleave(videoPackets(video, constantFrames({ rate: 30, gop: 45, seconds: 60 })), audioPackets(audio, 60)));
    expect(simulation.problems).toEqual([]);
    const audioStarts = new Map(watched(simulation, 1).playlist?.segments.map((segment) => [segment.msn, segment.programDateTime ?? 0]));
    for (const segment of watched(simulation, 0).playlist?.segments ?? []) {
      const other = audioStarts.get(segment.msn);
      if (other !== undefined) expect(Math.abs(other - (segment.programDateTime ?? 0))).toBeLessThanOrEqual(22);
    }
    expect(audioStarts.size).toBeGreaterThan(8);
    // hls.js passes over tiny parts at the end of a segment: from the second segment on there are none.
    const sound = watched(simulation, 1);
    const last = sound.playlist?.segments.filter(({ msn, parts, duration }) => msn > 0 && parts.length > 0 && duration !== null);
    for (const { parts } of last ?? []) expect(parts.at(-1)?.duration).toBeGreaterThan(0.4);
    expect(last?.length).toBeGreaterThan(1);
  });

  it('cuts audio in step although it arrives half a second before video', () => {
    const video = videoTrack();
    const audio = audioTrack();
    const simulation = new LlhlsSimulation([video, audio]);
    const frames = videoPackets(video, constantFrames({ rate: 30, gop: 60, seconds: 60 }));
    const sound = audioPackets(audio, 60);
    const arrival = (time: number, early: number): number => time - early;
    const order = [
      ...frames.map((packet) => ({ packet, at: arrival(packet.dts / 90_000, 0) })),
      ...sound.map((packet) => ({ packet, at: arrival(packet.dts / 48_000, 0.5) })),
    ].sort((a, b) => a.at - b.at);
    simulation.run(order.map(({ packet }) => packet));
    expect(simulation.problems).toEqual([]);
    const durations = segmentDurations(watched(simulation, 1)).slice(1, -1);
    for (const duration of durations) expect(Math.abs((duration ?? 0) - 6)).toBeLessThan(0.022);
  });

  it('obeys the rules with millisecond timestamps and B-frames', () => {
    const video = videoTrack({ timebase: MILLISECONDS });
    const audio = audioTrack({ timebase: MILLISECONDS });
    const simulation = new LlhlsSimulation([video, audio]);
    simulation.run(
      interleave(videoPackets(video, constantFrames({ rate: 30, gop: 61, seconds: 60, bFrames: true })), audioPackets(audio, 60)),
    );
    expect(simulation.problems).toEqual([]);
    expect(watched(simulation, 0).playlist?.partTarget).toBeLessThanOrEqual(0.503);
    expect(Math.max(0, ...watched(simulation, 0).jumps)).toBe(0);
    expect(Math.min(0, ...watched(simulation, 0).jumps)).toBeGreaterThanOrEqual(-0.0011);
    // Audio is counted in samples: none is doubled or missing although milliseconds cannot express 21.33.
    expect(watched(simulation, 1).jumps).toEqual([]);
  });

  it.each([
    { rate: 29.97, gop: 60 },
    { rate: 25, gop: 50 },
    { rate: 59.94, gop: 120 },
    { rate: 23.976, gop: 48 },
    { rate: 15, gop: 30 },
    { rate: 5, gop: 10 },
    { rate: 1, gop: 4 },
  ])('obeys the rules at $rate fps', ({ rate, gop }) => {
    for (const timebase of [{ num: 1, den: 90_000 }, MILLISECONDS]) {
      const video = videoTrack({ timebase, framerateConf: 0 });
      const simulation = new LlhlsSimulation([video]);
      simulation.run(videoPackets(video, constantFrames({ rate, gop, seconds: 60 })));
      expect(simulation.problems).toEqual([]);
      expect(simulation.watched).toHaveLength(1);
    }
  });

  it.each([1, 2, 2.5, 3.3, 4, 5, 7, 8.3, 10])('keeps segments below TARGETDURATION and on keyframes with a GOP of %d s', (gop) => {
    const video = videoTrack();
    const audio = audioTrack();
    const simulation = new LlhlsSimulation([video, audio]);
    simulation.run(
      interleave(videoPackets(video, constantFrames({ rate: 30, gop: Math.round(gop * 30), seconds: 90 })), audioPackets(audio, 90)),
    );
    expect(simulation.problems).toEqual([]);
    expect(simulation.delivery.get('llhls.m3u8').text).toContain('#EXT-X-INDEPENDENT-SEGMENTS');
    expect(simulation.playableAt).toBeLessThan(Math.max(1.5, gop) + 0.6);
    for (const segment of watched(simulation, 0).playlist?.segments ?? []) {
      if (segment.parts.length > 0) expect(segment.parts[0]?.independent).toBe(true);
    }
  });

  it('cuts without a keyframe to keep TARGETDURATION, and removes EXT-X-INDEPENDENT-SEGMENTS', () => {
    const video = videoTrack();
    const frames = constantFrames({ rate: 30, gop: 100_000, seconds: 60 }).map((frame, index) => ({
      ...frame,
      keyframe: index === 0 || index === 60 || index === 120 || index === 1200,
    }));
    const simulation = new LlhlsSimulation([video]);
    simulation.run(videoPackets(video, frames));
    expect(simulation.problems).toEqual([]);
    expect(simulation.delivery.get('llhls.m3u8').text).not.toContain('#EXT-X-INDEPENDENT-SEGMENTS');
  });

  it.each([
    { rate: 30, sampleRate: 48_000, partTargets: [0.5, 0.512] },
    { rate: 25, sampleRate: 44_100, partTargets: [0.52, 0.511] },
    { rate: 25, sampleRate: 48_000, segmentDuration: 6, partTargets: [0.48, 0.491] },
  ])('ends no segment with a part that hls.js passes over at $rate fps and $sampleRate Hz', (given) => {
    const { rate, sampleRate, segmentDuration = 1, partTargets } = given;
    const video = videoTrack();
    const audio = audioTrack({ sampleRate, timebase: { num: 1, den: sampleRate } });
    const simulation = new LlhlsSimulation([video, audio], { segmentDuration });
    const shortest = new Map<number, number>();
    const packets = interleave(videoPackets(video, constantFrames({ rate, gop: rate, seconds: 30 })), audioPackets(audio, 30));
    for (const packet of packets) {
      simulation.run([packet]);
      for (const { id, playlist } of simulation.watched) {
        for (const { msn, duration, parts } of playlist?.segments ?? []) {
          // The first segments begin before anything is known of their end.
          if (msn < 2 || duration === null || parts.length === 0) continue;
          shortest.set(id, Math.min(shortest.get(id) ?? 1, parts.at(-1)?.duration ?? 0));
        }
      }
    }
    expect(simulation.problems).toEqual([]);
    expect([0, 1].map((id) => watched(simulation, id).playlist?.partTarget)).toEqual(partTargets);
    for (const seconds of shortest.values()) expect(seconds).toBeGreaterThan(0.25);
    expect(shortest.size).toBe(2);
  });

  it.each([
    { rate: 1, partTarget: 1 },
    { rate: 2, partTarget: 0.5 },
    { rate: 3, partTarget: 0.334 },
    { rate: 10, partTarget: 0.5 },
  ])('obeys the rules at $rate fps when the source announces 30', ({ rate, partTarget }) => {
    const video = videoTrack();
    const simulation = new LlhlsSimulation([video], { segmentDuration: 4 });
    const packets = videoPackets(video, constantFrames({ rate, gop: rate * 2, seconds: 60 }));
    // Like the router: the source's value counts as one measured distance, and two equal distances overrule it.
    const said = 3000;
    simulation.run(packets.map((packet, n) => ({ ...packet, duration: [said, (said + packet.duration) / 2][n] ?? packet.duration })));
    expect(simulation.problems).toEqual([]);
    expect(watched(simulation, 0).playlist?.partTarget).toBe(partTarget);
  });

  it('does not derive the frame rate from a gap after the first frame', () => {
    const video = videoTrack();
    const frames = constantFrames({ rate: 30, gop: 60, seconds: 40 }).filter(({ seconds }) => seconds === 0 || seconds >= 3);
    const simulation = new LlhlsSimulation([video]);
    simulation.run(videoPackets(video, frames).map((packet) => ({ ...packet, duration: 3000 })));
    expect(watched(simulation, 0).playlist?.partTarget).toBe(0.5);
  });

  it('obeys the rules with segments of two parts', () => {
    const video = videoTrack({ timebase: MILLISECONDS });
    const simulation = new LlhlsSimulation([video], { segmentDuration: 1 });
    simulation.run(videoPackets(video, constantFrames({ rate: 30, gop: 30, seconds: 40 })));
    expect(simulation.problems).toEqual([]);
  });

  it('obeys the rules with a variable frame rate', () => {
    const video = videoTrack({ timebase: MILLISECONDS });
    const frames: FrameTime[] = [];
    let seconds = 0;
    for (let i = 0; seconds < 60; i++) {
      frames.push({ seconds, keyframe: i % 50 === 0 });
      seconds += [0.02, 0.033, 0.041, 0.05, 0.033, 0.06][(i * 7) % 6] ?? 0.033;
    }
    const simulation = new LlhlsSimulation([video]);
    simulation.run(videoPackets(video, frames));
    expect(simulation.problems).toEqual([]);
  });

  it.each([
    { name: 'lost frames', holes: (n: number) => n % 37 < 31 },
    { name: 'a third of the frames for a while', holes: (n: number) => Math.floor(n / 47) % 2 === 0 || n % 3 === 0 },
    { name: 'a pause of five seconds', holes: (n: number) => n < 905 || n > 1055 },
  ])('decodes without a hole and shows every frame in time with $name', ({ holes }) => {
    // Browsers drop everything up to the next keyframe when a decoding time is two frames behind its predecessor.
    for (const bFrames of [false, true]) {
      const video = videoTrack();
      const times = constantFrames({ rate: 30, gop: 120, seconds: 60, bFrames });
      const packets = videoPackets(
        video,
        times.filter((frame, n) => frame.keyframe || holes(n)),
      );
      const simulation = new LlhlsSimulation([video]);
      simulation.run(packets);
      const track = watched(simulation, 0);
      expect(track.jumps.filter((jump) => jump > 0)).toEqual([]);
      const shown = [...track.parts.values()].flatMap((bytes) => readFragment(bytes).shown);
      expect(shown.length).toBeGreaterThan(packets.length - 40);
      expect(shown).toEqual(packets.slice(0, shown.length).map(({ pts }) => pts));
    }
  });

  it('lists a frame that outlasts a part as if it did not', () => {
    const video = videoTrack();
    const simulation = new LlhlsSimulation([video]);
    const packets = videoPackets(
      video,
      constantFrames({ rate: 30, gop: 60, seconds: 40 }).filter(({ seconds }) => seconds < 10.2 || seconds > 10.98),
    );
    const known = packets.map((packet, index) => ({ ...packet, duration: (packets[index + 1]?.dts ?? packet.dts + 3000) - packet.dts }));
    simulation.run(known);
    const listing = simulation.problems.filter((problem) => !/is listed with|add up to/.test(problem));
    expect(listing).toEqual([]);
    expect(watched(simulation, 0).jumps).toEqual([]);
  });

  it('keeps the renditions of a ladder in step although their keyframes are not', () => {
    const high = videoTrack({ id: 0, variantName: 'high' });
    const low = videoTrack({ id: 2, variantName: 'low', width: 640, height: 360 });
    const audio = audioTrack();
    const rendition = (name: string) => ({
      name,
      videoVariantName: name,
      audioVariantName: 'audio',
      videoIndexHint: -1,
      audioIndexHint: -1,
    });
    const simulation = new LlhlsSimulation(
      [high, audio, low],
      {},
      {
        name: 'ladder',
        fileName: 'abr',
        options: { webrtcAutoAbr: true, hlsChunklistPathDepth: 0, enableTsPackaging: false, enableSubtitles: true },
        renditions: [rendition('high'), rendition('low')],
      },
    );
    const lowFrames = constantFrames({ rate: 30, gop: 60, seconds: 79, from: 1 });
    simulation.run(
      interleave(
        videoPackets(high, constantFrames({ rate: 30, gop: 60, seconds: 80 })),
        videoPackets(low, lowFrames),
        audioPackets(audio, 80),
      ),
    );
    expect(simulation.problems).toEqual([]);
    expect(simulation.watched.map((track) => track.id)).toEqual([0, 2, 1]);
    expect(simulation.delivery.get('abr.m3u8').text).toContain('#EXT-X-INDEPENDENT-SEGMENTS');
    const start = (id: number, msn: number): number =>
      watched(simulation, id).playlist?.segments.find((segment) => segment.msn === msn)?.programDateTime ?? 0;
    for (const msn of [4, 6, 8]) {
      expect(start(2, msn) - start(0, msn)).toBe(1000);
      expect(Math.abs(start(1, msn) - start(0, msn))).toBeLessThanOrEqual(22);
    }
  });

  describe('with an encoded rendition that starts after the bypassed one', () => {
    const high = videoTrack({ id: 0, variantName: 'high' });
    const low = videoTrack({ id: 1, variantName: 'low', width: 640, height: 360, bypass: false });
    const audio = audioTrack({ id: 2 });
    const rendition = (videoVariantName: string) => ({
      name: videoVariantName,
      videoVariantName,
      audioVariantName: 'audio',
      videoIndexHint: -1,
      audioIndexHint: -1,
    });
    const options = { webrtcAutoAbr: true, hlsChunklistPathDepth: 0, enableTsPackaging: false, enableSubtitles: true };
    const ladder = { name: 'ladder', fileName: 'abr', options, renditions: [rendition('low'), rendition('high')] };
    /** Encoding takes 0.4 s. */
    const arriving = (lowPackets: ReturnType<typeof videoPackets>) => {
      const order = [
        ...videoPackets(high, constantFrames({ rate: 30, gop: 60, seconds: 60 })).map((packet) => ({ packet, at: packet.dts / 90_000 })),
        ...lowPackets.map((packet) => ({ packet, at: packet.dts / 90_000 + 0.4 })),
        ...audioPackets(audio, 60).map((packet) => ({ packet, at: packet.dts / 48_000 })),
      ].sort((a, b) => a.at - b.at);
      return order.map(({ packet }) => packet);
    };

    it('cuts both renditions at the same times and lists them in the order of the profile', () => {
      const simulation = new LlhlsSimulation([high, low, audio], {}, ladder);
      simulation.run(arriving(videoPackets(low, constantFrames({ rate: 30, gop: 60, seconds: 60 }))));
      expect(simulation.problems).toEqual([]);
      const resolutions = simulation.delivery.get('abr.m3u8').text.match(/RESOLUTION=\S+?,/g);
      expect(resolutions).toEqual(['RESOLUTION=640x360,', 'RESOLUTION=1280x720,']);
      const starts = (id: number) => watched(simulation, id).playlist?.segments.map(({ msn, programDateTime }) => [msn, programDateTime]);
      expect(starts(1)?.slice(0, 8)).toEqual(starts(0)?.slice(0, 8));
    });

    it('continues after a discontinuity when the encoder restarts with another configuration', () => {
      const anew = { ...low, width: 480, height: 270, codecString: 'avc1.64001e' };
      const simulation = new LlhlsSimulation([high, low, audio], {}, ladder);
      // A crash at 20 s: the encoder is back after 1.5 s, with its own keyframes.
      const packets = arriving([
        ...videoPackets(low, constantFrames({ rate: 30, gop: 60, seconds: 20 })),
        ...videoPackets(anew, constantFrames({ rate: 30, gop: 60, seconds: 38.5, from: 21.5 })),
      ]);
      const at = packets.findIndex(({ track }) => track === anew);
      simulation.run(packets.slice(0, at));
      simulation.source.tracks = [high, anew, audio];
      simulation.stream.onTracks(simulation.source.tracks);
      simulation.run(packets.slice(at));
      expect(simulation.problems).toEqual([]);
      const segments = watched(simulation, 1).playlist?.segments ?? [];
      expect(segments.filter(({ discontinuity }) => discontinuity)).toHaveLength(1);
      expect(new Set(segments.map(({ map }) => map)).size).toBe(2);
      expect(watched(simulation, 1).end).toBeGreaterThan(59);
      // The multivariant playlist has the new size; media sequence numbers still mean the same time in every rendition.
      expect(simulation.delivery.get('abr.m3u8').text).toContain('RESOLUTION=480x270');
      const start = (id: number, msn: number): number =>
        watched(simulation, id).playlist?.segments.find((segment) => segment.msn === msn)?.programDateTime ?? 0;
      const last = segments.at(-2)?.msn ?? 0;
      expect(Math.abs(start(1, last) - start(0, last))).toBeLessThanOrEqual(2000);
    });
  });

  it('serves audio alone', () => {
    const audio = audioTrack();
    const simulation = new LlhlsSimulation([audio]);
    simulation.run(audioPackets(audio, 90));
    expect(simulation.problems).toEqual([]);
    expect(
      segmentDurations(watched(simulation, 1))
        .slice(0, -1)
        .every((duration) => Math.abs((duration ?? 0) - 6) < 0.022),
    ).toBe(true);
    expect(simulation.playableAt).toBeLessThan(1.6);
  });

  it('writes a new init segment after a discontinuity in every track when the configuration changes', () => {
    const before = videoTrack();
    const after = videoTrack({ width: 640, height: 360, codecString: 'avc1.64001e' });
    const audio = audioTrack();
    const simulation = new LlhlsSimulation([before, audio]);
    simulation.run(
      interleave(
        videoPackets(before, constantFrames({ rate: 30, gop: 60, seconds: 20 })),
        videoPackets(after, constantFrames({ rate: 30, gop: 60, seconds: 40, from: 20 })),
        audioPackets(audio, 60),
      ),
    );
    expect(simulation.problems).toEqual([]);
    const segments = watched(simulation, 0).playlist?.segments ?? [];
    const changed = segments.filter((segment) => segment.discontinuity);
    expect(changed).toHaveLength(1);
    expect(new Set(segments.map((segment) => segment.map)).size).toBe(2);
    const init = simulation.delivery.get(changed[0]?.map ?? '');
    expect(init.status).toBe(200);
    const audioChange = watched(simulation, 1).playlist?.segments.find((segment) => segment.discontinuity);
    expect(audioChange?.msn).toBe(changed[0]?.msn);
  });

  it('counts a change of all renditions at once as one discontinuity', () => {
    const seconds = { before: 20, after: 40 };
    const renditions = [0, 2, 3].map((id) => {
      const before = videoTrack({ id, variantName: `v${id}` });
      const after = { ...before, width: 640, height: 360, codecString: 'avc1.64001e' };
      return { before, after };
    });
    const audio = audioTrack();
    const simulation = new LlhlsSimulation([...renditions.map(({ before }) => before), audio]);
    simulation.run(
      interleave(
        ...renditions.map(({ before, after }) => [
          ...videoPackets(before, constantFrames({ rate: 30, gop: 60, seconds: seconds.before })),
          ...videoPackets(after, constantFrames({ rate: 30, gop: 60, seconds: seconds.after, from: seconds.before })),
        ]),
        audioPackets(audio, seconds.before + seconds.after),
      ),
    );
    const changed = [0, 1, 2, 3].map((id) =>
      [...(simulation.stream.model.tracks.get(id)?.segments ?? [])].filter((one) => one.discontinuity),
    );
    expect(changed.map((segments) => segments.length)).toEqual([1, 1, 1, 1]);
    expect(new Set(changed.flat().map(({ msn }) => msn)).size).toBe(1);
  });

  it('continues with audio when video pauses', () => {
    const video = videoTrack();
    const audio = audioTrack();
    const frames = constantFrames({ rate: 30, gop: 60, seconds: 80 }).filter(({ seconds }) => seconds < 20 || seconds >= 50);
    const simulation = new LlhlsSimulation([video, audio]);
    simulation.run(interleave(videoPackets(video, frames), audioPackets(audio, 80)));
    const audioProblems = simulation.problems.filter((problem) => problem.startsWith('track 1'));
    expect(audioProblems).toEqual([]);
    expect(watched(simulation, 1).end).toBeGreaterThan(78);
    expect(watched(simulation, 0).end).toBeGreaterThan(78);
  });

  it('leaves out a track that never sends anything', () => {
    const video = videoTrack();
    const simulation = new LlhlsSimulation([video, audioTrack()]);
    simulation.run(videoPackets(video, constantFrames({ rate: 30, gop: 60, seconds: 30 })));
    expect(simulation.problems).toEqual([]);
    expect(simulation.delivery.get('llhls.m3u8').text).not.toContain('audio');
    expect(simulation.playableAt).toBeLessThan(10.6);
  });

  it('serves segments that are the concatenation of their parts', () => {
    const video = videoTrack();
    const simulation = new LlhlsSimulation([video]);
    simulation.run(videoPackets(video, constantFrames({ rate: 30, gop: 60, seconds: 20 })));
    const { segment, parts } = simulation.segmentAndParts(watched(simulation, 0), 1);
    expect(segment.length).toBeGreaterThan(10_000);
    expect(Buffer.compare(segment, parts)).toBe(0);
  });

  it('stores only the media of the window', () => {
    const video = videoTrack();
    const simulation = new LlhlsSimulation([video], { segmentCount: 4 });
    simulation.run(videoPackets(video, constantFrames({ rate: 30, gop: 60, seconds: 200 })));
    const perSecond = 33 * 500;
    expect(simulation.delivery.feed.storedBytes).toBeLessThan(8.1 * 6 * perSecond * 1.1);
  });

  it('ends playlists when it is concluded', () => {
    const video = videoTrack();
    const simulation = new LlhlsSimulation([video]);
    const packets = videoPackets(video, constantFrames({ rate: 30, gop: 60, seconds: 20 }));
    simulation.run(packets.slice(0, 500));
    simulation.stream.concludeHlsLive();
    simulation.stream.concludeHlsLive();
    simulation.run(packets.slice(500));
    const playlist = simulation.fetch(watched(simulation, 0));
    expect(playlist.ended).toBe(true);
    expect(playlist.preloadHint).toBeNull();
    expect(playlist.segments.reduce((sum, segment) => sum + (segment.duration ?? 0), 0)).toBeCloseTo(500 / 30, 1);
    expect(simulation.problems).toEqual([]);
  });
});
