/** Where an application's configuration has the settings of a provider or publisher. */
import { ProviderKind, PublisherKind } from './kinds.ts';

/** The member of `publishers` that enables each publisher. */
export const PUBLISHER_KEYS = {
  [PublisherKind.LLHLS]: 'llhls',
  [PublisherKind.HLS]: 'hls',
  [PublisherKind.WEBRTC]: 'webrtc',
  [PublisherKind.OVT]: 'ovt',
  [PublisherKind.SRT]: 'srt',
  [PublisherKind.THUMBNAIL]: 'thumbnail',
  [PublisherKind.FILE]: 'file',
  [PublisherKind.PUSH]: 'push',
} as const;

/** The member of `providers` that enables each provider. */
export const PROVIDER_KEYS = {
  [ProviderKind.RTMP]: 'rtmp',
  [ProviderKind.SRT]: 'srt',
  [ProviderKind.WEBRTC]: 'webrtc',
  [ProviderKind.OVT]: 'ovt',
  [ProviderKind.RTSP]: 'rtsp',
  [ProviderKind.RTSP_PULL]: 'rtspPull',
  [ProviderKind.MPEGTS]: 'mpegts',
  [ProviderKind.FILE]: 'file',
  [ProviderKind.SCHEDULED]: 'schedule',
  [ProviderKind.MULTIPLEX]: 'multiplex',
} as const;

/** Settings that every kind of provider may have. */
export interface ProviderSettings {
  readonly blockDuplicateStreamName?: boolean;
  readonly maxConnection?: number;
  readonly packetSilenceTimeoutMs?: number;
  readonly timestampMode?: 'ZeroBased' | 'Original';
  readonly passthroughOutputProfile?: boolean;
}
