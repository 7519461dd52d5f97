/** Delay from the last byte of a frame sent over RTMP to its last packet received over WebRTC. */
import { setTimeout as delay } from 'node:timers/promises';
import { type ReceivedPacket, WebrtcViewer } from '../test/fakes/webrtc-viewer.ts';
import { until } from '../test/harness/poll.ts';
import { startServer } from '../test/harness/server.ts';
import { median, percentile } from './lib/measure.ts';
import type { BenchOptions, Report } from './lib/report.ts';
import { RtmpSender } from './lib/rtmp-sender.ts';
import { type FlvTag, readFlv, SOURCE_FPS, SOURCE_GOP_SECONDS, SOURCE_SECONDS, sourceFile } from './lib/source.ts';
import { watch } from './lib/webrtc-watch.ts';

const MEDIAN_TARGET_MS = 2;
const P99_TARGET_MS = 5;
const RTP_TICKS_PER_MS = 90;
/** Media, in seconds, before the player connects. */
const WARM_UP_SECONDS = 3;
/** Minimum duration: p99 is then the 18th slowest of 1800 frames. */
const MIN_SECONDS = 60;

/** Frames between keyframes. */
const GOP = SOURCE_FPS * SOURCE_GOP_SECONDS;

/** Delay of each frame, ms. The first frame to arrive is the last keyframe sent. */
function delaysOf(sender: RtmpSender, arrivals: readonly { timestamp: number; at: number }[]): number[] {
  const [first] = arrivals;
  if (first === undefined) throw new Error('no frame arrived');
  const sent = sender.frames.filter(({ sentAt }, n) => n % GOP === 0 && sentAt <= first.at);
  const base = sent.at(-1)?.timestamp ?? 0;
  return arrivals.map(({ timestamp, at }) => {
    const mediaTime = base + ((timestamp - first.timestamp) >>> 0) / RTP_TICKS_PER_MS;
    const frame = sender.frames[sender.indexOf(mediaTime)];
    if (frame === undefined) throw new Error(`no frame was sent for ${mediaTime} ms`);
    return at - frame.sentAt;
  });
}

/** The source in a loop. */
function repeated(tags: readonly FlvTag[], seconds: number): readonly FlvTag[] {
  const times = Array.from({ length: Math.ceil(seconds / SOURCE_SECONDS) }, (_, n) => n * SOURCE_SECONDS * 1000);
  return times.flatMap((from) => tags.map((tag) => ({ ...tag, timestamp: from + tag.timestamp })));
}

export async function run(options: BenchOptions): Promise<Report> {
  const seconds = Math.max(options.seconds, MIN_SECONDS);
  const tags = repeated(readFlv(await sourceFile()), WARM_UP_SECONDS + seconds + 2);
  const server = await startServer({ webrtc: {} });
  const stopped = new AbortController();
  const received: { packet: ReceivedPacket; at: number }[] = [];
  const viewer = new WebrtcViewer({ onPacket: (packet) => received.push({ packet, at: performance.now() }) });
  try {
    const sender = await RtmpSender.open(server.ports.rtmp, 'app', 'paced');
    const sending = sender.send(tags, stopped.signal);
    await until('media to be sent', () => sender.frames.length > WARM_UP_SECONDS * SOURCE_FPS);
    const { ssrc, socket } = await watch(server.http('paced', '').replace('http', 'ws').replace(/\/$/, ''), viewer);
    await delay(seconds * 1000);
    socket.close();
    stopped.abort();
    await sending;
    sender.close();
    const frames = received.filter(({ packet }) => packet.ssrc === ssrc && packet.marker);
    const delays = delaysOf(
      sender,
      frames.map(({ packet, at }) => ({ timestamp: packet.timestamp, at })),
    );
    return {
      bench: 'webrtc-latency',
      figures: [
        { name: 'RTMP in to WebRTC out, median', value: median(delays), unit: 'ms', target: MEDIAN_TARGET_MS },
        { name: 'RTMP in to WebRTC out, p99', value: percentile(delays, 99), unit: 'ms', target: P99_TARGET_MS },
        { name: '  keyframes, median', value: median(delays.filter((_, n) => n % GOP === 0)), unit: 'ms' },
        {
          name: '  other frames, p99',
          value: percentile(
            delays.filter((_, n) => n % GOP !== 0),
            99,
          ),
          unit: 'ms',
        },
      ],
      notes: [
        `${delays.length} frames of 2.5 Mbit/s, each to its last packet; sender and player are one process`,
        'keyframes leave in slices 1 to 3 ms apart, so as not to flood a downlink: with one frame in 60 they are the slowest percent',
      ],
    };
  } finally {
    stopped.abort();
    viewer.close();
    await server.close();
  }
}
