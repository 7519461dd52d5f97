/** A player without browser: libdatachannel connects and decrypts, ffmpeg takes the packets out of RTP and decodes. */
import { createSocket } from 'node:dgram';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Audio, PeerConnection, type Track, Video } from 'node-datachannel';
import { requireProgram } from '../../../scripts/ensure-tools.ts';
import { Child } from './child.ts';
import { until } from './poll.ts';
import { freeUdpPorts } from './ports.ts';

const TYPES = { video: 96, audio: 111 } as const;
const CONNECT_DEADLINE_MS = 15_000;
const SENDER_REPORT = 200;
const LEAST_RTCP = 192;
const MOST_RTCP = 223;

/** Wall clock of a timestamp, as a sender report tells. */
interface Report {
  /** Seconds. */
  readonly ntp: number;
  readonly timestamp: number;
}

/** What came of one kind of media. */
export interface ReceivedMedia {
  /** RTP timestamps in the order of arrival, each once. */
  readonly timestamps: number[];
  readonly reports: Report[];
  packets: number;
}

export interface WhepReceiverOptions {
  readonly url: string;
  readonly video: 'H264' | 'H265';
  readonly audio: boolean;
  /** For the files that ffmpeg reads and writes. */
  readonly folder: string;
  /** How ffmpeg writes what it has decoded. */
  readonly videoOutput: readonly string[];
}

/** Whoever opens it closes it. */
export class WhepReceiver {
  readonly media: Readonly<Record<'video' | 'audio', ReceivedMedia>>;
  readonly decoders: Readonly<Record<'video' | 'audio', Child | null>>;
  readonly #peer: PeerConnection;

  private constructor(media: WhepReceiver['media'], decoders: WhepReceiver['decoders'], peer: PeerConnection) {
    this.media = media;
    this.decoders = decoders;
    this.#peer = peer;
  }

  static async open(options: WhepReceiverOptions): Promise<WhepReceiver> {
    const { url, video, audio, folder } = options;
    const peer = new PeerConnection('player', { iceServers: [] });
    const media = { video: nothing(), audio: nothing() };
    const picture = new Video('0', 'RecvOnly');
    if (video === 'H265') picture.addH265Codec(TYPES.video);
    else picture.addH264Codec(TYPES.video);
    const sound = new Audio('1', 'RecvOnly');
    sound.addOpusCodec(TYPES.audio);
    const decoders = {
      video: await decoder(folder, 'video', `${video}/90000`, options.videoOutput),
      audio: audio ? await decoder(folder, 'audio', 'opus/48000/2', ['-ac', '1', '-ar', '48000', '-f', 's16le']) : null,
    };
    const tracks = [peer.addTrack(picture), ...(audio ? [peer.addTrack(sound)] : [])];
    pass(tracks[0] as Track, media.video, decoders.video.port);
    if (decoders.audio !== null) pass(tracks[1] as Track, media.audio, decoders.audio.port);
    const receiver = new WhepReceiver(media, { video: decoders.video.child, audio: decoders.audio?.child ?? null }, peer);
    try {
      peer.setLocalDescription();
      await until('candidates', () => peer.gatheringState() === 'complete', { deadlineMs: CONNECT_DEADLINE_MS });
      const post = (): Promise<Response> => fetch(url, { method: 'POST', body: peer.localDescription()?.sdp ?? '' });
      const answer = await until('the stream can be played', async () => (await post().then(taken)) || null, {
        deadlineMs: CONNECT_DEADLINE_MS,
        everyMs: 500,
      });
      peer.setRemoteDescription(answer, 'answer');
      return receiver;
    } catch (error) {
      await receiver.close();
      throw error;
    }
  }

  /** What ffmpeg has written of a kind so far. */
  output(kind: 'video' | 'audio', folder: string): Buffer {
    return readFileSync(path.join(folder, `${kind}.raw`));
  }

  /** Seconds of the wall clock at which a timestamp was, by the first report. */
  wallClock(kind: 'video' | 'audio', timestamp: number): number {
    const [report] = this.media[kind].reports;
    if (report === undefined) throw new Error(`no sender report for ${kind}`);
    return report.ntp + ((timestamp - report.timestamp) | 0) / (kind === 'video' ? 90_000 : 48_000);
  }

  async close(): Promise<void> {
    this.#peer.close();
    await Promise.all([this.decoders.video?.kill(), this.decoders.audio?.kill()]);
  }
}

function nothing(): ReceivedMedia {
  return { timestamps: [], reports: [], packets: 0 };
}

async function taken(response: Response): Promise<string> {
  const text = await response.text();
  return response.status === 201 ? text : '';
}

/** ffmpeg that waits for one RTP stream at a port. */
async function decoder(folder: string, kind: 'video' | 'audio', map: string, output: readonly string[]) {
  const [port = 0] = await freeUdpPorts(1);
  const type = TYPES[kind];
  const description = ['v=0', 'o=- 0 0 IN IP4 127.0.0.1', 's=-', 'c=IN IP4 127.0.0.1', 't=0 0'];
  const file = path.join(folder, `${kind}.sdp`);
  writeFileSync(file, [...description, `m=${kind} ${port} RTP/AVP ${type}`, `a=rtpmap:${type} ${map}`, ''].join('\r\n'));
  const input = ['-v', 'error', '-nostdin', '-y', '-protocol_whitelist', 'file,udp,rtp', '-i', file];
  const child = new Child(requireProgram('ffmpeg'), [...input, '-flush_packets', '1', ...output, path.join(folder, `${kind}.raw`)]);
  const place = `:${port.toString(16).toUpperCase().padStart(4, '0')} `;
  await until('ffmpeg listens', () => readFileSync('/proc/net/udp', 'latin1').includes(place), { deadlineMs: CONNECT_DEADLINE_MS });
  return { child, port };
}

/** Notes what comes and hands it to ffmpeg. */
function pass(track: Track, media: ReceivedMedia, port: number): void {
  const socket = createSocket('udp4');
  track.onClosed(() => socket.close());
  track.onMessage((packet) => {
    const type = packet[1] ?? 0;
    if (type >= LEAST_RTCP && type <= MOST_RTCP) {
      if (type === SENDER_REPORT)
        media.reports.push({ ntp: packet.readUInt32BE(8) + packet.readUInt32BE(12) / 2 ** 32, timestamp: packet.readUInt32BE(16) });
      return;
    }
    media.packets += 1;
    const timestamp = packet.readUInt32BE(4);
    if (media.timestamps.at(-1) !== timestamp) media.timestamps.push(timestamp);
    socket.send(packet, port, '127.0.0.1');
  });
}
