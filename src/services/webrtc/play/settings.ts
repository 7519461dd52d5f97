/** What the WebRTC publisher needs of its application's configuration. */
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
