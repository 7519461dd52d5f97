/** A player of the console, for any protocol. */

/** Receives events of a player. */
export interface PlayerListener {
  /** The first frame or audio has arrived. */
  playing(): void;
  /** Playback failed for this reason; the player may recover. */
  failed(words: string): void;
}

/** A running player. The caller closes it. */
export interface Playing {
  /** Seconds behind the server's newest media; null while unknown. */
  delay(): Promise<number | null>;
  /** Idempotent. */
  close(): void;
}

/** A video element with muted autoplay, as browsers demand. */
export function videoIn(place: HTMLElement): HTMLVideoElement {
  const video = document.createElement('video');
  video.muted = true;
  video.autoplay = true;
  video.controls = true;
  video.playsInline = true;
  place.replaceChildren(video);
  return video;
}
