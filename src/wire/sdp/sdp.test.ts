import { expect, test } from 'vitest';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { parseSessionDescription } from './session-description.ts';

const OFFER = [
  'v=0',
  'o=- 46117317 2 IN IP4 127.0.0.1',
  's=-',
  't=0 0',
  'a=group:BUNDLE 0 1',
  'a=extmap-allow-mixed',
  'a=fingerprint:SHA-256 ab:cd:ef',
  'm=video 9 UDP/TLS/RTP/SAVPF 96 97 102',
  'c=IN IP4 0.0.0.0',
  'a=rtcp:9 IN IP4 0.0.0.0',
  'a=ice-ufrag:abcd',
  'a=ice-pwd:0123456789012345678901',
  'a=setup:actpass',
  'a=mid:0',
  'a=extmap:3 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time',
  'a=extmap:99 urn:too-large',
  'a=recvonly',
  'a=rtcp-mux',
  'a=rtpmap:96 H264/90000',
  'a=rtcp-fb:96 nack',
  'a=rtcp-fb:* goog-remb',
  'a=fmtp:96 level-asymmetry-allowed=1;packetization-mode=1; profile-level-id=42e01f',
  'a=rtpmap:97 rtx/90000',
  'a=fmtp:97 apt=96',
  'm=audio 0 UDP/TLS/RTP/SAVPF 111',
  'a=mid:1',
  'a=rtpmap:111 opus/48000/2',
  '',
].join('\r\n');

test('an offer is understood', () => {
  const { medias, bundle } = parseSessionDescription(OFFER);
  expect(bundle).toEqual(['0', '1']);
  const [video, audio] = medias;
  expect(video).toMatchObject({
    kind: 'video',
    mid: '0',
    rejected: false,
    direction: 'recvonly',
    setup: 'actpass',
    ufrag: 'abcd',
    fingerprint: 'sha-256 AB:CD:EF',
    rtcpMux: true,
  });
  expect([...(video?.extensions ?? [])]).toEqual([['http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time', 3]]);
  expect(video?.payloads.map(({ payloadType, codec }) => [payloadType, codec])).toEqual([
    [96, 'H264'],
    [97, 'RTX'],
  ]);
  expect(video?.payloads[0]?.feedback).toEqual(['nack', 'goog-remb']);
  expect(video?.payloads[0]?.parameters.get('profile-level-id')).toBe('42e01f');
  expect(video?.payloads[1]?.parameters.get('apt')).toBe('96');
  expect(audio).toMatchObject({ rejected: true, direction: 'sendrecv' });
});

const SENDER = [
  'v=0',
  'm=video 9 UDP/TLS/RTP/SAVPF 96',
  'a=rid:hi send',
  'a=rid:lo send pt=96',
  'a=rid:other recv',
  'a=rid:spare send',
  'a=simulcast:send hi,spare;~lo;unknown recv other',
  'a=ssrc-group:FID 11 12',
  'a=ssrc:11 cname:x',
  'a=ssrc:12 cname:x',
  'a=ssrc:13 cname:x',
  'a=ssrc:nonsense',
  '',
].join('\r\n');

test('the sources and layers of a sender are read', () => {
  const [video] = parseSessionDescription(SENDER).medias;
  expect(video?.layers).toEqual(['hi', 'lo']);
  expect(video?.sources).toEqual([
    { ssrc: 11, rtxSsrc: 12 },
    { ssrc: 13, rtxSsrc: 0 },
  ]);
});

test.each([
  ['nothing is simulcast', SENDER.replace(/a=simulcast.*\r\n/, '')],
  ['only receiving is simulcast', SENDER.replace('simulcast:send', 'simulcast:recv')],
])('there are no layers when %s', (_name, text) => {
  expect(parseSessionDescription(text).medias[0]?.layers).toEqual([]);
});

test('sources and layers are bounded', () => {
  const rids = Array.from({ length: 50 }, (_, n) => `r${n}`);
  const many = [
    'v=0',
    'm=video 9 UDP/TLS/RTP/SAVPF 96',
    ...rids.map((rid) => `a=rid:${rid} send`),
    `a=simulcast:send ${rids.join(';')}`,
    ...rids.map((_, n) => `a=ssrc:${n + 1} cname:x`),
  ].join('\r\n');
  const [video] = parseSessionDescription(many).medias;
  expect(video?.layers).toHaveLength(8);
  expect(video?.sources.length).toBeLessThanOrEqual(32);
});

test.each([
  ['', 'v=0'],
  ['o=- 1\r\nv=0', 'v=0'],
  ['v=0\r\nm=video x RTP/AVP 0', 'm=video'],
  ['v=0\r\nm=video 9 RTP/AVP 200', 'payload type'],
  ['v=0\r\nhello', 'hello'],
  [`v=0\r\n${'m=audio 9 RTP/AVP 0\r\n'.repeat(40)}`, 'm-lines'],
  [`v=0\r\nm=audio 9 RTP/AVP 0\r\n${'a=rtcp-fb:* x\r\n'.repeat(1025)}`, 'attributes'],
  ['v'.repeat(70_000), 'longer than'],
])('%j is refused with its reason', (text, reason) => {
  expect(() => parseSessionDescription(text.slice(0, 80_000))).toThrow(reason);
});

test('a repeated payload type counts once', () => {
  const [video] = parseSessionDescription('v=0\r\nm=video 9 RTP/AVP 96 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 a=1').medias;
  expect(video?.payloads).toHaveLength(1);
});

test('hostile descriptions are refused, never worse', () => {
  survivesHostileBytes((data) => parseSessionDescription(Buffer.from(data).toString('latin1')), [Buffer.from(OFFER), Buffer.from(SENDER)]);
});
