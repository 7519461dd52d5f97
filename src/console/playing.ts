/** A player of the console, whatever its protocol. */

/** Told what happens. */
export interface PlayerListener {
  /** The first frame or audio is there. */
  playing(): void;
  /** It does not play, and why; it may do so again later by itself. */
  failed(words: string): void;
}

/** A running player. Its starter closes it. */
export interface Playing {
  /** Seconds behind what the server sends; null while that is not known. */
  delay(): Promise<number | null>;
  /** Idempotent. */
  close(): void;
}

/** A video that begins without a click: silent, as browsers demand. */
export function videoIn(place: HTMLElement): HTMLVideoElement {
  const video = document.createElement('video');
  video.muted = true;
  video.autoplay = true;
  video.controls = true;
  video.playsInline = true;
  place.replaceChildren(video);
  return video;
}
