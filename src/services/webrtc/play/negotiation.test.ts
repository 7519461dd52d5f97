import { expect, test } from 'vitest';
import { audioTrack, videoTrack } from '../../../../test/fakes/synthetic-media.ts';
import { AudioCodec } from '../../../media/codec.ts';
import { findExtension } from '../../../wire/rtp/extension-reader.ts';
import { serializeDescription } from '../../../wire/sdp/local-description.ts';
import { parseSessionDescription } from '../../../wire/sdp/session-description.ts';
import type { SlotPlan } from '../transport/fanout/fanout.ts';
import type { WebrtcTrack } from './codec-plan.ts';
import { answerOffer, newNumbers, offerMedias, readSdpAnswer } from './negotiation.ts';
import type { WebrtcSettings } from './settings.ts';

const SETTINGS: WebrtcSettings = {
  timeout: 30_000,
  rtx: true,
  bandwidthEstimation: 'REMB',
  ulpfec: true,
  jitterBuffer: false,
  createDefaultPlaylist: true,
};
const TRACKS: WebrtcTrack[] = [
  videoTrack({ id: 1, config: null, codecString: 'avc1.42c01e' }),
  audioTrack({ id: 2, codec: AudioCodec.OPUS, config: null, codecString: 'opus' }),
];
const MIDS = { video: 'abcdef', audio: 'ghijkl' };
const MID_URI = 'urn:ietf:params:rtp-hdrext:sdes:mid';
const LEVEL_URI = 'urn:ietf:params:rtp-hdrext:ssrc-audio-level';
const IDENTITY = [
  `a=fingerprint:sha-256 ${'AA:'.repeat(31)}AA`,
  'a=setup:active',
  'a=ice-ufrag:test',
  'a=ice-pwd:passwordpasswordpassword',
];

function described(...lines: string[]) {
  return parseSessionDescription(['v=0', 'o=- 1 2 IN IP4 127.0.0.1', 's=-', 't=0 0', ...IDENTITY, ...lines, ''].join('\r\n'));
}

function offered(settings: WebrtcSettings) {
  return offerMedias(TRACKS, settings, MIDS, { video: newNumbers(), audio: newNumbers() });
}

/** The answer of a player that takes these formats of the video, in their order, and all of the audio. */
function slotsFor(settings: WebrtcSettings, video: readonly string[], types: string): readonly SlotPlan[] {
  const audioLines = [
    'm=audio 9 UDP/TLS/RTP/SAVPF 110',
    'a=recvonly',
    'a=mid:ghijkl',
    `a=extmap:6 ${MID_URI}`,
    'a=rtpmap:110 opus/48000/2',
  ];
  const videoLines = [`m=video 9 UDP/TLS/RTP/SAVPF ${types}`, 'a=recvonly', 'a=mid:abcdef', `a=extmap:6 ${MID_URI}`];
  return readSdpAnswer(described(...videoLines, ...video, ...audioLines), offered(settings), settings, 'cname').plan.slots;
}

const H264 = ['a=rtpmap:98 H264/90000', 'a=rtcp-fb:98 nack', 'a=rtpmap:99 rtx/90000', 'a=fmtp:99 apt=98'];
const CORRECTION = ['a=rtpmap:120 red/90000', 'a=rtpmap:121 rtx/90000', 'a=fmtp:121 apt=120', 'a=rtpmap:122 ulpfec/90000'];

/** The value of `id` in packets of the slot. */
function extensionOf({ extension }: SlotPlan, id: number): Buffer | null {
  const header = Buffer.alloc(12);
  header[0] = 0x90;
  const value = findExtension(Buffer.concat([header, extension.bytes]), id);
  return value === null ? null : Buffer.from(value);
}

function midOf(slot: SlotPlan, id: number): string | null {
  return extensionOf(slot, id)?.toString() ?? null;
}

test('error correction is offered when it is configured, with its own retransmissions', () => {
  const lines = (settings: WebrtcSettings): string[] =>
    offered(settings).flatMap(({ payloads }) =>
      payloads.map(({ payloadType, map, parameters }) => `${payloadType} ${map} ${parameters}`.trim()),
    );
  const isCorrection = (line: string): boolean => /^12/.test(line);
  expect(lines(SETTINGS).filter(isCorrection)).toEqual(['120 red/90000', '121 rtx/90000 apt=120', '122 ulpfec/90000']);
  expect(lines({ ...SETTINGS, rtx: false }).filter(isCorrection)).toEqual(['120 red/90000', '122 ulpfec/90000']);
  expect(lines({ ...SETTINGS, ulpfec: false }).filter(isCorrection)).toEqual([]);
  expect(lines(SETTINGS)[0]).toMatch(/^98 H264/);
});

test('an answer selects FEC and retransmission', () => {
  const types = '98 99 120 121 122';
  const [video, audio] = slotsFor(SETTINGS, [...H264, ...CORRECTION], types);
  expect(video).toMatchObject({ payloadType: 98, fec: { redPayloadType: 120, payloadType: 122 }, rtx: { payloadType: 121 } });
  expect([audio?.payloadType, audio?.fec, audio?.rtx]).toEqual([110, undefined, null]);
  // RED without ULPFEC is no error correction.
  const [plain] = slotsFor(SETTINGS, [...H264, 'a=rtpmap:120 red/90000'], '98 99 120');
  expect([plain?.fec, plain?.rtx?.payloadType]).toEqual([undefined, 99]);
  // A peer that lists the wrapping first still means the codec.
  const [first] = slotsFor(SETTINGS, [...H264, ...CORRECTION], '120 121 122 98 99');
  expect(first?.payloadType).toBe(98);
  const [unwanted] = slotsFor({ ...SETTINGS, ulpfec: false }, [...H264, ...CORRECTION], types);
  expect([unwanted?.fec, unwanted?.rtx?.payloadType]).toEqual([undefined, 99]);
});

test('a player without RTX in its answer gets no retransmissions', () => {
  const [slot] = slotsFor({ ...SETTINGS, ulpfec: false }, H264.slice(0, 1).concat(H264.slice(2)), '98 99');
  expect([slot?.payloadType, slot?.rtx]).toEqual([98, null]);
});

test('mono audio is announced as mono', () => {
  const audioLines = (channels: number): string[] => {
    const tracks = [audioTrack({ id: 2, codec: AudioCodec.OPUS, config: null, codecString: 'opus', channels })];
    const medias = offerMedias(tracks, SETTINGS, MIDS, { video: newNumbers(), audio: newNumbers() });
    return medias.flatMap(({ payloads }) => payloads.map(({ parameters }) => parameters));
  };
  expect(audioLines(1)).toEqual(['sprop-stereo=0;stereo=0;minptime=10;useinbandfec=1']);
  expect(audioLines(6)).toEqual(['sprop-stereo=1;stereo=1;minptime=10;useinbandfec=1']);
});

test.each([
  ['avc1.42c01e', ['640c1f', '42001f', '42e01f'], 2],
  ['avc1.4d401f', ['42e01f', '640c1f', '4D001F'], 2],
  ['avc1.640028', ['42e01f', '4d001f', '640c1f'], 2],
  ['avc1.640028', ['42001f', '42e01f', '4d001f'], 1],
  ['avc1.640028', ['42001f', '4d001f'], 0],
])('of the formats for %s in a WHEP offer, %j, the nearest is selected', (codecString, profiles, best) => {
  const types = profiles.map((_profile, n) => 40 + n);
  const formats = profiles.flatMap((profile, n) => [
    `a=rtpmap:${40 + n} H264/90000`,
    `a=fmtp:${40 + n} profile-level-id=${profile};packetization-mode=1`,
  ]);
  const offer = described(`m=video 9 UDP/TLS/RTP/SAVPF ${types.join(' ')}`, 'a=recvonly', 'a=mid:0', ...formats);
  const { agreement } = answerOffer(offer, [videoTrack({ id: 1, config: null, codecString })], SETTINGS, 'cname');
  expect(agreement.plan.slots[0]?.payloadType).toBe(40 + best);
});

test('FEC and RTX with payload type 0 are ignored, because the fanout would refuse them', () => {
  const [red] = slotsFor(SETTINGS, [...H264, 'a=rtpmap:0 red/90000', 'a=rtpmap:122 ulpfec/90000'], '98 99 0 122');
  expect([red?.fec, red?.rtx?.payloadType]).toEqual([undefined, 99]);
  const [parity] = slotsFor(SETTINGS, [...H264, 'a=rtpmap:120 red/90000', 'a=rtpmap:0 ulpfec/90000'], '98 99 120 0');
  expect(parity?.fec).toBeUndefined();
  const [rtx] = slotsFor(SETTINGS, [...H264.slice(0, 2), 'a=rtpmap:0 rtx/90000', 'a=fmtp:0 apt=98'], '98 0');
  expect(rtx?.rtx).toBeNull();
});

test('an answer with FEC formats only is refused', () => {
  expect(() => slotsFor(SETTINGS, CORRECTION, '120 121 122')).toThrow('m-line 0 of the answer takes no codec of the offer');
});

function whep(settings: WebrtcSettings, mid: string, ...more: string[]) {
  const formats = ['a=rtpmap:102 H264/90000', 'a=fmtp:102 packetization-mode=1;profile-level-id=42e01f', 'a=rtcp-fb:102 nack'];
  const repeats = ['a=rtpmap:103 rtx/90000', 'a=fmtp:103 apt=102'];
  const video = ['m=video 9 UDP/TLS/RTP/SAVPF 102 103 116 117 118', 'a=recvonly', `a=mid:${mid}`, `a=extmap:9 ${MID_URI}`];
  const offer = described(...video, ...formats, ...repeats, ...more);
  const { agreement, medias } = answerOffer(offer, TRACKS, settings, 'cname');
  const credentials = { ufrag: 'ufrag', password: 'password' };
  const text = serializeDescription({
    credentials,
    fingerprint: 'AA',
    setup: 'passive',
    candidates: [],
    cname: 'cname',
    streamId: 'id',
    medias,
  });
  return { slot: agreement.plan.slots[0], lines: text.split('\r\n') };
}

test('a WHEP offer with error correction gets it under its own numbers', () => {
  const correction = ['a=rtpmap:116 red/90000', 'a=rtpmap:117 rtx/90000', 'a=fmtp:117 apt=116', 'a=rtpmap:118 ulpfec/90000'];
  const { slot, lines } = whep(SETTINGS, '0', ...correction);
  expect(slot).toMatchObject({ payloadType: 102, fec: { redPayloadType: 116, payloadType: 118 }, rtx: { payloadType: 117 } });
  expect(lines).toEqual(expect.arrayContaining(['m=video 9 UDP/TLS/RTP/SAVPF 102 116 117 118', ...correction]));
  const without = whep({ ...SETTINGS, ulpfec: false }, '0', ...correction);
  expect(without.slot).toMatchObject({ payloadType: 102, rtx: { payloadType: 103 } });
  expect(without.lines).toContain('m=video 9 UDP/TLS/RTP/SAVPF 102 103');
});

test('packets carry the mid of their m-line when the extension was negotiated', () => {
  const slots = slotsFor({ ...SETTINGS, ulpfec: false }, H264, '98 99');
  expect(slots.map((slot) => midOf(slot, 6))).toEqual(['abcdef', 'ghijkl']);
  expect(offered(SETTINGS).map(({ extensions }) => extensions.find(({ uri }) => uri === MID_URI)?.id)).toEqual([6, 6]);
  const named = whep(SETTINGS, 'video0');
  expect(named.lines).toContain(`a=extmap:9 ${MID_URI}`);
  expect(named.slot && midOf(named.slot, 9)).toBe('video0');
  // A one-byte header extension holds 16 bytes.
  const long = whep(SETTINGS, 'a'.repeat(17));
  expect(long.lines.some((line) => line.includes(MID_URI))).toBe(false);
  expect(long.slot && midOf(long.slot, 9)).toBe(null);
});

test('frames carry the configured playout delay and their send time', () => {
  const settings: WebrtcSettings = { ...SETTINGS, ulpfec: false, playoutDelay: { min: 100, max: 2000 } };
  const [delay, sendTime] = ['playout-delay', 'abs-send-time'].map((name) => `http://www.webrtc.org/experiments/rtp-hdrext/${name}`);
  const offers = (wanted: WebrtcSettings): string[][] =>
    offered(wanted).map(({ extensions }) => extensions.map(({ id, uri }) => `${id} ${uri}`).sort());
  expect(offers(settings)).toEqual([[`2 ${delay}`, `4 ${sendTime}`, `6 ${MID_URI}`], [`6 ${MID_URI}`]]);
  expect(offers({ ...settings, playoutDelay: undefined })[0]).toEqual([`4 ${sendTime}`, `6 ${MID_URI}`]);
  const { slot, lines } = whep(settings, '0', `a=extmap:5 ${delay}`, `a=extmap:7 ${sendTime}`);
  expect(lines).toEqual(expect.arrayContaining([`a=extmap:5 ${delay}`, `a=extmap:7 ${sendTime}`]));
  // Both in units of 10 ms, 12 bits each.
  expect(slot && extensionOf(slot, 5)?.toString('hex')).toBe('00a0c8');
  expect(slot && [extensionOf(slot, 7)?.length, slot.extension.sendTimeAt > 0]).toEqual([3, true]);
});

test('audio levels are neither offered nor accepted', () => {
  expect(offered(SETTINGS).flatMap(({ extensions }) => extensions.map(({ uri }) => uri as string))).not.toContain(LEVEL_URI);
  const audioLines = ['m=audio 9 UDP/TLS/RTP/SAVPF 111', 'a=recvonly', 'a=mid:0', `a=extmap:1 ${LEVEL_URI}`, 'a=rtpmap:111 opus/48000/2'];
  const { medias } = answerOffer(described(...audioLines), TRACKS, SETTINGS, 'cname');
  expect(medias[0]?.extensions).toEqual([]);
});
