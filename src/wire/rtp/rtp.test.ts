import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { DecodeOrder } from './decode-order.ts';
import { type DepacketizedUnit, type Depacketizer, FrameDepacketizer } from './depacketizer.ts';
import { Mpeg4Depacketizer } from './mpeg4-depacketizer.ts';
import { NalDepacketizer } from './nal-depacketizer.ts';
import { Reception } from './reception.ts';
import { buildReceiverReport, parseRtcp } from './rtcp-packet.ts';
import { RtpClock } from './rtp-clock.ts';
import { parseRtpPacket, type RtpPacket } from './rtp-packet.ts';
import { SequenceBuffer } from './sequence-buffer.ts';
import { Vp8Depacketizer } from './vp8-depacketizer.ts';

const hex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text.replaceAll(' ', ''), 'hex'));

function packet(sequence: number, payload: Uint8Array, options: Partial<RtpPacket> = {}): RtpPacket {
  return { marker: false, payloadType: 96, sequence, timestamp: 1000, ssrc: 7, payload, ...options };
}

function run(depacketizer: Depacketizer, packets: readonly (RtpPacket | 'lost')[]): DepacketizedUnit[] {
  const units: DepacketizedUnit[] = [];
  let lost = false;
  for (const item of packets) {
    if (item === 'lost') {
      lost = true;
      continue;
    }
    depacketizer.push(item, lost, (unit) => units.push(unit));
    lost = false;
  }
  return units;
}

const dataOf = (units: readonly DepacketizedUnit[]): string[] => units.map(({ data }) => Buffer.from(data).toString('hex'));

describe('parseRtpPacket', () => {
  it('reads a plain packet', () => {
    expect(parseRtpPacket(hex('80e0 1234 00000fa0 deadbeef 010203'))).toEqual({
      marker: true,
      payloadType: 96,
      sequence: 0x1234,
      timestamp: 4000,
      ssrc: 0xdeadbeef,
      payload: hex('010203'),
    });
  });

  it('passes over sources, extension and padding', () => {
    const bytes = hex('b260 0001 00000000 00000001 aaaaaaaa bbbbbbbb bede0001 10112233 0102 000003');
    expect(parseRtpPacket(bytes).payload).toEqual(hex('0102'));
  });

  it('survives hostile bytes', () => {
    survivesHostileBytes(parseRtpPacket, [hex('b260 0001 00000000 00000001 aaaaaaaa bbbbbbbb bede0001 10112233 0102 000003')]);
  });
});

describe('RTCP', () => {
  const compound = hex(
    '80c80006 00000007 e0000001 80000000 00015f90 0000000a 00000100 81ca0003 00000007 01046162 63640000 81cb0001 00000007',
  );

  it('reads sender reports and BYEs of a compound packet', () => {
    expect(parseRtcp(compound)).toEqual({
      reports: [{ ssrc: 7, ntp: 0xe0000001 + 0.5, compactNtp: 0x00018000, rtpTimestamp: 90_000 }],
      byes: [7],
    });
  });

  it('survives hostile bytes', () => {
    survivesHostileBytes(parseRtcp, [compound]);
  });

  it('writes receiver reports that are complete compound packets', () => {
    const report = {
      ssrc: 7,
      fractionLost: 3,
      totalLost: 5,
      highestSequence: 65_540,
      jitter: 2,
      lastReport: 0x18000,
      delaySinceLastReport: 9,
    };
    const bytes = buildReceiverReport(1, 'abc', [report]);
    expect(Buffer.from(bytes).toString('hex')).toBe(
      '81c9000700000001000000070300000500010004000000020001800000000009' + '81ca000300000001010361626300' + '0000',
    );
    for (const name of ['', 'a', 'ab', 'abc', 'abcd']) expect(() => parseRtcp(buildReceiverReport(1, name, []))).not.toThrow();
  });
});

describe('SequenceBuffer', () => {
  function order(depth: number, sequences: readonly number[]): (number | string)[] {
    const buffer = new SequenceBuffer(depth);
    const out: (number | string)[] = [];
    for (const sequence of sequences)
      buffer.push(packet(sequence, hex('00')), 0, (next, lost) => out.push(lost ? `!${next.sequence}` : next.sequence));
    return out;
  }

  it.each([
    ['in order over the wrap', 8, [65_534, 65_535, 0, 1], [65_534, 65_535, 0, 1]],
    ['swapped', 8, [1, 3, 2, 4], [1, 2, 3, 4]],
    ['twice and late', 8, [1, 2, 2, 1, 3], [1, 2, 3]],
    ['lost for good', 2, [1, 3, 4, 5, 6], [1, '!3', 4, 5, 6]],
    ['waiting for nothing', 0, [1, 3, 4], [1, '!3', 4]],
    ['begun anew', 4, [1, 2, 30_000, 30_001], [1, 2, '!30000', 30_001]],
  ] as const)('%s', (_name, depth, sequences, expected) => {
    expect(order(depth, sequences)).toEqual(expected);
  });

  it('passes every packet on once and in order, for any reordering within its depth', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(5), { minLength: 1, maxLength: 200 }), fc.nat(65_535), (delays, start) => {
        const shuffled = delays
          .map((delay, index) => ({ sequence: (start + index) & 0xffff, at: index === 0 ? -1 : index + delay, index }))
          .sort((a, b) => a.at - b.at || a.index - b.index);
        expect(
          order(
            16,
            shuffled.map(({ sequence }) => sequence),
          ),
        ).toEqual(delays.map((_, index) => (start + index) & 0xffff));
      }),
    );
  });
});

describe('NalDepacketizer', () => {
  const h264 = (): NalDepacketizer => new NalDepacketizer('H264');

  it('joins single units, aggregates and fragments of a frame', () => {
    const units = run(h264(), [
      packet(1, hex('78 0003 674200 0002 68ce')),
      packet(2, hex('7c 85 1111')),
      packet(3, hex('7c 05 2222')),
      packet(4, hex('7c 45 33'), { marker: true }),
      packet(5, hex('09f0'), { timestamp: 4000 }),
      packet(6, hex('41aabb'), { timestamp: 4000, marker: true }),
    ]);
    expect(dataOf(units)).toEqual(['00000003674200' + '0000000268ce' + '000000066511112222' + '33', '0000000341aabb']);
    expect(units.map(({ timestamp }) => timestamp)).toEqual([1000, 4000]);
  });

  it('joins fragments of H.265, whose header has two bytes', () => {
    const units = run(new NalDepacketizer('H265'), [
      packet(1, hex('62 01 93 aaaa')),
      packet(2, hex('62 01 53 bb'), { marker: true }),
      packet(3, hex('60 01 0003 420101 0003 440102'), { timestamp: 2, marker: true }),
    ]);
    expect(dataOf(units)).toEqual(['000000052601aaaabb', '00000003420101' + '00000003440102']);
  });

  it('ends a frame without a marker when the next one starts', () => {
    expect(dataOf(run(h264(), [packet(1, hex('65aa')), packet(2, hex('41bb'), { timestamp: 2, marker: true })]))).toEqual([
      '0000000265aa',
      '0000000241bb',
    ]);
  });

  it.each([
    ['the middle of a fragmented unit', [packet(1, hex('7c8511')), 'lost', packet(3, hex('7c4533'), { marker: true })]],
    ['the start of a fragmented unit', ['lost', packet(2, hex('7c0511')), packet(3, hex('7c4533'), { marker: true })]],
    ['the end of a frame', [packet(1, hex('65aa')), 'lost']],
    ['a slice in the middle', [packet(1, hex('65aa')), 'lost', packet(3, hex('65bb'), { marker: true })]],
  ] as const)('leaves out a frame that lost %s, and continues with the next', (_name, packets) => {
    const depacketizer = h264();
    const next = packet(9, hex('41cc'), { timestamp: 5000, marker: true });
    expect(dataOf(run(depacketizer, [...packets, next]))).toEqual(['0000000241cc']);
    expect(depacketizer.damaged).toBe(1);
  });

  it('bounds a frame that never ends', () => {
    const depacketizer = h264();
    const part = new Uint8Array(60_000).fill(1);
    part.set([0x7c, 0x05]);
    depacketizer.push(packet(0, hex('7c8511')), false, () => undefined);
    expect(() => {
      for (let index = 1; index < 200; index += 1) depacketizer.push(packet(index, part), false, () => undefined);
    }).toThrow(/more than/);
  });
});

describe('Mpeg4Depacketizer', () => {
  const aac = (): Mpeg4Depacketizer => new Mpeg4Depacketizer({ sizeLength: 13, indexLength: 3, indexDeltaLength: 3, frameTicks: 1024 });

  it('splits a packet into its frames, each with its time', () => {
    const units = run(aac(), [packet(1, hex('0020 0010 0018 aabb ccddee'), { marker: true, timestamp: 0xfffffe00 })]);
    expect(dataOf(units)).toEqual(['aabb', 'ccddee']);
    expect(units.map(({ timestamp }) => timestamp)).toEqual([0xfffffe00, 0x200]);
  });

  it('joins a frame of several packets, unless one is lost', () => {
    const parts = [packet(1, hex('0010 0028 aabb')), packet(2, hex('0010 0028 ccdd')), packet(3, hex('0010 0028 ee'), { marker: true })];
    expect(dataOf(run(aac(), parts))).toEqual(['aabbccddee']);
    expect(dataOf(run(aac(), [parts[0]!, 'lost', parts[2]!]))).toEqual([]);
  });
});

it('refuses a frame of AAC in more packets than are kept', () => {
  const depacketizer = new Mpeg4Depacketizer({ sizeLength: 13, indexLength: 3, indexDeltaLength: 3, frameTicks: 1024 });
  // A frame of 8191 bytes, one in each packet.
  const part = (sequence: number): RtpPacket => packet(sequence, hex('0010 fff8 aa'));
  expect(
    run(
      depacketizer,
      Array.from({ length: 1024 }, (_unused, n) => part(n)),
    ),
  ).toEqual([]);
  expect(() => run(depacketizer, [part(1024)])).toThrow('1024 packets');
});

describe('Vp8Depacketizer', () => {
  it('joins the packets of a frame without their descriptors, and leaves out a frame that lost one', () => {
    const first = packet(1, hex('90 e0 8123 05 20 aabb'));
    const second = packet(2, hex('80 80 11 cc'), { marker: true });
    expect(dataOf(run(new Vp8Depacketizer(), [first, second]))).toEqual(['aabbcc']);
    expect(dataOf(run(new Vp8Depacketizer(), [first, 'lost', second]))).toEqual([]);
  });

  it('refuses a frame in more packets than it keeps', () => {
    const depacketizer = new Vp8Depacketizer();
    run(depacketizer, [packet(1, hex('10 aa'))]);
    const more = Array.from({ length: 16_383 }, () => packet(2, hex('00 aa')));
    run(depacketizer, more);
    expect(() => run(depacketizer, [packet(3, hex('00 aa'))])).toThrow('16384 packets');
  });
});

describe('every depacketizer', () => {
  const makers: readonly (readonly [string, () => Depacketizer])[] = [
    ['H.264', () => new NalDepacketizer('H264')],
    ['H.265', () => new NalDepacketizer('H265')],
    ['AAC', () => new Mpeg4Depacketizer({ sizeLength: 13, indexLength: 3, indexDeltaLength: 3, frameTicks: 1024 })],
    ['VP8', () => new Vp8Depacketizer()],
    ['frames', () => new FrameDepacketizer()],
  ];
  it.each(makers)('%s survives hostile payloads', (_name, make) => {
    const samples = ['78000367420000026 8ce', '7c851111', '62019 3aaaa', '002000100018aabbccddee', '90e081230520aabb'].map((text) =>
      hex(text.replaceAll(' ', '')),
    );
    const depacketizer = make();
    let sequence = 0;
    survivesHostileBytes((payload) => {
      sequence += 1;
      depacketizer.push(
        packet(sequence, payload, { timestamp: sequence >> 2, marker: sequence % 3 === 0 }),
        sequence % 7 === 0,
        () => undefined,
      );
    }, samples);
  });
});

describe('RtpClock', () => {
  it('relates two sources by their sender reports, across the wrap of one', () => {
    const video = new RtpClock(90_000);
    const audio = new RtpClock(48_000);
    const origin = 1000;
    const first = video.unwrap(2 ** 32 - 9000);
    video.follow({ ssrc: 1, ntp: 1000.1, compactNtp: 0, rtpTimestamp: 0 }, origin);
    const sound = audio.unwrap(500);
    audio.follow({ ssrc: 2, ntp: 1000.1, compactNtp: 0, rtpTimestamp: 5300 }, origin);
    expect(video.seconds(first)).toBeCloseTo(0, 9);
    expect(audio.seconds(sound)).toBeCloseTo(0, 9);
    expect(video.seconds(video.unwrap(9000))).toBeCloseTo(0.2, 9);
  });
});

describe('Reception', () => {
  it('measures jitter in ticks of the clock, and forgets a jump', () => {
    const reception = new Reception(90_000);
    for (let index = 0; index < 200; index += 1) reception.arrived(index * 3600, index * 40 + (index % 2) * 8);
    // Every packet arrives 8 ms = 720 ticks off the previous one.
    expect(reception.jitter).toBeGreaterThan(700);
    expect(reception.jitter).toBeLessThanOrEqual(720);
    const before = reception.jitter;
    reception.arrived(0, 8000);
    expect(reception.jitter).toBe(before);
  });

  it('computes the fraction lost since the last report', () => {
    const reception = new Reception(90_000);
    expect(reception.fractionLost({ received: 96, lost: 0 })).toBe(0);
    expect(reception.fractionLost({ received: 96 + 75, lost: 25 })).toBe(64);
    expect(reception.fractionLost({ received: 96 + 75, lost: 25 })).toBe(0);
    expect(reception.fractionLost({ received: 10, lost: 0 })).toBe(0);
  });
});

describe('DecodeOrder', () => {
  it('is the presentation time itself without reordering', () => {
    const order = new DecodeOrder(0, 3000);
    expect([0, 3000, 6000].map((pts) => order.next(pts))).toEqual([0, 3000, 6000]);
  });

  it('stays below presentation time and increases, for groups with B-frames', () => {
    const order = new DecodeOrder(2, 3000);
    const shown = [0, 3, 1, 2, 6, 4, 5, 9, 7, 8].map((index) => index * 3000);
    const decoded = shown.map((pts) => order.next(pts));
    expect(decoded).toEqual([-2, -1, 0, 1, 2, 3, 4, 5, 6, 7].map((index) => index * 3000));
    for (const [index, dts] of decoded.entries()) expect(dts).toBeLessThanOrEqual(shown[index]!);
  });

  it('follows a clock that was set back', () => {
    const order = new DecodeOrder(1, 3000);
    for (const pts of [900_000, 903_000, 906_000]) order.next(pts);
    expect([0, 3000, 6000].map((pts) => order.next(pts))).toEqual([-3000, 0, 3000]);
  });
});
