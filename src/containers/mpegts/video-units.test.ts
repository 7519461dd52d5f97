import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { requireProgram } from '../../../scripts/ensure-tools.ts';
import { AnnexbCursor } from '../../codecs/nal/nal-cursor.ts';
import { VideoCodec } from '../../media/codec.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { ElementaryUnit } from './elementary-unit.ts';
import { type PesPacket, TsDemuxer } from './ts-demuxer.ts';
import { VideoUnits } from './video-units.ts';

const STEP = 3600;

/** The PES packets of one frame each that ffmpeg writes, with several slices and B frames. */
function encode(...codec: string[]): PesPacket[] {
  const input = ['-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=25', '-t', '2', '-pix_fmt', 'yuv420p', '-g', '10'];
  const packets: PesPacket[] = [];
  const output = { onProgram: () => undefined, onPes: (packet: PesPacket) => packets.push({ ...packet, data: packet.data.slice() }) };
  const demuxer = new TsDemuxer(output);
  const args = ['-v', 'error', '-nostdin', ...input, ...codec, '-f', 'mpegts', 'pipe:1'];
  demuxer.push(execFileSync(requireProgram('ffmpeg'), args, { maxBuffer: 2 ** 26 }));
  demuxer.flush();
  return packets;
}

function read(codec: VideoCodec, packets: readonly PesPacket[]): ElementaryUnit[] {
  const units: ElementaryUnit[] = [];
  const reader = new VideoUnits(codec);
  for (const packet of packets) reader.read(packet, (unit) => units.push(unit));
  reader.end((unit) => units.push(unit));
  return units;
}

/** Each NAL unit in its own packet, as mpegtsmux of GStreamer writes `alignment=nal`. */
function inNalUnits(packets: readonly PesPacket[]): PesPacket[] {
  return packets.flatMap((packet) => {
    const nals = new AnnexbCursor(packet.data);
    const pieces: PesPacket[] = [];
    while (nals.next()) pieces.push({ ...packet, data: Uint8Array.of(0, 0, 0, 1, ...nals.unit()) });
    return pieces;
  });
}

function joined(packets: readonly PesPacket[], count: number): PesPacket[] {
  const groups: PesPacket[] = [];
  for (let at = 0; at < packets.length; at += count) {
    const group = packets.slice(at, at + count);
    const [first] = group;
    if (first !== undefined) groups.push({ ...first, data: new Uint8Array(Buffer.concat(group.map(({ data }) => data))) });
  }
  return groups;
}

describe.each([
  ['H.264', VideoCodec.H264, ['-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '2', '-x264-params', 'slices=4']],
  ['H.265', VideoCodec.H265, ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', 'slices=2:log-level=error']],
] as const)('%s', (_name, codec, options) => {
  const packets = encode(...options);
  const whole = read(codec, packets);

  test('a packet with one frame is passed on at once', () => {
    const reader = new VideoUnits(codec);
    let count = 0;
    for (const [index, packet] of packets.entries()) {
      reader.read(packet, () => {
        count += 1;
      });
      expect(count).toBe(index + 1);
    }
    expect(count).toBe(50);
  });

  test('frames in pieces are joined to the original frames', () => {
    const pieces = inNalUnits(packets);
    expect(pieces.length).toBeGreaterThan(100);
    expect(read(codec, pieces)).toEqual(whole);
    // Only the first piece has times.
    const bare = inNalUnits(packets).map((packet, index, all) =>
      all[index - 1]?.dts === packet.dts ? { ...packet, pts: null, dts: null } : packet,
    );
    expect(read(codec, bare)).toEqual(whole);
  });

  test('an access unit with a lost piece is left out, and no other unit', () => {
    const pieces = inNalUnits(packets);
    const lost = pieces.findIndex(({ dts }) => dts === packets[20]?.dts) + 2;
    const damaged = pieces.map((packet, index) => (index === lost + 1 ? { ...packet, discontinuity: true } : packet));
    damaged.splice(lost, 1);
    const units = read(codec, damaged);
    expect(units.filter(({ dts }) => dts !== whole[20]?.dts)).toEqual(whole.filter((_unit, index) => index !== 20));
  });

  test('several frames in one packet become separate packets', () => {
    const ordered = packets.map((packet, index) => ({ ...packet, dts: index * STEP, pts: index * STEP }));
    const units = read(codec, joined(ordered, 5));
    expect(units.map(({ data }) => data)).toEqual(whole.map(({ data }) => data));
    expect(units.map(({ dts }) => dts)).toEqual(ordered.map(({ dts }) => dts));
  });

  test('any pieces in any order are survived', () => {
    const pieces = inNalUnits(packets);
    let units = 0;
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(pieces.length - 1), fc.boolean(), fc.boolean()), { maxLength: 60 }), (choice) => {
        const chosen = choice.flatMap(([index, timeless, discontinuity]) => {
          const piece = pieces[index];
          return piece === undefined ? [] : [{ ...piece, discontinuity, ...(timeless && { pts: null, dts: null }) }];
        });
        try {
          for (const { dts } of read(codec, chosen)) {
            expect(dts).not.toBeNull();
            units += 1;
          }
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
      { numRuns: 100 },
    );
    expect(units).toBeGreaterThan(0);
  });
});

test('two fields stay one frame, in one packet or in two', () => {
  // A field resembles a small frame: its slices start at 0 again. The parameter sets are those of interlaced video.
  const packets = encode('-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '0', '-flags', '+ildct+ilme');
  const inOne = read(VideoCodec.H264, joined(packets, 2));
  expect(inOne).toHaveLength(25);
  const timeless = packets.map((packet, index) => (index % 2 === 0 ? packet : { ...packet, pts: null, dts: null }));
  const inTwo = read(VideoCodec.H264, timeless);
  // The first frame had been passed on before its second field revealed the kind of stream.
  expect(inTwo.slice(-24)).toEqual(inOne.slice(-24));
});
