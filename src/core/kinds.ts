/** Words for the kinds of modules, as statistics, webhooks and signed policies use them. */
export const ProviderKind = {
  FILE: 'file',
  MPEGTS: 'mpegts',
  MULTIPLEX: 'multiplex',
  OVT: 'ovt',
  RTMP: 'rtmp',
  RTSP: 'rtsp',
  RTSP_PULL: 'rtsppull',
  SCHEDULED: 'scheduled',
  SRT: 'srt',
  WEBRTC: 'webrtc',
} as const;
/** Any of these words. */
export type ProviderKind = (typeof ProviderKind)[keyof typeof ProviderKind];

/** Kinds of publishers; feeds and sessions carry them too. */
export const PublisherKind = {
  FILE: 'file',
  HLS: 'hlsv3',
  LLHLS: 'llhls',
  OVT: 'ovt',
  PUSH: 'push',
  SRT: 'srt',
  THUMBNAIL: 'thumbnail',
  WEBRTC: 'webrtc',
} as const;
/** Any of these words. */
export type PublisherKind = (typeof PublisherKind)[keyof typeof PublisherKind];

/** `sourceType` of the stream information, exact spellings of the API. */
export const SourceType = {
  WEBRTC: 'WebRTC',
  OVT: 'Ovt',
  RTMP: 'Rtmp',
  RTSP_PULL: 'RtspPull',
  SRT: 'SRT',
  MPEGTS: 'MPEGTS',
  FILE: 'File',
  SCHEDULED: 'Scheduled',
  MULTIPLEX: 'Multiplex',
} as const;
/** Any of these words. */
export type SourceType = (typeof SourceType)[keyof typeof SourceType];
