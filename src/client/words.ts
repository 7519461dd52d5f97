/** Common names for terms of the API. */

/** Kinds of connections that count as viewers; the others are files, pushes, edges and images. */
export const VIEWER_KINDS = ['webrtc', 'llhls', 'hlsv3', 'srt'] as const;

/** Viewers among connections by kind, as statistics count them: recordings, pushes, other servers and images are none. */
export function viewersOf(connections: Readonly<Record<string, number>>): number {
  return VIEWER_KINDS.reduce((sum, kind) => sum + (connections[kind] ?? 0), 0);
}

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
 * The common name of a protocol for any term of the API: `RTSP` for `RtspPull`, `LL-HLS` for `llhls`. Terms that are not
 * protocols are returned unchanged.
 */
export function protocolName(word: string): string {
  const key = word.toLowerCase();
  return (Object.hasOwn(NAMES, key) && NAMES[key]) || word;
}
