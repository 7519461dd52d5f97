import { expect, it } from 'vitest';
import { parseRtspDescription } from '../../wire/rtsp/rtsp-description.ts';
import { mediaFormat, rtspTrack } from './media-track.ts';

it.each([
  ['m=audio 0 RTP/AVP 0', 'PCMU', 8000, 1],
  ['m=audio 0 RTP/AVP 8', 'PCMA', 8000, 1],
  ['m=audio 0 RTP/AVP 97\r\na=rtpmap:97 PCMA/16000/2', 'PCMA', 16_000, 2],
])('%j is G.711 by either law', (lines, codec, sampleRate, channels) => {
  const [media] = parseRtspDescription(`v=0\r\n${lines}\r\n`).media;
  const format = mediaFormat(media!)!;
  expect(format).toMatchObject({ codec, clockRate: sampleRate });
  expect(rtspTrack(1, media!, format, format.config)).toMatchObject({ type: 'audio', codec, sampleRate, channels });
});
