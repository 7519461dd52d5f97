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

/** `url` is that of the signalling, `ws:` or `wss:`. The module of OvenPlayer is loaded when it is first needed. */
export async function playWebrtc(place: HTMLElement, url: string, listener: PlayerListener): Promise<Playing> {
  await import('ovenplayer');
  const holder = document.createElement('div');
  place.replaceChildren(holder);
  let connection: RTCPeerConnection | null = null;
  const player = window.OvenPlayer.create(holder, {
    sources: [{ type: 'webrtc', file: url }],
    autoStart: true,
    mute: true,
    // Those of the browser are enough.
    controls: false,
    autoFallback: false,
    webrtcConfig: { connectionTimeout: 10_000 },
  });
  player.on('peerConnectionPrepared', (prepared: RTCPeerConnection) => {
    connection = prepared;
  });
  player.on('error', (error: PlayerError) => listener.failed(wordsOf(error)));
  player.on('ready', () => {
    const video = player.getMediaElement();
    if (video === null) return;
    video.controls = true;
    video.addEventListener('playing', () => listener.playing());
    if (!video.paused && video.readyState >= HTMLMediaElement.HAVE_CURRENT_DATA) listener.playing();
  });
  let before: Delays | null = null;
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
      player.remove();
      place.replaceChildren();
    },
  };
}

/** Seconds on the way, and what the jitter buffer of the picture, or of the sound without one, has added up. */
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
  // The innermost is what the server said.
  return [inner, reason, message].find((text) => text !== undefined && text !== '') ?? 'It cannot be played.';
}
