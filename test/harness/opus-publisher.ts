/** Publishes Opus over Enhanced RTMP in real time: a tone encoded by ffmpeg. */
import { execFileSync } from 'node:child_process';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { serializeAudioTagHeader } from '../../src/containers/flv/audio-tag.ts';
import { RtmpPublisher } from '../fakes/rtmp-publisher.ts';

const FRAME_MS = 20;
/** Pages of the two headers (RFC 7845 section 3). */
const HEADER_PACKETS = 2;

export interface OpusPublisher {
  stop(): void;
}

/** Sends a loop of one second until it is stopped. */
export async function publishOpus(port: number, app: string, stream: string): Promise<OpusPublisher> {
  const source = ['-hide_banner', '-loglevel', 'error', '-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000:duration=1'];
  const ogg = execFileSync(requireProgram('ffmpeg'), [...source, '-ac', '2', '-c:a', 'libopus', '-b:a', '96k', '-f', 'ogg', 'pipe:1']);
  const packets = packetsOf(ogg);
  const frames = packets.slice(HEADER_PACKETS);
  const publisher = await RtmpPublisher.publish(port, { tcUrl: `rtmp://127.0.0.1:${port}/${app}`, key: stream });
  const send = (kind: 'config' | 'frame', timestamp: number, body: Uint8Array): void => {
    publisher.audio(timestamp, Buffer.concat([serializeAudioTagHeader({ kind, codec: 'OPUS' }), body]).toString('hex'));
  };
  publisher.metadata({ audiosamplerate: 48_000, audiochannels: 2 });
  send('config', 0, packets[0] ?? new Uint8Array());
  const start = performance.now();
  let next = 0;
  const timer = setInterval(() => {
    for (; next * FRAME_MS <= performance.now() - start; next += 1) {
      send('frame', next * FRAME_MS, frames[next % frames.length] ?? new Uint8Array());
    }
  }, FRAME_MS / 2);
  return {
    stop: () => {
      clearInterval(timer);
      publisher.close();
    },
  };
}

/** Packets of an Ogg file with one logical stream (RFC 3533 section 6). */
function packetsOf(ogg: Buffer): Buffer[] {
  const packets: Buffer[] = [];
  let parts: Buffer[] = [];
  for (let at = 0; at + 27 <= ogg.length; ) {
    const count = ogg[at + 26] ?? 0;
    const lacing = ogg.subarray(at + 27, at + 27 + count);
    let body = at + 27 + count;
    for (const size of lacing) {
      parts.push(ogg.subarray(body, body + size));
      body += size;
      if (size === 255) continue;
      packets.push(Buffer.concat(parts));
      parts = [];
    }
    at = body;
  }
  return packets;
}
