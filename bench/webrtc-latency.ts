/** How much later a frame that came in over RTMP leaves over WebRTC: last byte sent to last packet received. */
import { setTimeout as delay } from 'node:timers/promises';
import { type ReceivedPacket, WebrtcViewer } from '../test/fakes/webrtc-viewer.ts';
import { until } from '../test/harness/poll.ts';
import { startServer } from '../test/harness/server.ts';
import { median, percentile } from './lib/measure.ts';
import type { BenchOptions, Report } from './lib/report.ts';
import { RtmpSender } from './lib/rtmp-sender.ts';
import { readFlv, SOURCE_FPS, SOURCE_GOP_SECONDS, SOURCE_SECONDS, sourceFile } from './lib/source.ts';
import { watch } from './lib/webrtc-watch.ts';

const MEDIAN_TARGET_MS = 2;
const P99_TARGET_MS = 10;
const RTP_TICKS_PER_MS = 90;
/** Before this many seconds of media the player is not there. */
const WARM_UP_SECONDS = 3;

/** Milliseconds of each frame. The first that arrives is the last keyframe that was sent. */
function delaysOf(sender: RtmpSender, arrivals: readonly { timestamp: number; at: number }[]): number[] {
  const [first] = arrivals;
  if (first === undefined) throw new Error('no frame arrived');
  const gop = SOURCE_FPS * SOURCE_GOP_SECONDS;
  const sent = sender.frames.filter(({ sentAt }, n) => n % gop === 0 && sentAt <= first.at);
  const base = sent.at(-1)?.timestamp ?? 0;
  return arrivals.map(({ timestamp, at }) => {
    const mediaTime = base + ((timestamp - first.timestamp) >>> 0) / RTP_TICKS_PER_MS;
    const frame = sender.frames[sender.indexOf(mediaTime)];
    if (frame === undefined) throw new Error(`no frame was sent for ${mediaTime} ms`);
    return at - frame.sentAt;
  });
}

export async function run({ seconds }: BenchOptions): Promise<Report> {
  const tags = readFlv(await sourceFile());
  const server = await startServer({ webrtc: {} });
  const stopped = new AbortController();
  const received: { packet: ReceivedPacket; at: number }[] = [];
  const viewer = new WebrtcViewer({ onPacket: (packet) => received.push({ packet, at: performance.now() }) });
  try {
    const sender = await RtmpSender.open(server.ports.rtmp, 'app', 'paced');
    const sending = sender.send(tags, stopped.signal);
    await until('media to be sent', () => sender.frames.length > WARM_UP_SECONDS * SOURCE_FPS);
    const { ssrc, socket } = await watch(server.http('paced', '').replace('http', 'ws').replace(/\/$/, ''), viewer);
    await delay(Math.min(seconds, SOURCE_SECONDS - WARM_UP_SECONDS - 2) * 1000);
    socket.close();
    stopped.abort();
    await sending;
    sender.close();
    const pictures = received.filter(({ packet }) => packet.ssrc === ssrc && packet.marker);
    const delays = delaysOf(
      sender,
      pictures.map(({ packet, at }) => ({ timestamp: packet.timestamp, at })),
    );
    return {
      bench: 'webrtc-latency',
      figures: [
        { name: 'RTMP in to WebRTC out, median', value: median(delays), unit: 'ms', target: MEDIAN_TARGET_MS },
        { name: 'RTMP in to WebRTC out, p99', value: percentile(delays, 99), unit: 'ms', target: P99_TARGET_MS },
      ],
      notes: [`${delays.length} frames of 2.5 Mbit/s, each to its last packet; sender and player are one process`],
    };
  } finally {
    stopped.abort();
    viewer.close();
    await server.close();
  }
}
