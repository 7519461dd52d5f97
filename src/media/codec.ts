/** Codecs by the names the REST API prints. */
export const VideoCodec = {
  H264: 'H264',
  H265: 'H265',
  VP8: 'VP8',
  VP9: 'VP9',
  AV1: 'AV1',
  JPEG: 'JPEG',
  PNG: 'PNG',
  WEBP: 'WEBP',
} as const;
/** Any value of `VideoCodec`; images count as video. */
export type VideoCodec = (typeof VideoCodec)[keyof typeof VideoCodec];

/** Audio codecs by the names the REST API prints. */
export const AudioCodec = {
  AAC: 'AAC',
  OPUS: 'OPUS',
  MP3: 'MP3',
  /** G.711 µ-law and A-law, from cameras and telephones: no publisher carries them, so they are transcoded. */
  PCMU: 'PCMU',
  PCMA: 'PCMA',
} as const;
/** Any value of `AudioCodec`. */
export type AudioCodec = (typeof AudioCodec)[keyof typeof AudioCodec];

/** Layouts of a packet's bytes. */
export const BitstreamFormat = {
  /** H.264/H.265 NAL units, each behind its length: 4 bytes after the router, before it those of the source's avcC/hvcC. */
  LENGTH_PREFIXED: 'length-prefixed',
  /** H.264/H.265 NAL units behind start codes (MPEG-TS, RTP after depacketising). */
  ANNEXB: 'annexb',
  /** AAC without headers; the AudioSpecificConfig is the track's `config`. */
  AAC_RAW: 'aac-raw',
  /** AV1 low-overhead OBUs without temporal delimiters. */
  OBU: 'obu',
  /** One frame per packet, no further structure (VP8, VP9, Opus, MP3, ID3v2 …). */
  RAW: 'raw',
} as const;
/** Any value of `BitstreamFormat`. */
export type BitstreamFormat = (typeof BitstreamFormat)[keyof typeof BitstreamFormat];
