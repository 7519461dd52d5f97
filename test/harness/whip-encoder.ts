/** An encoder that publishes over WHIP as OBS does: ffmpeg encodes, libdatachannel encrypts and sends. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { Audio, PeerConnection, type Track, Video } from 'node-datachannel';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { Child } from './child.ts';
import { until } from './poll.ts';

export interface WhipEncoderOptions {
  /** WHIP endpoint. */
  readonly url: string;
  /** B-frames between reference frames; default: none. */
  readonly bFrames?: number;
  readonly fps?: number;
  /** Default `H264`. */
  readonly codec?: 'H264' | 'H265';
  /** Bearer token of the request. */
  readonly bearer?: string;
}

const ENCODERS = {
  H264: ['-c:v', 'libx264', '-preset', 'ultrafast'],
  H265: ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', 'log-level=error:pools=1:repeat-headers=1'],
} as const;

const VIDEO_TYPE = 96;
const AUDIO_TYPE = 111;
const NUMBERS = { video: 1001, audio: 2002 } as const;
const CONNECT_DEADLINE_MS = 15_000;

/** The caller of `open` closes it. */
export class WhipEncoder {
  /** Status of the answer. */
  readonly status: number;
  /** URL of the session; empty if it was refused. */
  readonly location: string;
  readonly #peer: PeerConnection;
  readonly #sockets: readonly Socket[];
  readonly #ffmpeg: Child | null;

  constructor(parts: { status: number; location: string; peer: PeerConnection; sockets: readonly Socket[]; ffmpeg: Child | null }) {
    this.status = parts.status;
    this.location = parts.location;
    this.#peer = parts.peer;
    this.#sockets = parts.sockets;
    this.#ffmpeg = parts.ffmpeg;
  }

  /** Connection state as libdatachannel names it. */
  get state(): string {
    return this.#peer.state();
  }

  async close(): Promise<void> {
    await this.#ffmpeg?.kill();
    for (const socket of this.#sockets) socket.close();
    this.#peer.close();
  }
}

export async function publishWhip({ url, bFrames = 0, fps = 30, codec = 'H264', bearer }: WhipEncoderOptions): Promise<WhipEncoder> {
  const peer = new PeerConnection('encoder', { iceServers: [] });
  const video = new Video('0', 'SendOnly');
  if (codec === 'H265') video.addH265Codec(VIDEO_TYPE);
  else video.addH264Codec(VIDEO_TYPE);
  video.addSSRC(NUMBERS.video, 'encoder', 'stream', 'video');
  const audio = new Audio('1', 'SendOnly');
  audio.addOpusCodec(AUDIO_TYPE);
  audio.addSSRC(NUMBERS.audio, 'encoder', 'stream', 'audio');
  const tracks = [peer.addTrack(video), peer.addTrack(audio)];
  peer.setLocalDescription();
  await until('candidates', () => peer.gatheringState() === 'complete', { deadlineMs: CONNECT_DEADLINE_MS });
  const headers = { 'Content-Type': 'application/sdp', ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }) };
  const response = await fetch(url, { method: 'POST', headers, body: peer.localDescription()?.sdp ?? '' });
  const location = new URL(response.headers.get('location') ?? '', url).href;
  const answer = await response.text();
  if (response.status !== 201) return new WhipEncoder({ status: response.status, location: '', peer, sockets: [], ffmpeg: null });
  peer.setRemoteDescription(answer, 'answer');
  await until('the connection', () => tracks.every((track) => track.isOpen()), { deadlineMs: CONNECT_DEADLINE_MS });
  const sockets = await Promise.all(tracks.map(relay));
  const [videoPort = 0, audioPort = 0] = sockets.map((socket) => socket.address().port);
  const target = (port: number): string => `rtp://127.0.0.1:${port}?rtcpport=${port}&pkt_size=1200`;
  const ffmpeg = new Child(requireProgram('ffmpeg'), [
    ...['-v', 'error', '-nostdin', '-re', '-f', 'lavfi', '-i', `testsrc2=size=640x360:rate=${fps}`],
    ...['-re', '-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000'],
    ...['-map', '0:v', ...ENCODERS[codec], '-pix_fmt', 'yuv420p', '-b:v', '600k', '-g', `${fps}`, '-bf', `${bFrames}`],
    ...['-payload_type', `${VIDEO_TYPE}`, '-ssrc', `${NUMBERS.video}`, '-f', 'rtp', target(videoPort)],
    ...[
      '-map',
      '1:a',
      '-c:a',
      'libopus',
      '-ac',
      '2',
      '-payload_type',
      `${AUDIO_TYPE}`,
      '-ssrc',
      `${NUMBERS.audio}`,
      '-f',
      'rtp',
      target(audioPort),
    ],
  ]);
  return new WhipEncoder({ status: response.status, location, peer, sockets, ffmpeg });
}

/** Opens a port whose RTP and RTCP are sent over a track. */
async function relay(track: Track): Promise<Socket> {
  const socket = createSocket('udp4');
  socket.on('message', (packet) => {
    if (track.isOpen()) track.sendMessageBinary(packet);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return socket;
}
