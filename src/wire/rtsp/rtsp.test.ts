import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { RtspAuthenticator } from './rtsp-auth.ts';
import { parseRtspDescription } from './rtsp-description.ts';
import { type RtspItem, RtspReader, serializeRtspRequest } from './rtsp-message.ts';
import { controlUri, parseRtspUrl } from './rtsp-url.ts';

const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'latin1'));

const ANSWER =
  'RTSP/1.0 200 OK\r\nCSeq: 2\r\nContent-Length: 4\r\nWWW-Authenticate: Basic realm="a"\r\nwww-authenticate: Digest realm="b"\r\n\r\nv=0\n';
const STREAM = Buffer.concat([
  bytes(ANSWER),
  Buffer.from([0x24, 1, 0, 3, 9, 8, 7]),
  bytes('OPTIONS rtsp://h/x RTSP/1.0\r\nCSeq: 5\r\n\r\n'),
]);

function read(pieces: readonly Uint8Array[]): RtspItem[] {
  const items: RtspItem[] = [];
  const reader = new RtspReader();
  for (const piece of pieces) reader.push(piece, (item) => items.push(item));
  return items;
}

describe('RtspReader', () => {
  const whole = read([STREAM]);

  it('reads answers, interleaved data and requests of the server', () => {
    expect(whole).toMatchObject([
      { kind: 'response', status: 200, reason: 'OK' },
      { kind: 'data', channel: 1 },
      { kind: 'request', method: 'OPTIONS' },
    ]);
    const [answer, data] = whole;
    if (answer?.kind !== 'response' || data?.kind !== 'data') throw new Error('unreachable');
    expect(answer.headers.get('www-authenticate')).toEqual(['Basic realm="a"', 'Digest realm="b"']);
    expect(Buffer.from(answer.body).toString()).toBe('v=0\n');
    expect([...data.data]).toEqual([9, 8, 7]);
  });

  it('reads the same however the bytes are cut', () => {
    for (let size = 1; size < STREAM.length; size += 1) {
      const pieces = Array.from({ length: Math.ceil(STREAM.length / size) }, (_, index) =>
        STREAM.subarray(index * size, (index + 1) * size),
      );
      expect(read(pieces).map(({ kind }) => kind)).toEqual(['response', 'data', 'request']);
    }
  });

  it.each([
    ['HTTP/1.1 200 OK\r\n\r\n', /no RTSP message/],
    ['RTSP/1.0 200 OK\r\nnonsense\r\n\r\n', /without a colon/],
    ['RTSP/1.0 200 OK\r\nContent-Length: -1\r\n\r\n', /Content-Length -1/],
    ['RTSP/1.0 200 OK\r\nContent-Length: 999999\r\n\r\n', /Content-Length 999999/],
    [`RTSP/1.0 200 OK\r\nX: ${'a'.repeat(20_000)}`, /header of more than 16384 bytes/],
  ])('refuses %j', (text, message) => {
    expect(() => read([bytes(text)])).toThrow(message);
  });

  it('survives hostile bytes', () => {
    survivesHostileBytes((data) => read([data]), [STREAM.subarray(0, 160)]);
  });

  it('writes requests', () => {
    expect(serializeRtspRequest('PLAY', 'rtsp://h/x', { CSeq: '1', Session: 'a' })).toBe(
      'PLAY rtsp://h/x RTSP/1.0\r\nCSeq: 1\r\nSession: a\r\n\r\n',
    );
  });
});

describe('parseRtspUrl', () => {
  it.each([
    ['rtsp://h/a', { host: 'h', port: 554, uri: 'rtsp://h/a', credentials: null }],
    ['rtspc://h:8554', { host: 'h', port: 8554, uri: 'rtsp://h:8554/', credentials: null }],
    [
      'RTSP://u:p%40s:s@[::1]:99/a/b?c=d',
      { host: '::1', port: 99, uri: 'rtsp://[::1]:99/a/b?c=d', credentials: { user: 'u', password: 'p@s:s' } },
    ],
    ['rtsp://u@h/%zz', { host: 'h', port: 554, uri: 'rtsp://h/%zz', credentials: { user: 'u', password: '' } }],
  ])('%s', (text, expected) => {
    expect(parseRtspUrl(text)).toEqual(expected);
  });

  it.each([
    'rtsp://u%0d%0aX:p@h/x',
    'rtsp://u:p\r\n@h/x',
    'rtsp://h\r\nX/x',
    'rtsp://h/\u0001',
    '',
    'rtsp://',
    'rtsp:///x',
    'http://h/x',
    'rtsp://h:0/x',
    'rtsp://h:70000/x',
    'rtsp://h/a b',
    'rtsp://h/a\r\nX: y',
  ])('refuses %j', (text) => {
    expect(parseRtspUrl(text)).toBeNull();
  });

  it.each([
    ['rtsp://h/a', '', 'rtsp://h/a'],
    ['rtsp://h/a/', '*', 'rtsp://h/a/'],
    ['rtsp://h/a', 'track1', 'rtsp://h/a/track1'],
    ['rtsp://h/a/', 'track1', 'rtsp://h/a/track1'],
    ['rtsp://h/a', 'rtsp://o/b', 'rtsp://o/b'],
  ])('%s with control %j is %s', (base, control, expected) => {
    expect(controlUri(base, control)).toBe(expected);
  });
});

describe('RtspAuthenticator', () => {
  const md5 = (text: string): string => createHash('md5').update(text).digest('hex');
  const make = (): RtspAuthenticator => new RtspAuthenticator({ user: 'Mufasa', password: 'Circle Of Life' });

  it('sends no header before a challenge', () => {
    expect(make().header('DESCRIBE', '/x')).toBeNull();
  });

  it('answers Basic', () => {
    const authenticator = make();
    expect(authenticator.accept(['Basic realm="x"'])).toBe(true);
    expect(authenticator.header('PLAY', '/x')).toBe(`Basic ${Buffer.from('Mufasa:Circle Of Life').toString('base64')}`);
  });

  it('prefers Digest, as in RFC 2069 without qop', () => {
    const authenticator = make();
    expect(authenticator.accept(['Basic realm="x"', 'Digest realm="r", nonce="n", opaque="o"'])).toBe(true);
    const response = md5(`${md5('Mufasa:r:Circle Of Life')}:n:${md5('PLAY:/x')}`);
    expect(authenticator.header('PLAY', '/x')).toBe(
      `Digest username="Mufasa", realm="r", nonce="n", uri="/x", response="${response}", opaque="o"`,
    );
  });

  it('counts with qop and uses SHA-256 when asked', () => {
    const authenticator = make();
    authenticator.accept(['Digest realm="r", nonce="n", qop="auth-int,auth", algorithm=SHA-256']);
    const headers = [1, 2].map(() => authenticator.header('PLAY', '/x') ?? '');
    expect(headers[1]).toMatch(/nc=00000002/);
    const [, response, cnonce] = /response="([0-9a-f]{64})".*cnonce="([0-9a-f]+)"/.exec(headers[0]!)!;
    const sha = (text: string): string => createHash('sha256').update(text).digest('hex');
    expect(response).toBe(sha(`${sha('Mufasa:r:Circle Of Life')}:n:00000001:${cnonce}:auth:${sha('PLAY:/x')}`));
  });

  it('gives up when the same challenge is repeated, but follows a new nonce', () => {
    const authenticator = make();
    expect(authenticator.accept(['Digest realm="r", nonce="n"'])).toBe(true);
    expect(authenticator.accept(['Digest realm="r", nonce="m", stale=TRUE'])).toBe(true);
    expect(authenticator.accept(['Digest realm="r", nonce="m"'])).toBe(false);
    const basic = make();
    expect([1, 2].map(() => basic.accept(['Basic realm="r"']))).toEqual([true, false]);
    expect(make().accept(['Negotiate', 'Digest algorithm=SHA-512, realm="r"'])).toBe(false);
  });
});

describe('parseRtspDescription', () => {
  const CAMERA = `v=0\r
o=- 1 1 IN IP4 127.0.0.1\r
s=cam\r
a=control:*\r
m=video 0 RTP/AVP 96\r
b=AS:2000\r
a=rtpmap:96 H264/90000\r
a=fmtp:96 packetization-mode=1; sprop-parameter-sets=Z0IAKQ==,aM48gA==;profile-level-id=420029\r
a=framerate:25\r
a=control:trackID=1\r
m=audio 0 RTP/AVP 0\r
a=control:trackID=2\r
`;

  it('reads codecs, parameters and control URLs of the tracks', () => {
    const { control, media } = parseRtspDescription(CAMERA);
    expect(control).toBe('*');
    expect(media).toMatchObject([
      { type: 'video', payloadType: 96, encoding: 'h264', clockRate: 90_000, control: 'trackID=1', bandwidth: 2_000_000, framerate: 25 },
      { type: 'audio', payloadType: 0, encoding: 'pcmu', clockRate: 8000, control: 'trackID=2' },
    ]);
    expect(media[0]!.parameters.get('sprop-parameter-sets')).toBe('Z0IAKQ==,aM48gA==');
  });

  it.each(['1e-320', '0', '-1', '0.5', '1000001', 'NaN'])('refuses %s as a clock rate', (rate) => {
    const { media } = parseRtspDescription(CAMERA.replace('H264/90000', `H264/${rate}`));
    expect(media[0]!.clockRate).toBe(0);
  });

  it('refuses an invalid description', () => {
    expect(() => parseRtspDescription('<html>')).toThrow(/begins with v=/);
    expect(() => parseRtspDescription('v=0\nm=video 0 RTP/AVP x\n')).toThrow(/payload type/);
  });

  it('survives hostile bytes', () => {
    survivesHostileBytes((data) => parseRtspDescription(Buffer.from(data).toString('latin1')), [bytes(CAMERA)]);
  });
});

describe('arbitrary input of a server', () => {
  it('cannot inject lines into a request', () => {
    const uri = controlUri('rtsp://h/cam/', 'track 1\rX: y');
    expect(uri).toBe('rtsp://h/cam/track%201%0DX:%20y');
    const text = serializeRtspRequest('SETUP', 'rtsp://h/\r\nA: b', { Session: '1\rTeardown: 2\n' });
    expect(text).toBe('SETUP rtsp://h/A: b RTSP/1.0\r\nSession: 1Teardown: 2\r\n\r\n');
  });
});
