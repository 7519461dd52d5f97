/** The wait of a new viewer for the first frame of a stream. */
import { WebrtcViewer } from '../../test/fakes/webrtc-viewer.ts';
import { within } from '../../test/harness/poll.ts';
import { mediaPlaylists, resolved } from './llhls-crowd.ts';
import { RawClient } from './raw-client.ts';
import { watch } from './webrtc-watch.ts';

const DEADLINE_MS = 20_000;

/** ms from the connection to the last byte of the newest part with a keyframe, after three playlists and files, on one connection. */
export async function firstLlhlsFrame(port: number, stream: string): Promise<number> {
  const startedAt = performance.now();
  const client = await RawClient.open(port);
  const fetched = async (path: string): Promise<string> => {
    const { status, body } = await within(`an answer to GET ${path}`, DEADLINE_MS, client.get(path, { keep: true }));
    if (status !== 200) throw new Error(`GET ${path} was answered with ${status}: ${String(body).slice(0, 200)}`);
    return String(body);
  };
  try {
    const multivariant = `/app/${stream}/llhls.m3u8`;
    const [video = ''] = mediaPlaylists(await fetched(multivariant), multivariant);
    const playlist = await fetched(video);
    const map = /#EXT-X-MAP:.*URI="([^"]+)"/.exec(playlist)?.[1];
    const part = /URI="([^"]+)"/.exec(
      playlist
        .split('\n')
        .filter((line) => line.startsWith('#EXT-X-PART:') && line.includes('INDEPENDENT=YES'))
        .at(-1) ?? '',
    )?.[1];
    if (map === undefined || part === undefined) throw new Error(`there is nothing to play in:\n${playlist}`);
    await fetched(resolved(map, video));
    await fetched(resolved(part, video));
    return performance.now() - startedAt;
  } finally {
    client.close();
  }
}

/** ms from the signalling connection to the last packet of the first frame, a keyframe; the viewer's handshakes run in JavaScript. */
export async function firstWebrtcFrame(port: number, stream: string): Promise<number> {
  const startedAt = performance.now();
  const whole = Promise.withResolvers<number>();
  const ends: { ssrc: number; at: number }[] = [];
  let ssrc: number | null = null;
  const viewer = new WebrtcViewer({
    onPacket: (packet) => {
      viewer.packets.length = 0;
      if (!packet.marker) return;
      ends.push({ ssrc: packet.ssrc, at: performance.now() });
      if (packet.ssrc === ssrc) whole.resolve(performance.now());
    },
  });
  const watching = await within('the signalling', DEADLINE_MS, watch(`ws://127.0.0.1:${port}/app/${stream}`, viewer));
  try {
    ssrc = watching.ssrc;
    const before = ends.find((end) => end.ssrc === ssrc);
    return (before?.at ?? (await within('the first frame', DEADLINE_MS, whole.promise))) - startedAt;
  } finally {
    watching.socket.close();
    viewer.close();
  }
}
