/** RTP of an invented publisher → tracks and packets, and the RTCP that it gets. */
import { beforeEach, describe, expect, test } from 'vitest';
import { FakeIngestGate, type FakeIngestStream } from '../../../../test/fakes/fake-ingest-gate.ts';
import { ManualClock } from '../../../../test/fakes/manual-clock.ts';
import { AVCC } from '../../../../test/fixtures/bitstreams.ts';
import { survivesHostileBytes } from '../../../../test/support/hostile-bytes.ts';
import { parameterSetsOfConfig } from '../../../codecs/describe.ts';
import { readNacks } from '../../../wire/rtp/nacks.ts';
import { NalPacketizer } from '../../../wire/rtp/nal-packetizer.ts';
import { readViewerFeedback } from '../../../wire/rtp/viewer-feedback.ts';
import { parseSessionDescription } from '../../../wire/sdp/session-description.ts';
import { IngestFeed } from './ingest-feed.ts';
import { answerIngest } from './ingest-negotiation.ts';

const FINGERPRINT = `sha-256 ${Array.from({ length: 32 }, () => 'AB').join(':')}`;
const VIDEO_SSRC = 1111;
const RTX_SSRC = 2222;
const AUDIO_SSRC = 3333;
const SETS = parameterSetsOfConfig('H264', AVCC.baseline720);

function offer(video: readonly string[], audio = true): string {
  return [
    'v=0',
    'o=- 1 2 IN IP4 127.0.0.1',
    's=-',
    't=0 0',
    `a=fingerprint:${FINGERPRINT}`,
    'a=ice-ufrag:abcd',
    'a=ice-pwd:0123456789012345678901',
    'a=setup:actpass',
    'm=video 9 UDP/TLS/RTP/SAVPF 96 97 98',
    'a=mid:0',
    'a=sendonly',
    'a=rtpmap:96 H264/90000',
    'a=fmtp:96 packetization-mode=1;profile-level-id=42e01f',
    'a=rtpmap:97 rtx/90000',
    'a=fmtp:97 apt=96',
    'a=rtpmap:98 VP8/90000',
    'a=rtcp-fb:98 nack pli',
    ...video,
    ...(audio ? ['m=audio 9 UDP/TLS/RTP/SAVPF 111', 'a=mid:1', 'a=sendonly', 'a=rtpmap:111 opus/48000/2'] : []),
    '',
  ].join('\r\n');
}

const FULL = [
  'a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01',
  'a=rtcp-fb:96 nack',
  'a=rtcp-fb:96 nack pli',
];

let clock: ManualClock;
let stream: FakeIngestStream;
let sent: Uint8Array[];
let reordered: number;

beforeEach(() => {
  clock = new ManualClock();
  sent = [];
  reordered = 0;
  const gate = new FakeIngestGate();
  gate.openIngest(
    { host: 'h', app: 'app' },
    { streamName: 's', provider: 'webrtc', sourceType: 'WebRTC', sourceUrl: '', onClose: () => undefined },
  );
  stream = gate.streams[0]!;
});

function open(description: string, keyframeInterval = 3000): IngestFeed {
  return new IngestFeed({
    stream,
    agreement: answerIngest(parseSessionDescription(description)).agreement,
    clock,
    keyframeInterval,
    send: (packet) => sent.push(packet),
    onStarted: () => undefined,
    onReordered: () => {
      reordered += 1;
    },
  });
}

interface PacketOptions {
  readonly type: number;
  readonly ssrc: number;
  readonly sequence: number;
  readonly timestamp: number;
  readonly marker?: boolean;
  readonly transport?: number;
  readonly padding?: number;
  /** `[id, text]` of an extension. */
  readonly texts?: readonly (readonly [number, string])[];
}

function rtp(
  { type, ssrc, sequence, timestamp, marker = false, transport, padding = 0, texts = [] }: PacketOptions,
  payload: Uint8Array,
): Buffer {
  const elements = [
    ...(transport === undefined ? [] : [Buffer.of(0x31, transport >> 8, transport & 0xff)]),
    ...texts.map(([id, text]) => Buffer.concat([Buffer.of((id << 4) | (text.length - 1)), Buffer.from(text)])),
  ];
  const raw = Buffer.concat(elements);
  const block =
    raw.length === 0
      ? raw
      : Buffer.concat([Buffer.of(0xbe, 0xde, 0, Math.ceil(raw.length / 4)), raw, Buffer.alloc((4 - (raw.length % 4)) % 4)]);
  const head = Buffer.alloc(12);
  head[0] = 0x80 | (block.length > 0 ? 0x10 : 0) | (padding > 0 ? 0x20 : 0);
  head[1] = type | (marker ? 0x80 : 0);
  head.writeUInt16BE(sequence & 0xff_ff, 2);
  head.writeUInt32BE(timestamp >>> 0, 4);
  head.writeUInt32BE(ssrc, 8);
  const tail = padding === 0 ? Buffer.alloc(0) : Buffer.alloc(padding, padding);
  return Buffer.concat([head, block, payload, tail]);
}

/** A publisher: 25 frames a second of three packets, audio every 20 ms. */
class Sender {
  sequence = 65_500;
  transport = 0;
  readonly ssrc: number;
  readonly #packetizer = new NalPacketizer('H264', 1000);
  constructor(ssrc = VIDEO_SSRC) {
    this.ssrc = ssrc;
  }

  frame(timestamp: number, keyframe: boolean, texts: PacketOptions['texts'] = []): Buffer[] {
    const slice = Buffer.alloc(2500, 0x55);
    // first_mb 0, slice type I or P.
    slice.set(keyframe ? [0x65, 0x88] : [0x41, 0xe0]);
    const units = keyframe ? [...SETS.sps, ...SETS.pps, slice] : [slice];
    const data = Buffer.concat(units.map((unit) => Buffer.concat([Buffer.of(0, 0, unit.length >> 8, unit.length & 0xff), unit])));
    const { bytes, sizes } = this.#packetizer.packetize(data);
    let at = 0;
    return Array.from(sizes, (size, n) => {
      at += size;
      this.sequence += 1;
      this.transport += 1;
      const payload = bytes.slice(at - size, at);
      const marker = n + 1 === sizes.length;
      return rtp({ type: 96, ssrc: this.ssrc, sequence: this.sequence, timestamp, marker, transport: this.transport, texts }, payload);
    });
  }
}

const audioPacket = (n: number): Buffer => rtp({ type: 111, ssrc: AUDIO_SSRC, sequence: n, timestamp: n * 960 }, Buffer.of(0xfc, 1, 2));
const videoPackets = () => stream.packets.filter(({ trackId }) => trackId === 0);
const keyframesAsked = (): number => sent.filter((packet) => readViewerFeedback(packet).keyframeWanted).length;

/** Runs the clock in steps of 20 ms. */
function pass(feed: IngestFeed, ms: number): void {
  for (let left = ms; left > 0; left -= 20) {
    clock.advance(20);
    feed.tick();
  }
}

test('video and audio are placed on one timeline, with their parameters', () => {
  const feed = open(offer(FULL));
  const sender = new Sender();
  for (let n = 0; n < 25; n += 1) {
    for (const packet of sender.frame(n * 3600, n === 0)) feed.rtp(packet, clock.monotonic());
    feed.rtp(audioPacket(n * 2), clock.monotonic());
    pass(feed, 20);
    feed.rtp(audioPacket(n * 2 + 1), clock.monotonic());
    pass(feed, 20);
  }
  expect(stream.tracks).toMatchObject([
    { id: 0, type: 'video', codec: 'H264' },
    { id: 1, type: 'audio', codec: 'OPUS', sampleRate: 48_000, channels: 2 },
  ]);
  const video = videoPackets();
  expect(video).toHaveLength(25);
  expect(video.map(({ keyframe }) => keyframe)).toEqual([true, ...Array.from({ length: 24 }, () => false)]);
  expect(video.every(({ pts }, n) => pts === n * 3600)).toBe(true);
  const audio = stream.packets.filter(({ trackId }) => trackId === 1);
  expect(audio.map(({ pts }) => pts)).toEqual(Array.from({ length: 50 }, (_, n) => n * 960));
  expect(sent.some((packet) => packet[1] === 205 && (packet[0] ?? 0) === 0x8f)).toBe(true);
  expect(sent.some((packet) => packet[1] === 201)).toBe(true);
  expect(keyframesAsked()).toBe(0);
  expect(stream.bytes).toBeGreaterThan(25 * 2500);
});

test('a keyframe is requested after an interval without one', () => {
  const feed = open(offer(FULL, false), 1000);
  const sender = new Sender();
  for (let n = 0; n < 60; n += 1) {
    for (const packet of sender.frame(n * 3600, n === 0)) feed.rtp(packet, clock.monotonic());
    pass(feed, 40);
  }
  expect(keyframesAsked()).toBe(2);
});

test('a keyframe that a viewer waits for is requested once until it arrives', () => {
  const feed = open(offer(FULL, false), 0);
  const sender = new Sender();
  const send = (n: number, keyframe: boolean): void => {
    for (const packet of sender.frame(n * 3600, keyframe)) feed.rtp(packet, clock.monotonic());
    pass(feed, 40);
  };
  for (let n = 0; n < 30; n += 1) send(n, n === 0);
  expect(keyframesAsked()).toBe(0);
  for (let viewers = 0; viewers < 5; viewers += 1) feed.tracks[0]?.requestKeyframe();
  send(30, false);
  expect(keyframesAsked()).toBe(1);
  for (let n = 31; n < 60; n += 1) send(n, n === 31);
  expect(keyframesAsked()).toBe(1);
});

test.each([
  ['PLI', ['a=rtcp-fb:96 nack pli', 'a=rtcp-fb:96 ccm fir'], 1],
  ['FIR', ['a=rtcp-fb:96 ccm fir'], 4],
  ['nothing', [], 0],
])('a stream that starts without a keyframe causes a request by %s', (_name, feedback, format) => {
  const feed = open(offer(feedback, false));
  const sender = new Sender();
  for (let n = 0; n < 20; n += 1) {
    for (const packet of sender.frame(n * 3600, false)) feed.rtp(packet, clock.monotonic());
    pass(feed, 40);
  }
  const asked = sent.filter((packet) => packet[1] === 206);
  expect(asked.length).toBe(format === 0 ? 0 : 2);
  expect(asked.every((packet) => ((packet[0] ?? 0) & 0x1f) === format)).toBe(true);
  expect(stream.packets).toEqual([]);
});

test('feedback about arrived packets is sent twenty times a second', () => {
  const feed = open(offer(FULL, false), 0);
  const sender = new Sender();
  for (let n = 0; n < 25; n += 1) {
    for (const packet of sender.frame(n * 3600, n === 0)) {
      feed.rtp(packet, clock.monotonic());
      pass(feed, 20);
    }
  }
  // The clock goes in steps of 20 ms: each third of them is the first after 50.
  expect(sent.filter((packet) => packet[1] === 205 && packet[0] === 0x8f)).toHaveLength(25);
});

test.each([
  ['is told a limit each second', [], [3_000_000, 3_000_000]],
  ['is told none where it is told what arrived', FULL, []],
] as const)('a sender that takes limits %s', (_name, more, limits) => {
  const feed = open(offer([...more, 'a=rtcp-fb:96 goog-remb'], false), 0);
  const sender = new Sender();
  for (let n = 0; n < 60; n += 1) {
    for (const packet of sender.frame(n * 3600, n === 0)) feed.rtp(packet, clock.monotonic());
    pass(feed, 40);
  }
  const told = sent.flatMap((packet) => readViewerFeedback(packet).remb ?? []);
  expect(told.map((limit) => Math.round(limit / 1000) * 1000)).toEqual(limits);
});

describe('losses', () => {
  function run(feed: IngestFeed, sender: Sender, from: number, count: number, drop: (frame: number, packet: number) => boolean): Buffer[] {
    const dropped: Buffer[] = [];
    for (let n = from; n < from + count; n += 1) {
      sender.frame(n * 3600, n === 0).forEach((packet, part) => {
        if (drop(n, part)) dropped.push(packet);
        else feed.rtp(packet, clock.monotonic());
      });
      pass(feed, 40);
    }
    return dropped;
  }

  test('a lost packet is requested, received as a retransmission, and no frame is missing', () => {
    const feed = open(
      offer([...FULL, `a=ssrc-group:FID ${VIDEO_SSRC} ${RTX_SSRC}`, `a=ssrc:${VIDEO_SSRC} cname:x`, `a=ssrc:${RTX_SSRC} cname:x`], false),
    );
    const sender = new Sender();
    const [lost] = run(feed, sender, 0, 3, (frame, part) => frame === 1 && part === 1);
    const [nack] = sent.flatMap((packet) => readNacks(packet).nacks);
    expect(nack).toEqual({ ssrc: VIDEO_SSRC, sequences: [lost?.readUInt16BE(2)] });
    expect(videoPackets()).toHaveLength(1);
    const original = lost ?? Buffer.alloc(0);
    const payload = Buffer.concat([original.subarray(2, 4), original.subarray(20)]);
    feed.rtp(
      rtp({ type: 97, ssrc: RTX_SSRC, sequence: 9, timestamp: original.readUInt32BE(4), marker: false }, payload),
      clock.monotonic(),
    );
    expect(videoPackets()).toHaveLength(3);
    expect(feed.tracks[0]?.received).toMatchObject({ lost: 0, recovered: 1 });
    expect(feed.counters.repeats).toBe(1);
    expect(keyframesAsked()).toBe(0);
  });

  test('an unrepaired loss drops frames up to the next keyframe, which is requested', () => {
    const feed = open(offer(FULL, false));
    const sender = new Sender();
    run(feed, sender, 0, 30, (frame, part) => frame === 5 && part === 1);
    expect(videoPackets()).toHaveLength(5);
    expect(keyframesAsked()).toBeGreaterThan(0);
    for (const packet of sender.frame(30 * 3600, true)) feed.rtp(packet, clock.monotonic());
    expect(videoPackets()).toHaveLength(6);
    expect(feed.tracks[0]?.counters.skipped).toBeGreaterThan(10);
  });

  test('a sender that ignores keyframe requests is accepted again after a while', () => {
    const feed = open(offer(FULL, false));
    run(feed, new Sender(), 0, 150, (frame, part) => frame === 5 && part === 1);
    expect(videoPackets().length).toBeGreaterThan(30);
  });

  test('padding is neither malformed nor a loss', () => {
    const feed = open(offer(FULL, false));
    const sender = new Sender();
    for (let n = 0; n < 5; n += 1) {
      for (const packet of sender.frame(n * 3600, n === 0)) feed.rtp(packet, clock.monotonic());
      sender.sequence += 1;
      feed.rtp(
        rtp({ type: 96, ssrc: VIDEO_SSRC, sequence: sender.sequence, timestamp: n * 3600, padding: 100 }, Buffer.alloc(0)),
        clock.monotonic(),
      );
    }
    expect(videoPackets()).toHaveLength(5);
    expect(feed.tracks[0]?.counters.malformed).toBe(0);
  });
});

test('B-frames are reported once and get decoding times', () => {
  const feed = open(offer(FULL, false));
  const sender = new Sender();
  for (const [n, frame] of [0, 3, 1, 2, 6, 4, 5, 9, 7, 8].entries()) {
    for (const packet of sender.frame(frame * 3600, n === 0)) feed.rtp(packet, clock.monotonic());
    pass(feed, 40);
  }
  expect(reordered).toBe(1);
  const times = videoPackets();
  expect(times.every(({ pts, dts }) => dts <= pts)).toBe(true);
  expect(times.every(({ dts }, n) => n < 3 || dts >= (times[n - 1]?.dts ?? 0))).toBe(true);
});

test('frames moved back for lip sync do not count as B-frames, and their times keep increasing', () => {
  const feed = open(offer(FULL));
  const sender = new Sender();
  const report = (ssrc: number, ntp: number, rtpTime: number): void => {
    const packet = Buffer.alloc(28);
    packet.set([0x80, 200, 0, 6]);
    [ssrc, ntp, 0, rtpTime].forEach((value, n) => {
      packet.writeUInt32BE(value >>> 0, 4 + 4 * n);
    });
    feed.rtcp(packet);
  };
  for (let n = 0; n < 20; n += 1) {
    for (const packet of sender.frame(n * 3600, n === 0)) feed.rtp(packet, clock.monotonic());
    feed.rtp(audioPacket(n * 2), clock.monotonic());
    feed.rtp(audioPacket(n * 2 + 1), clock.monotonic());
    pass(feed, 40);
    if (n !== 9) continue;
    // The audio of this moment was captured a second later than the frame.
    report(AUDIO_SSRC, 101, n * 1920);
    report(VIDEO_SSRC, 100, n * 3600);
  }
  const times = videoPackets().map(({ pts }) => pts);
  expect(times).toHaveLength(20);
  expect((times[10] ?? 0) - (times[9] ?? 0)).toBe(2400);
  expect((times[19] ?? 0) - (times[9] ?? 0)).toBeLessThan(10 * 3600 - 10_000);
  expect(reordered).toBe(0);
});

test('simulcast layers become separate tracks in the order of the offer', () => {
  const feed = open(
    offer(
      [
        ...FULL,
        'a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id',
        'a=extmap:11 urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id',
        'a=rid:hi send',
        'a=rid:lo send',
        'a=simulcast:send hi;lo',
      ],
      false,
    ),
  );
  const layers = ['lo', 'hi'].map((rid, n) => ({ rid, sender: new Sender(5000 + n) }));
  for (let n = 0; n < 5; n += 1) {
    for (const { rid, sender } of layers) {
      for (const packet of sender.frame(n * 3600, n === 0, n === 0 ? [[10, rid]] : [])) feed.rtp(packet, clock.monotonic());
    }
    pass(feed, 40);
  }
  expect(feed.tracks.map(({ layer, ssrc }) => [layer, ssrc])).toEqual([
    ['hi', 5001],
    ['lo', 5000],
  ]);
  expect(stream.tracks.map(({ id }) => id)).toEqual([0, 1]);
  expect(stream.packets.filter(({ trackId }) => trackId === 1)).toHaveLength(5);
});

test('tracks of one publisher are bounded', () => {
  const layers = [
    'a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id',
    'a=rid:a send',
    'a=rid:b send',
    'a=rid:c send',
    'a=simulcast:send a;b;c',
  ];
  const [head = '', media = ''] = offer([...FULL, ...layers], false).split(/(?=m=video)/);
  const { agreement, medias } = answerIngest(parseSessionDescription(head + media.repeat(4)));
  expect(agreement.medias).toHaveLength(2);
  expect(medias.map(({ rejected }) => rejected)).toEqual([false, false, true, true]);
});

test('another source of the same track is a new beginning', () => {
  const feed = open(offer(FULL, false));
  for (const ssrc of [10, 20]) {
    const sender = new Sender(ssrc);
    for (let n = 0; n < 5; n += 1) {
      for (const packet of sender.frame(n * 3600 + ssrc * 1_000_000, n === 0)) feed.rtp(packet, clock.monotonic());
      pass(feed, 40);
    }
  }
  const times = videoPackets().map(({ pts }) => pts);
  expect(times).toHaveLength(10);
  expect([...times].sort((a, b) => a - b)).toEqual(times);
  expect(times[5]).toBe(200 * 90);
});

test('the number of sources is bounded, and packets of unknown sources are counted', () => {
  const feed = open(offer(FULL));
  for (let ssrc = 1; ssrc <= 100; ssrc += 1) feed.rtp(audioPacket(1).fill(ssrc, 8, 12), clock.monotonic());
  feed.rtp(rtp({ type: 50, ssrc: 9, sequence: 1, timestamp: 1 }, Buffer.of(1)), clock.monotonic());
  expect(feed.counters.unknown).toBeGreaterThan(60);
});

test('a publisher that restarts a hundred times is accepted each time', () => {
  const feed = open(offer(FULL, false));
  for (let round = 0; round < 100; round += 1) {
    const sender = new Sender(100 + round);
    for (let n = 0; n < 24; n += 1) {
      for (const packet of sender.frame(n * 3600, n === 0)) feed.rtp(packet, clock.monotonic());
      pass(feed, 40);
    }
  }
  expect(feed.counters.unknown).toBe(0);
  expect(videoPackets()).toHaveLength(2400);
});

test('hostile packets are counted, never worse', () => {
  const feed = open(
    offer([...FULL, 'a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id', 'a=extmap:6 urn:ietf:params:rtp-hdrext:sdes:mid']),
  );
  const sender = new Sender();
  const samples = [
    ...sender.frame(0, true, [[6, '0']]),
    rtp({ type: 98, ssrc: 77, sequence: 1, timestamp: 0, marker: true }, Buffer.from('10309d012a80026801aabb', 'hex')),
    audioPacket(3),
  ];
  survivesHostileBytes(
    (data) => {
      feed.rtp(Buffer.from(data), clock.monotonic());
      feed.rtcp(Buffer.from(data));
      pass(feed, 20);
    },
    samples.map((sample) => sample.subarray(0, 200)),
  );
  expect(feed.counters.malformed).toBeGreaterThan(0);
});
