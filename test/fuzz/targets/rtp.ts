/** RTP and RTCP: packets, reordering buffers with depacketizers, feedback, and a publisher's feed. */

import { annexbToLengthPrefixed } from '../../../src/codecs/nal/convert.ts';
import { IngestFeed } from '../../../src/services/webrtc/ingest/ingest-feed.ts';
import { answerIngest } from '../../../src/services/webrtc/ingest/ingest-negotiation.ts';
import { BandwidthEstimator } from '../../../src/services/webrtc/play/bandwidth-estimator.ts';
import { Av1Depacketizer } from '../../../src/wire/rtp/av1-depacketizer.ts';
import { Av1Packetizer } from '../../../src/wire/rtp/av1-packetizer.ts';
import { type Depacketizer, FrameDepacketizer } from '../../../src/wire/rtp/depacketizer.ts';
import { findExtension, readExtension16 } from '../../../src/wire/rtp/extension-reader.ts';
import { Mpeg4Depacketizer } from '../../../src/wire/rtp/mpeg4-depacketizer.ts';
import { readNacks } from '../../../src/wire/rtp/nacks.ts';
import { NalDepacketizer } from '../../../src/wire/rtp/nal-depacketizer.ts';
import { NalPacketizer } from '../../../src/wire/rtp/nal-packetizer.ts';
import type { Payloads } from '../../../src/wire/rtp/packetizer.ts';
import { Vp8Packetizer } from '../../../src/wire/rtp/plain-packetizer.ts';
import { buildFir, buildNack, buildPli, buildRemb } from '../../../src/wire/rtp/receiver-feedback.ts';
import { buildReceiverReport, parseRtcp } from '../../../src/wire/rtp/rtcp-packet.ts';
import { parseRtpPacket } from '../../../src/wire/rtp/rtp-packet.ts';
import { RtpReceiveBuffer } from '../../../src/wire/rtp/rtp-receive-buffer.ts';
import { SequenceBuffer } from '../../../src/wire/rtp/sequence-buffer.ts';
import { TransportFeedback } from '../../../src/wire/rtp/transport-feedback.ts';
import { readViewerFeedback } from '../../../src/wire/rtp/viewer-feedback.ts';
import { Vp8Depacketizer } from '../../../src/wire/rtp/vp8-depacketizer.ts';
import { parseSessionDescription } from '../../../src/wire/sdp/session-description.ts';
import { FakeIngestGate } from '../../fakes/fake-ingest-gate.ts';
import { ManualClock } from '../../fakes/manual-clock.ts';
import { ANNEXB, AV1, VPX } from '../../fixtures/bitstreams.ts';
import type { FuzzTarget } from '../support/fuzz-target.ts';
import { hex } from '../support/hex.ts';
import { joinPackets, splitPackets } from '../support/packets.ts';
import { tolerate } from '../support/tolerate.ts';
import { SIMULCAST_OFFER } from './webrtc.ts';

const BUDGET = 60;

interface Head {
  readonly type?: number;
  readonly ssrc?: number;
  readonly sequence: number;
  readonly timestamp: number;
  readonly marker?: boolean;
  readonly extension?: Uint8Array;
}

function rtp({ type = 96, ssrc = 7, sequence, timestamp, marker = false, extension }: Head, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(12);
  head[0] = extension === undefined ? 0x80 : 0x90;
  head[1] = type | (marker ? 0x80 : 0);
  head.writeUInt16BE(sequence & 0xffff, 2);
  head.writeUInt32BE(timestamp >>> 0, 4);
  head.writeUInt32BE(ssrc, 8);
  return Buffer.concat([head, extension ?? Buffer.alloc(0), payload]);
}

function split({ bytes, sizes }: Payloads): Buffer[] {
  let at = 0;
  return [...sizes].map((size) => {
    at += size;
    return Buffer.from(bytes.subarray(at - size, at));
  });
}

/** A few frames as packets. */
function stream(frames: readonly (readonly Uint8Array[])[], head: Partial<Head> = {}, from = 0): Buffer[] {
  let sequence = 65_530;
  return frames.flatMap((payloads, frame) =>
    payloads.map((payload, at) => {
      sequence += 1;
      return rtp({ ...head, sequence, timestamp: from + frame * 3000, marker: at === payloads.length - 1 }, payload);
    }),
  );
}

const nalFrames = (codec: 'H264' | 'H265', annexb: Uint8Array): Buffer[][] => {
  const packetizer = new NalPacketizer(codec, BUDGET);
  const unit = annexbToLengthPrefixed(annexb).slice(0);
  return [split(packetizer.packetize(unit)), split(packetizer.packetize(unit))];
};
const H264 = (): Buffer[][] => [
  ...nalFrames('H264', ANNEXB.openGop),
  [hex('780003674200000268ce'), hex('7c85 1111'), hex('7c05 2222'), hex('7c45 3333')],
];
const H265 = (): Buffer[][] => [
  ...nalFrames('H265', ANNEXB.hevc),
  [hex('6001 0003 420101 0002 4401'), hex('6201 93 aaaa'), hex('6201 53 bb')],
];
const VP8 = (): Buffer[][] => [VPX.vp8Key, VPX.vp8Delta].map((frame) => split(new Vp8Packetizer(BUDGET).packetize(frame)));
const AV1_FRAMES = (): Buffer[][] => [
  split(new Av1Packetizer(BUDGET).packetize(AV1.stream444, true)),
  [hex('6003 08aabb 30cc'), hex('a001bb30cc')],
];
const AAC = (): Buffer[][] => [
  [hex('0010 0018 aabbcc')],
  [hex('0020 0010 0018 aabb ccddee')],
  [hex('0010 0640 aabbcc'), hex('0010 0640 ddeeff')],
];

/** Sends every packet through a reordering buffer and a depacketizer; the output must not be much larger than the input. */
function depacketizer(name: string, make: () => Depacketizer, frames: () => Buffer[][], ordering: 'sequence' | 'receive'): FuzzTarget {
  return {
    name: `rtp-${name}`,
    form: 'packets',
    seeds: () => [joinPackets(stream(frames())), joinPackets(stream(frames().slice(-1)))],
    run: (input) => {
      const reader = make();
      const sequence = new SequenceBuffer(16);
      const receive = new RtpReceiveBuffer({ repeats: true });
      let bytes = 0;
      let now = 0;
      const sink = (packet: ReturnType<typeof parseRtpPacket>, lost: boolean): void => {
        tolerate(() =>
          reader.push(packet, lost, ({ data }) => {
            bytes += 1 + data.length;
          }),
        );
      };
      const packets = [...splitPackets(input), ...stream(frames())];
      for (const data of packets) {
        now += 7;
        tolerate(() => {
          const packet = parseRtpPacket(data);
          if (ordering === 'sequence') sequence.push(packet, now, sink);
          else receive.push(packet, now, sink);
        });
        if (ordering === 'receive') bytes += receive.check(now, sink).length;
        else sequence.giveUp(now - 20, sink);
      }
      // Whatever came before, a valid stream must be readable again.
      const before = bytes;
      const again = stream(frames(), {}, 1_234_567).map((data) => parseRtpPacket(data));
      for (const packet of again)
        reader.push(packet, false, ({ data }) => {
          bytes += data.length;
        });
      if (bytes === before) throw new Error('nothing can be read any more');
      return bytes;
    },
    most: (length) => 65_536 + 600 * 16 + 64 * length,
    cost: 2,
  };
}

const REPORT = hex('81c90007 00000001 00001111 40fffffe 00012345 00000064 00000000 00000000');
const SENDER_REPORT = hex('80c80006 00000007 e0000001 80000000 00015f90 0000000a 00000100');
const SDES_BYE = hex('81ca0003 00000007 01046162 63640000 81cb0001 00000007');

function arrivalReport(): Uint8Array {
  const feedback = new TransportFeedback();
  for (let n = 0; n < 60; n += 1) if (n % 7 !== 3) feedback.arrived(65_510 + n, n * 3.3);
  return feedback.take(1, 2)[0]!;
}

/** Compound packets of a viewer and of a sender. */
export function compounds(): Uint8Array[] {
  const nack = buildNack(1, 0x1111, [5, 6, 9, 40, 65_535]);
  const remb = buildRemb(1, 2_500_000, [0x1111, 0x2222]);
  return [
    Buffer.concat([REPORT, nack, buildPli(1, 0x1111), remb]),
    Buffer.concat([REPORT, buildFir(1, 0x1111, 3), arrivalReport()]),
    Buffer.concat([SENDER_REPORT, SDES_BYE]),
    arrivalReport(),
    nack,
    buildReceiverReport(1, 'millrace', []),
  ];
}

const EXTENSIONS = Buffer.concat([hex('bede0004 31abcd 60 30 a0 68'), Buffer.alloc(9)]);

function publisherPackets(): Buffer[] {
  return [
    ...stream(H264(), { type: 96, ssrc: 1111, extension: EXTENSIONS }),
    ...stream(VP8(), { type: 98, ssrc: 2222, extension: EXTENSIONS }),
    ...stream([[hex('fc0102')], [hex('fc0304')]], { type: 111, ssrc: 3333 }),
    rtp({ type: 97, ssrc: 4444, sequence: 1, timestamp: 0, extension: EXTENSIONS }, hex('fffb 6588')),
    Buffer.from(SENDER_REPORT),
  ];
}

export const RTP_TARGETS: readonly FuzzTarget[] = [
  {
    name: 'rtp-packet',
    seeds: () => [
      hex('b260 0001 00000000 00000001 aaaaaaaa bbbbbbbb bede0001 10112233 0102 000003'),
      hex('9060 0001 00000000 00000001 10000002 0102aabb 03000000 0102'),
      rtp({ sequence: 1, timestamp: 1, extension: EXTENSIONS }, hex('01')),
    ],
    run: (input) => {
      const { payload } = parseRtpPacket(input);
      let bytes = payload.length;
      for (const id of [1, 3, 14, 15, 200]) bytes += (findExtension(input, id)?.length ?? 0) + (readExtension16(input, id) >= 0 ? 1 : 0);
      return bytes;
    },
    most: (length) => 6 * length,
  },
  {
    name: 'rtcp-of-senders',
    seeds: compounds,
    run: (input) => {
      const { reports, byes } = parseRtcp(input);
      return reports.length + byes.length;
    },
    most: (length) => length / 4,
  },
  {
    name: 'rtcp-of-viewers',
    seeds: compounds,
    run: (input) => {
      const { reports, arrivals, remb } = readViewerFeedback(input);
      if (remb !== null && !(Number.isFinite(remb) && remb >= 0)) throw new Error(`REMB of ${remb}`);
      const estimator = new BandwidthEstimator();
      for (const report of arrivals) {
        const sends = Uint32Array.from({ length: 2 * report.arrivals.length }, (_, n) => (n % 2 === 0 ? n * 500 : 1200));
        const estimate = estimator.report(report, sends, 1_000_000);
        if (estimate !== null && !(Number.isFinite(estimate) && estimate >= 0)) throw new Error(`estimate of ${estimate}`);
      }
      return reports.length + arrivals.reduce((sum, report) => sum + report.arrivals.length, 0);
    },
    most: (length) => 4 * 1024 + length / 24,
  },
  {
    name: 'rtcp-nacks',
    seeds: compounds,
    run: (input) => readNacks(input).nacks.reduce((sum, { sequences }) => sum + 1 + sequences.length, 0),
    most: (length) => 5 * length,
  },
  depacketizer('h264', () => new NalDepacketizer('H264'), H264, 'sequence'),
  depacketizer('h265', () => new NalDepacketizer('H265'), H265, 'receive'),
  depacketizer('vp8', () => new Vp8Depacketizer(), VP8, 'receive'),
  depacketizer('av1', () => new Av1Depacketizer(), AV1_FRAMES, 'receive'),
  depacketizer(
    'aac',
    () => new Mpeg4Depacketizer({ sizeLength: 13, indexLength: 3, indexDeltaLength: 3, frameTicks: 1024 }),
    AAC,
    'sequence',
  ),
  depacketizer(
    'opus',
    () => new FrameDepacketizer(),
    () => [[hex('fc0102')], [hex('fc0304')]],
    'receive',
  ),
  {
    name: 'webrtc-publisher-media',
    form: 'packets',
    seeds: () => [joinPackets(publisherPackets()), joinPackets(publisherPackets().slice(0, 12))],
    run: (input) => {
      const gate = new FakeIngestGate();
      const request = { streamName: 's', provider: 'webrtc', sourceType: 'WebRTC', sourceUrl: '', onClose: () => undefined } as const;
      const clock = new ManualClock();
      let sent = 0;
      const feed = new IngestFeed({
        stream: gate.openIngest({ host: 'h', app: 'a' }, request),
        agreement: answerIngest(parseSessionDescription(SIMULCAST_OFFER)).agreement,
        clock,
        keyframeInterval: 1000,
        send: (packet) => {
          sent += packet.length;
        },
        onStarted: () => undefined,
        onReordered: () => undefined,
      });
      for (const data of [...splitPackets(input), ...publisherPackets()]) {
        feed.rtp(Buffer.from(data), clock.monotonic());
        feed.rtcp(Buffer.from(data));
        clock.advance(20);
        feed.tick();
      }
      return sent / 100 + (gate.streams[0]?.packets.length ?? 0);
    },
    // Each packet may be answered with NACKs, and a missing packet is requested for a second.
    most: (length) => 2000 + 20 * length,
    cost: 8,
  },
];
