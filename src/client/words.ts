/** What people call the things that the API has words for. */

/** Kinds of connections that are viewers; the others are files, pushes, edges and images. */
export const VIEWER_KINDS = ['webrtc', 'llhls', 'hlsv3', 'srt'] as const;

const NAMES: Readonly<Record<string, string>> = {
  hls: 'HLS',
  hlsv3: 'HLS',
  llhls: 'LL-HLS',
  mpegts: 'MPEG-TS',
  ovt: 'OVT',
  rtmp: 'RTMP',
  rtsp: 'RTSP',
  rtsppull: 'RTSP',
  srt: 'SRT',
  thumbnail: 'thumbnails',
  webrtc: 'WebRTC',
};

/**
 * The name of a protocol as people write it, by any word that the API has for it: `RTSP` of `RtspPull`, `LL-HLS` of `llhls`. Words that are no
 * protocol stay as they are.
 */
export function protocolName(word: string): string {
  const key = word.toLowerCase();
  return (Object.hasOwn(NAMES, key) && NAMES[key]) || word;
}
