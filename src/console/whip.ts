/** Publishes the browser's camera, microphone or screen by WHIP (RFC 9725). */

/** A running publication. The caller stops it. */
export interface Publication {
  /** Bits per second since the last call; null at the first. */
  sending(): Promise<number | null>;
  /** Ends the publication, also on the server. Idempotent. */
  stop(): Promise<void>;
}

/** Receives states of the connection. */
export type StateListener = (words: string, isBad: boolean) => void;

const GATHERING_MS = 2000;
const WORDS: Readonly<Partial<Record<RTCPeerConnectionState, string>>> = {
  connecting: 'Connecting …',
  connected: 'On air.',
  disconnected: 'The connection is lost; it may recover.',
  failed: 'Media cannot reach the server: its ICE candidates or ports are not reachable from here.',
};

/** Sends the tracks of `media` to `url`. Rejects with the server's text if it refuses them. */
export async function publishWhip(media: MediaStream, url: string, tell: StateListener): Promise<Publication> {
  const connection = new RTCPeerConnection();
  try {
    for (const track of media.getTracks()) {
      const { sender } = connection.addTransceiver(track, { direction: 'sendonly', streams: [media] });
      if (track.kind === 'video') preferH264(connection, sender);
    }
    connection.addEventListener('connectionstatechange', () => {
      const words = WORDS[connection.connectionState];
      if (words !== undefined) tell(words, connection.connectionState !== 'connected' && connection.connectionState !== 'connecting');
    });
    await connection.setLocalDescription();
    await gathered(connection);
    const { answer, resource } = await offerWhip(url, connection.localDescription?.sdp ?? '');
    await connection.setRemoteDescription({ type: 'answer', sdp: answer });
    return publicationOf(connection, resource);
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** H.264 first: all our players can play it without transcoding. */
function preferH264(connection: RTCPeerConnection, sender: RTCRtpSender): void {
  const codecs = RTCRtpSender.getCapabilities('video')?.codecs ?? [];
  const isH264 = ({ mimeType }: { readonly mimeType: string }): boolean => mimeType.toLowerCase() === 'video/h264';
  const transceiver = connection.getTransceivers().find((each) => each.sender === sender);
  if (codecs.some(isH264)) transceiver?.setCodecPreferences([...codecs.filter(isH264), ...codecs.filter((codec) => !isH264(codec))]);
}

/** Resolves when all candidates are known, or after two seconds. */
export async function gathered(connection: RTCPeerConnection): Promise<void> {
  if (connection.iceGatheringState === 'complete') return;
  await new Promise<void>((resolve) => {
    setTimeout(resolve, GATHERING_MS);
    connection.addEventListener('icegatheringstatechange', () => connection.iceGatheringState === 'complete' && resolve());
  });
}

/** The server's answer to an offer. */
export interface WhipAnswer {
  readonly answer: string;
  /** URL to end the publication. */
  readonly resource: string | null;
  /** The `Link` header, which names relays. */
  readonly link: string;
}

/** Sends an offer; rejects with the server's text. */
export async function offerWhip(url: string, sdp: string): Promise<WhipAnswer> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/sdp' },
    body: sdp,
    credentials: 'omit',
  }).catch(() => null);
  if (response === null) {
    throw new Error('No answer. Nothing listens there, or the CrossDomains of this application do not allow this page.');
  }
  const text = await response.text();
  if (!response.ok) throw new Error(text.trim() || `The server answered ${response.status}.`);
  const location = response.headers.get('location');
  return { answer: text, resource: location === null ? null : new URL(location, url).href, link: response.headers.get('link') ?? '' };
}

function publicationOf(connection: RTCPeerConnection, resource: string | null): Publication {
  let before: { readonly at: number; readonly bytes: number } | null = null;
  return {
    sending: async () => {
      let bytes = 0;
      for (const report of (await connection.getStats()).values()) if (report.type === 'outbound-rtp') bytes += report.bytesSent ?? 0;
      const now = { at: performance.now(), bytes };
      const since = before;
      before = now;
      return since === null ? null : ((now.bytes - since.bytes) * 8000) / (now.at - since.at);
    },
    stop: async () => {
      if (connection.signalingState === 'closed') return;
      // Before the close: the server removes the resource of a closed connection. A lost request does no harm, because the server notices
      // the close.
      if (resource !== null) await fetch(resource, { method: 'DELETE', credentials: 'omit', keepalive: true }).catch(() => null);
      connection.close();
    },
  };
}
