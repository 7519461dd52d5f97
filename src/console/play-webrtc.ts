/** Plays WebRTC with OvenPlayer, over the signalling that viewers use. */
import type { PlayerListener, Playing } from './playing.ts';

interface PlayerError {
  readonly message?: string;
  readonly reason?: string;
  readonly error?: { readonly message?: string; readonly reason?: string } | string | null;
}

interface Delays {
  readonly delay: number;
  readonly emitted: number;
}

/** Time limit for the first frame or audio; then the player starts again. */
const FIRST_MS = 15_000;
const AGAIN_MS = 3000;
/** The server's text over the WebSocket for every refusal, as players expect. */
const REFUSAL = 'Cannot create offer';
const REFUSED = 'the server has no such stream for WebRTC, or does not let this viewer play it; its log says which.';

/** Loads OvenPlayer, once. */
export function loadWebrtc(): Promise<unknown> {
  return import('ovenplayer');
}

/**
 * `url` is the URL of the signalling, `ws:` or `wss:`. The module of OvenPlayer is loaded at the first call. Starts again after a failure.
 */
export async function playWebrtc(place: HTMLElement, url: string, listener: PlayerListener): Promise<Playing> {
  await loadWebrtc();
  let connection: RTCPeerConnection | null = null;
  let player: OvenPlayerInstance | null = null;
  let holder: HTMLElement | null = null;
  let before: Delays | null = null;
  let timer = 0;
  let turn = 0;
  const end = (): void => {
    clearTimeout(timer);
    turn += 1;
    player?.remove();
    player = null;
    connection = null;
    before = null;
  };
  const begin = (): void => {
    end();
    const own = turn;
    const fail = (words: string): void => {
      if (own !== turn) return;
      clearTimeout(timer);
      timer = setTimeout(begin, AGAIN_MS);
      listener.failed(words);
    };
    timer = setTimeout(() => fail('No frame arrived in time.'), FIRST_MS);
    // Another player may already be in the place: closing removes only the own element.
    holder = document.createElement('div');
    place.replaceChildren(holder);
    player = startIn(holder, url, {
      prepared: (prepared) => {
        connection = prepared;
      },
      failed: fail,
      playing: () => {
        if (own !== turn) return;
        clearTimeout(timer);
        listener.playing();
      },
    });
  };
  begin();
  return {
    delay: async () => {
      if (connection === null || connection.connectionState !== 'connected') return null;
      const { network, buffer } = await figuresOf(connection);
      const since = before;
      before = buffer;
      if (buffer === null || since === null || buffer.emitted <= since.emitted) return null;
      return network + (buffer.delay - since.delay) / (buffer.emitted - since.emitted);
    },
    close: () => {
      end();
      holder?.remove();
    },
  };
}

interface Ears extends PlayerListener {
  prepared(connection: RTCPeerConnection): void;
}

function startIn(holder: HTMLElement, url: string, ears: Ears): OvenPlayerInstance {
  const player = window.OvenPlayer.create(holder, {
    sources: [{ type: 'webrtc', file: url }],
    autoStart: true,
    mute: true,
    // The browser's controls suffice.
    controls: false,
    autoFallback: false,
    webrtcConfig: { connectionTimeout: 10_000 },
  });
  player.on('peerConnectionPrepared', (prepared: RTCPeerConnection) => ears.prepared(prepared));
  player.on('error', (error: PlayerError) => ears.failed(wordsOf(error)));
  player.on('ready', () => {
    const video = player.getMediaElement();
    if (video === null) return;
    video.controls = true;
    video.addEventListener('playing', () => ears.playing());
    if (!video.paused && video.readyState >= HTMLMediaElement.HAVE_CURRENT_DATA) ears.playing();
  });
  return player;
}

/** Delay in seconds: network, and the average jitter buffer of the video, or of the audio without video. */
async function figuresOf(connection: RTCPeerConnection): Promise<{ readonly network: number; readonly buffer: Delays | null }> {
  let network = 0;
  let buffer: Delays | null = null;
  let kind = '';
  for (const report of (await connection.getStats()).values()) {
    if (report.type === 'candidate-pair' && report.nominated === true) network = (report.currentRoundTripTime ?? 0) / 2;
    if (report.type !== 'inbound-rtp' || kind === 'video') continue;
    kind = report.kind;
    buffer = { delay: report.jitterBufferDelay ?? 0, emitted: report.jitterBufferEmittedCount ?? 0 };
  }
  return { network, buffer };
}

function wordsOf({ message, reason, error }: PlayerError): string {
  const inner = typeof error === 'string' ? error : (error?.reason ?? error?.message);
  // The innermost error is the server's.
  const words = [inner, reason, message].find((text) => text !== undefined && text !== '') ?? 'It cannot be played.';
  return words === REFUSAL ? REFUSED : words;
}
