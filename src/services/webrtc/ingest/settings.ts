/** What the WebRTC provider needs of an application's configuration. */
export interface WebrtcIngestSettings {
  /** Gives up a publisher whose ICE is silent for this long, ms. */
  readonly timeout: number;
  /** A keyframe is asked for when none came for this long, ms; 0 leaves it to the encoder. */
  readonly keyframeInterval: number;
}
