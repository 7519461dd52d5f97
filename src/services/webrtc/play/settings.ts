import type { Fanout } from '../transport/fanout/fanout.ts';

/** The WebRTC publisher's part of its application's configuration. */
export interface WebrtcSettings {
  /** Gives up a viewer whose ICE is silent for this long, ms. */
  readonly timeout: number;
  /** Sends lost packets again. */
  readonly rtx: boolean;
  /** Asks players for a delay, ms. */
  readonly playoutDelay?: { readonly min: number; readonly max: number } | undefined;
  readonly bandwidthEstimation: 'REMB' | 'TransportCC';
  readonly ulpfec: boolean;
  readonly jitterBuffer: boolean;
  readonly createDefaultPlaylist: boolean;
}

/** The settings that can take effect: the fanout in JavaScript makes no parities and does not know when packets left. */
export function settingsFor(kind: Fanout['kind'], settings: WebrtcSettings): WebrtcSettings {
  return kind === 'native' ? settings : { ...settings, ulpfec: false, bandwidthEstimation: 'REMB' };
}
