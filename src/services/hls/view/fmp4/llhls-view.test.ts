import fc from 'fast-check';
import { M3U8Parser, PlaylistLevelType } from 'hls.js';
import * as hlsParser from 'hls-parser';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  audioPackets,
  audioTrack,
  constantFrames,
  interleave,
  videoPackets,
  videoTrack,
} from '../../../../../test/fakes/synthetic-media.ts';
import { LlhlsSimulation } from '../../../../../test/validator/llhls-simulation.ts';
import type { Packet } from '../../../../media/packet.ts';
import type { LlhlsSettings } from '../../wire/settings.ts';

const SESSION = 'session=1_FakeKey1';
const video = videoTrack();
const audio = audioTrack();
const packets = interleave(videoPackets(video, constantFrames({ rate: 30, gop: 60, seconds: 110 })), audioPackets(audio, 110));

interface Running {
  simulation: LlhlsSimulation;
  key: string;
  chunklist: string;
  /** Packets not handed over yet. */
  rest: Packet[];
}

/** A stream of video and audio that has run for `seconds`; `chunklist` is that of the video. */
function running(seconds: number, settings: Partial<LlhlsSettings> = {}): Running {
  const simulation = new LlhlsSimulation([video, audio], settings);
  const split = packets.findIndex((packet) => packet.track === video && packet.dts >= seconds * 90_000);
  for (const packet of packets.slice(0, split)) simulation.stream.onPacket(packet);
  const text = simulation.delivery.get('llhls.m3u8').text;
  const chunklist = /chunklist_0_video_\w+_llhls\.m3u8/.exec(text)?.[0] ?? '';
  return { simulation, chunklist, key: chunklist.split('_')[3] ?? '', rest: packets.slice(split) };
}

/** Hands packets over until the video has `seconds` more. */
function proceed(state: Running, seconds: number): void {
  const end = (state.rest.find((packet) => packet.track === video)?.dts ?? 0) + seconds * 90_000;
  while (true) {
    const packet = state.rest[0];
    if (packet === undefined || (packet.track === video && packet.dts >= end)) return;
    state.rest.shift();
    state.simulation.stream.onPacket(packet);
  }
}

describe('before a stream can be played', () => {
  it('answers 201 while the stream has no tracks', () => {
    const simulation = new LlhlsSimulation([]);
    const { status, body } = simulation.delivery.get('llhls.m3u8');
    expect(status).toBe(201);
    expect(body.length).toBe(0);
  });

  it('holds the multivariant playlist until players can start', () => {
    const simulation = new LlhlsSimulation([video]);
    const held = simulation.delivery.request('llhls.m3u8');
    const packets = videoPackets(video, constantFrames({ rate: 30, gop: 60, seconds: 3 }));
    for (const packet of packets.slice(0, 60)) simulation.stream.onPacket(packet);
    expect(held?.response).toBeNull();
    simulation.stream.onPacket(packets[60] as Packet);
    expect(held?.response?.status).toBe(200);
    expect(simulation.delivery.context.sessions).toBe(1);
  });

  it('answers 503 after ten seconds', () => {
    const simulation = new LlhlsSimulation([video]);
    const held = simulation.delivery.request('llhls.m3u8');
    simulation.delivery.context.advance(9_999);
    expect(held?.response).toBeNull();
    simulation.delivery.context.advance(1);
    expect(held?.response?.status).toBe(503);
    expect(held?.response?.headers).toContain('Retry-After: 1');
    expect(Buffer.from(held?.response?.body ?? []).toString()).toMatch(/its first segments are not complete yet\n$/);
  });

  it('forgets a client that left', () => {
    const simulation = new LlhlsSimulation([video]);
    const held = simulation.delivery.request('llhls.m3u8');
    held?.abort();
    simulation.delivery.context.advance(20_000);
    expect(held?.response).toBeNull();
  });
});

describe('the multivariant playlist', () => {
  it('has the exact text', () => {
    const { simulation, key } = running(4);
    const { text, headers } = simulation.delivery.get('llhls.m3u8');
    expect(text).toBe(
      [
        '#EXTM3U',
        '#EXT-X-VERSION:6',
        '#EXT-X-INDEPENDENT-SEGMENTS',
        `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="Audio_1",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2",URI="/app/stream/chunklist_1_audio_${key}_llhls.m3u8?session=2_FakeKey1"`,
        '#EXT-X-STREAM-INF:BANDWIDTH=2628000,RESOLUTION=1280x720,FRAME-RATE=30.000,CODECS="avc1.64001f,mp4a.40.2",AUDIO="audio"',
        `/app/stream/chunklist_0_video_${key}_llhls.m3u8?session=2_FakeKey1`,
        '',
      ].join('\n'),
    );
    expect(headers).toEqual(['Content-Type: application/vnd.apple.mpegurl', 'Cache-Control: no-cache, no-store']);
  });

  it.each([
    ['_HLS_rewind=NO', '?session=2_FakeKey1&_HLS_rewind=NO'],
    ['_HLS_rewind=no', '?session=2_FakeKey1&_HLS_rewind=NO'],
    ['_HLS_rewind=YES', '?session=2_FakeKey1'],
    ['_HLS_legacy=YES', '?session=2_FakeKey1&_HLS_legacy=YES'],
    ['stream_key=a%20b', '?session=2_FakeKey1&stream_key=a%20b'],
    ['_HLS_legacy=maybe', '?session=2_FakeKey1'],
  ])('copies %s to its children when it has an effect', (query, tail) => {
    const { simulation, chunklist } = running(4);
    expect(simulation.delivery.get(`llhls.m3u8?${query}`).text).toContain(`/app/stream/${chunklist}${tail}\n`);
  });

  it('names its children by its own address when it is served at another address', () => {
    const { simulation, key } = running(4);
    const there = (base: string): string => simulation.delivery.get('llhls.m3u8', { base }).text;
    const here = there('');
    for (const base of ['../../app/stream/', '//other.example:3334/app/stream/']) {
      const names = (text: string): string[] => [...text.matchAll(/[^"\n]*chunklist_[^"\n?]*/g)].map(([name]) => name);
      expect(names(there(base))).toEqual([`${base}chunklist_1_audio_${key}_llhls.m3u8`, `${base}chunklist_0_video_${key}_llhls.m3u8`]);
      const session = /session=\d+/g;
      expect(there(base).replaceAll(base, '/app/stream/').replaceAll(session, '')).toBe(here.replaceAll(session, ''));
    }
  });

  it('needs no session in origin mode and has the same names every time', () => {
    const first = running(4, { originMode: true });
    const second = running(4, { originMode: true });
    expect(first.chunklist).toBe(second.chunklist);
    expect(first.simulation.delivery.get('llhls.m3u8').text).not.toContain('session');
    expect(first.simulation.delivery.get(first.chunklist).status).toBe(200);
  });

  it('counts only readers that have no session', () => {
    const { chunklist, simulation } = running(4, { originMode: true });
    const { context } = simulation.delivery;
    simulation.delivery.get('llhls.m3u8');
    expect(context.readers).toBe(0);
    simulation.delivery.get(chunklist);
    expect(context.readers).toBe(1);
    simulation.delivery.get(`${chunklist}?session=1_FakeKey1`);
    context.guarded = true;
    simulation.delivery.get(chunklist);
    expect(context.readers).toBe(1);
  });

  it('needs a session in origin mode when access control protects the stream', () => {
    const { chunklist, simulation } = running(4, { originMode: true });
    simulation.delivery.context.guarded = true;
    expect(simulation.delivery.get('llhls.m3u8').text).toContain(`/app/stream/${chunklist}?session=1_FakeKey1\n`);
    expect(simulation.delivery.get(chunklist).status).toBe(401);
    expect(simulation.delivery.get(`${chunklist}?session=1_FakeKey1`).status).toBe(200);
  });

  it('in origin mode gives a session to a viewer that a control server sent, and refuses the session after its end', () => {
    const { chunklist, simulation } = running(4, { originMode: true });
    expect(simulation.delivery.get('llhls.m3u8', { base: '' }).text).toContain(`${chunklist}?session=1_FakeKey1\n`);
    const statuses = ['?session=1_FakeKey1', '?session=1_Ended1', ''].map(
      (query) => simulation.delivery.get(`${chunklist}${query}`).status,
    );
    expect(statuses).toEqual([200, 401, 200]);
  });

  it.each(['other.m3u8', 'ts:llhls.m3u8', 'llhls.m3u8?format=ts', 'medialist_1_hls.m3u8', 'thumb.jpg', ''])(
    'does not answer %s',
    (file) => {
      expect(running(4).simulation.delivery.request(file)).toBeNull();
    },
  );
});

describe('requests for children', () => {
  let state: Running;
  beforeEach(() => {
    state = running(11);
  });

  it.each([
    'chunklist_0_video_KEY_llhls.m3u8',
    'init_0_video_KEY_llhls.m4s',
    'seg_0_1_video_KEY_llhls.m4s',
    'part_0_1_0_video_KEY_llhls.m4s',
  ])('are refused without a session and answered with one: %s', (name) => {
    const file = name.replace('KEY', state.key);
    const refused = state.simulation.delivery.get(file);
    expect(refused.status).toBe(401);
    expect(Buffer.from(refused.body).toString()).toBe(
      'the viewer session in the URL has ended: request the playlist of the stream again\n',
    );
    expect(state.simulation.delivery.get(`${file}?session=forged`).status).toBe(401);
    const answer = state.simulation.delivery.get(`${file}?${SESSION}`);
    expect(answer.status).toBe(200);
    expect(answer.body.length).toBeGreaterThan(100);
  });

  it.each([
    'seg_0_99_video_KEY_llhls.m4s',
    'seg_0_2_video_KEY_llhls.m4s',
    'seg_0_1_audio_KEY_llhls.m4s',
    'seg_7_1_video_KEY_llhls.m4s',
    'seg_0_1_video_wrongkey_llhls.m4s',
    'part_0_99_0_video_KEY_llhls.m4s',
    'part_0_1_50_video_KEY_llhls.m4s',
    'init_0_5_video_KEY_llhls.m4s',
    'chunklist_0_video_wrongkey_llhls.m3u8',
  ])('are answered 404 with a text for a file that does not exist: %s', (name) => {
    const answer = state.simulation.delivery.get(`${name.replace('KEY', state.key)}?${SESSION}`);
    expect([answer.status, answer.headers]).toEqual([404, ['Content-Type: text/plain']]);
    expect(Buffer.from(answer.body).toString()).toMatch(/^[a-z][^\n]+\n$/);
  });

  it('have the media types and cache rules of their kind', () => {
    const headers = (target: string): readonly string[] => state.simulation.delivery.get(`${target}${SESSION}`).headers;
    expect(headers(`seg_0_1_video_${state.key}_llhls.m4s?`)).toEqual(['Content-Type: video/mp4']);
    expect(headers(`part_1_1_0_audio_${state.key}_llhls.m4s?`)).toEqual(['Content-Type: audio/mp4']);
    const playlist = 'Content-Type: application/vnd.apple.mpegurl';
    expect(headers(`${state.chunklist}?`)).toEqual([playlist, 'Cache-Control: no-cache, no-store']);
    expect(headers(`${state.chunklist}?_HLS_msn=1&`)).toEqual([playlist, 'Cache-Control: max-age=60']);
  });
});

describe('a media playlist', () => {
  it('has its tags in the order of the reference', () => {
    const state = running(11);
    const { text } = state.simulation.delivery.get(`${state.chunklist}?${SESSION}`);
    const tags = text.split('\n').map((line) => line.split(':')[0] ?? '');
    expect(tags.slice(0, 8)).toEqual([
      '#EXTM3U',
      '#EXT-X-VERSION',
      '#EXT-X-TARGETDURATION',
      '#EXT-X-SERVER-CONTROL',
      '#EXT-X-PART-INF',
      '#EXT-X-MEDIA-SEQUENCE',
      '#EXT-X-MAP',
      '#EXT-X-PROGRAM-DATE-TIME',
    ]);
    expect(tags.slice(-3)).toEqual(['#EXT-X-PRELOAD-HINT', '#EXT-X-RENDITION-REPORT', '']);
    expect(text).toContain(`#EXT-X-RENDITION-REPORT:URI="chunklist_1_audio_${state.key}_llhls.m3u8?${SESSION}",LAST-MSN=2,LAST-PART=5\n`);
    expect(text).toContain('#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=36.000000,PART-HOLD-BACK=1.500000\n');
  });

  it('has no low-latency tags in legacy form', () => {
    const state = running(11);
    const { text } = state.simulation.delivery.get(`${state.chunklist}?${SESSION}&_HLS_legacy=YES`);
    expect(text).not.toMatch(/PART|SERVER-CONTROL|PRELOAD|RENDITION/);
    expect(text.match(/#EXTINF/g)).toHaveLength(2);
  });

  it('lists the configured number of complete segments when rewinding is not wanted', () => {
    const state = running(100, { segmentCount: 4 });
    const count = (query: string): number =>
      state.simulation.delivery.get(`${state.chunklist}?${SESSION}${query}`).text.match(/#EXTINF/g)?.length ?? 0;
    expect(count('&_HLS_rewind=NO')).toBe(4);
    expect(count('')).toBe(6);
  });

  it('still serves a segment that just left the playlists', () => {
    const state = running(100, { segmentCount: 4 });
    const { text } = state.simulation.delivery.get(`${state.chunklist}?${SESSION}`);
    const first = Number(/MEDIA-SEQUENCE:(\d+)/.exec(text)?.[1]);
    const status = (msn: number): number => state.simulation.delivery.get(`seg_0_${msn}_video_${state.key}_llhls.m4s?${SESSION}`).status;
    expect(status(first - 1)).toBe(200);
    expect(status(first - 2)).toBe(404);
  });

  it('answers delta updates that hls.js merges', () => {
    const state = running(80);
    const full = state.simulation.delivery.get(`${state.chunklist}?${SESSION}`).text;
    const delta = state.simulation.delivery.get(`${state.chunklist}?${SESSION}&_HLS_skip=YES`).text;
    expect(full).toContain('#EXT-X-VERSION:6\n');
    expect(delta).toContain('#EXT-X-VERSION:9\n');
    const parse = (text: string) => M3U8Parser.parseLevelPlaylist(text, 'http://h/a/s/c.m3u8', 0, PlaylistLevelType.MAIN, 0, null);
    const skipped = parse(delta);
    expect(skipped.playlistParsingError).toBeNull();
    expect(skipped.skippedSegments).toBeGreaterThan(4);
    expect(skipped.endSN).toBe(parse(full).endSN);
    const listed = skipped.fragments.slice(skipped.skippedSegments).reduce((sum, fragment) => sum + (fragment?.duration ?? 0), 0);
    expect(listed).toBeGreaterThanOrEqual(30);
  });

  it('is read by hls-parser and hls.js while it is live', () => {
    const state = running(80);
    for (const query of ['', '&_HLS_rewind=NO', '&_HLS_legacy=YES']) {
      const { text } = state.simulation.delivery.get(`${state.chunklist}?${SESSION}${query}`);
      const complaints: unknown[] = [];
      const original = console.error;
      console.error = (...words: unknown[]) => complaints.push(...words);
      try {
        expect(hlsParser.parse(text).isMasterPlaylist).toBe(false);
      } finally {
        console.error = original;
      }
      expect(complaints).toEqual([]);
      const details = M3U8Parser.parseLevelPlaylist(text, 'http://h/a/s/c.m3u8', 0, PlaylistLevelType.MAIN, 0, null);
      expect(details.playlistParsingError).toBeNull();
      expect(details.live).toBe(true);
      expect(details.canBlockReload).toBe(!query.includes('legacy'));
    }
  });

  it('does not announce delta updates that would never skip anything', () => {
    const state = running(11, { segmentCount: 3 });
    expect(state.simulation.delivery.get(`${state.chunklist}?${SESSION}`).text).not.toContain('CAN-SKIP-UNTIL');
  });
});

describe('blocking reload', () => {
  let state: Running;
  let msn: number;
  beforeEach(() => {
    // The first segment lasts 2 s: segment 2 has six parts (0–5) at 11 s.
    state = running(11);
    msn = 2;
  });

  const request = (query: string) => state.simulation.delivery.request(`${state.chunklist}?${SESSION}${query}`);

  it('answers at once for a segment or part that exists', () => {
    for (const query of ['&_HLS_msn=0', '&_HLS_msn=1', '&_HLS_msn=1&_HLS_part=3', '&_HLS_msn=2&_HLS_part=5']) {
      expect(request(query)?.response?.status).toBe(200);
    }
  });

  it('is answered in the same turn in which the last frame of the part arrives', () => {
    const held = request(`&_HLS_msn=${msn}&_HLS_part=6`);
    expect(held?.response).toBeNull();
    proceed(state, 13.5 / 30);
    expect(held?.response).toBeNull();
    proceed(state, 1 / 30);
    expect(held?.response?.status).toBe(200);
    expect(held?.response?.text).toContain(`part_0_${msn}_6_`);
  });

  it('holds a request without a bound by the live edge when the request came before the first segment', () => {
    const simulation = new LlhlsSimulation([video], { originMode: true });
    const { chunklist } = running(4, { originMode: true });
    const frames = videoPackets(video, constantFrames({ rate: 30, gop: 60, seconds: 30 }));
    for (const packet of frames.splice(0, 30)) simulation.stream.onPacket(packet);
    const file = `${chunklist}?_HLS_msn=2&_HLS_part=11`;
    const [early, plain] = [file, chunklist].map((name) => simulation.delivery.request(name));
    expect([early?.response, plain?.response]).toEqual([null, null]);
    while (plain?.response === null) simulation.stream.onPacket(frames.shift() as Packet);
    expect(plain?.response?.status).toBe(200);
    // A new request is refused as too far ahead.
    expect(simulation.delivery.get(file).status).toBe(400);
    expect(early?.response).toBeNull();
    while (early?.response === null) simulation.stream.onPacket(frames.shift() as Packet);
    expect(early?.response?.text).toContain('part_0_2_11_');
  });

  it('waits for the end of a segment when no part is named', () => {
    const held = request(`&_HLS_msn=${msn}`);
    proceed(state, 2.9);
    expect(held?.response).toBeNull();
    proceed(state, 0.2);
    expect(held?.response?.text).toContain(`seg_0_${msn}_`);
  });

  it('treats a part number after the end of a segment as the first part of the next', () => {
    const held = request('&_HLS_msn=1&_HLS_part=12');
    expect(held?.response?.text).toContain('part_0_2_0_');
    const next = request(`&_HLS_msn=${msn + 1}&_HLS_part=0`);
    proceed(state, 3.4);
    expect(next?.response).toBeNull();
    proceed(state, 0.2);
    expect(next?.response?.text).toContain(`part_0_${msn + 1}_0_`);
  });

  it.each([
    '&_HLS_msn=5',
    '&_HLS_msn=99999',
    '&_HLS_msn=2&_HLS_part=12',
    '&_HLS_part=1',
    '&_HLS_msn=',
    '&_HLS_msn=x',
    '&_HLS_msn=-1',
    '&_HLS_msn=2&_HLS_part=a',
  ])('refuses %s with 400', (query) => {
    expect(request(query)?.response?.status).toBe(400);
    expect(request(query)?.response?.text).toMatch(/^_HLS_(msn|part) /);
  });

  it('answers 503 after three target durations', () => {
    const held = request('&_HLS_msn=4');
    state.simulation.delivery.context.advance(17_999);
    expect(held?.response).toBeNull();
    state.simulation.delivery.context.advance(1);
    expect(held?.response?.status).toBe(503);
  });

  it('ends with the stream', () => {
    const held = request('&_HLS_msn=3');
    state.simulation.stream.concludeHlsLive();
    expect(held?.response?.text).toContain('#EXT-X-ENDLIST');
    const late = request('&_HLS_msn=9');
    expect(late?.response?.text).toContain('#EXT-X-ENDLIST');
    state.simulation.stream.close({ code: 'peer-left', detail: '' });
    state.simulation.stream.close({ code: 'peer-left', detail: '' });
  });

  it('answers 404 to held requests when the stream ends', () => {
    const held = request('&_HLS_msn=3');
    state.simulation.stream.close({ code: 'peer-left', detail: '' });
    expect(held?.response?.status).toBe(404);
    expect(state.simulation.delivery.context.timers).toBe(0);
  });
});

describe('a track that leaves', () => {
  it('answers 503 to waiting requests', () => {
    const state = running(11);
    const held = state.simulation.delivery.request(`${state.chunklist}?${SESSION}&_HLS_msn=3`);
    state.simulation.stream.onTracks([audio]);
    expect(held?.response?.status).toBe(503);
  });
});

describe('the hinted part', () => {
  it('is answered as soon as it exists', () => {
    const state = running(11);
    const { text } = state.simulation.delivery.get(`${state.chunklist}?${SESSION}`);
    const hint = /PRELOAD-HINT:TYPE=PART,URI="([^"]+)"/.exec(text)?.[1] ?? '';
    expect(hint).toContain('part_0_2_6_');
    const held = state.simulation.delivery.request(hint);
    expect(held?.response).toBeNull();
    proceed(state, 0.6);
    expect(held?.response?.status).toBe(200);
    expect(held?.response?.body.length).toBeGreaterThan(15 * 500);
  });

  it('is that of the next segment when the segment is about to end', () => {
    const state = running(14);
    const { text } = state.simulation.delivery.get(`${state.chunklist}?${SESSION}`);
    expect(text).toContain('part_0_2_11_');
    expect(text).toMatch(/PRELOAD-HINT:TYPE=PART,URI="part_0_3_0_/);
    const hinted = state.simulation.delivery.request(`part_0_3_0_video_${state.key}_llhls.m4s?${SESSION}`);
    const behindTheEnd = state.simulation.delivery.request(`part_0_2_12_video_${state.key}_llhls.m4s?${SESSION}`);
    proceed(state, 0.6);
    expect(hinted?.response?.status).toBe(200);
    expect(Buffer.compare(hinted?.response?.body ?? Buffer.of(), behindTheEnd?.response?.body ?? Buffer.of())).toBe(0);
  });

  it('is not announced when EnablePreloadHint is off', () => {
    const state = running(11, { enablePreloadHint: false });
    expect(state.simulation.delivery.get(`${state.chunklist}?${SESSION}`).text).not.toContain('PRELOAD-HINT');
  });
});

describe('anything a client may send', () => {
  it('never throws', () => {
    const state = running(11);
    const { delivery } = state.simulation;
    const name = fc.oneof(
      fc.string(),
      fc
        .tuple(
          fc.constantFrom('seg', 'part', 'init', 'chunklist', 'x'),
          fc.array(fc.oneof(fc.nat(), fc.constantFrom('', '-1', '1e9', '99999999999999999999')), { maxLength: 4 }),
          fc.constantFrom('video', 'audio', 'subtitle'),
          fc.constantFrom(state.key, 'wrong', ''),
          fc.constantFrom('_llhls.m4s', '_llhls.m3u8', '.m3u8'),
        )
        .map(([prefix, numbers, type, key, suffix]) => `${[prefix, ...numbers, type, key].join('_')}${suffix}`),
      fc.constant(state.chunklist),
    );
    const value = fc.oneof(fc.nat(20).map(String), fc.string(), fc.constantFrom('YES', 'v2', '1_FakeKey1'));
    const query = fc.dictionary(
      fc.constantFrom('_HLS_msn', '_HLS_part', '_HLS_skip', 'session', '_HLS_legacy', 'format', 'stream_key'),
      value,
    );
    fc.assert(
      fc.property(name, query, (file, parameters) => {
        const target = `${file.replaceAll('?', '')}?${new URLSearchParams({ session: '1_FakeKey1', ...parameters })}`;
        const status = delivery.request(target)?.response?.status;
        expect([undefined, 200, 201, 400, 401, 404, 503]).toContain(status);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('a thread that starts later', () => {
  it('knows the same after the snapshot', () => {
    const state = running(100, { segmentCount: 4 });
    const { delivery } = state.simulation;
    const target = `${state.chunklist}?${SESSION}`;
    const before = delivery.get(target).text;
    const { request } = delivery.feed;
    const restarted = delivery.openFeed(request);
    for (const payload of request.snapshot()) restarted.view.update(structuredClone(payload));
    expect(delivery.get(target).text).toBe(before);
  });
});
