/**
 * Child process of `crowd`: RTMP publishers at almost no cost. All send the same prepared film, each at another offset. The wait of every
 * frame is known, so the generator's delay is not counted as the server's.
 */
import { once } from 'node:events';
import os from 'node:os';
import { percentile } from './measure.ts';
import { RtmpSender, tagMessage } from './rtmp-sender.ts';
import { type FlvTag, isAudioFrame, isVideoFrame, readFlv, SOURCE_FPS, SOURCE_GOP_SECONDS, SOURCE_SECONDS } from './source.ts';

export type SenderOrder =
  | { readonly type: 'publish'; readonly port: number; readonly source: string; readonly count: number; readonly seconds: number }
  | { readonly type: 'window' }
  | { readonly type: 'end' };
/** To `publish`, to `window` (since the previous window) and to `end`. */
export type SenderAnswer =
  | { readonly type: 'published'; readonly milliseconds: number }
  | { readonly type: 'window'; readonly lateP99: number; readonly lateMost: number; readonly open: number }
  | { readonly type: 'ended' };

/** Encoders normally run on other machines. */
const NICE = 19;
const TICK_MS = 2;
const FRAME_MS = 1000 / SOURCE_FPS;
/** Limit of waiting bytes of a publisher; beyond it the server is not reading, which `open` reports. */
const MAX_WAITING = 16 * 2 ** 20;
/** The parent process may have ended silently. */
const MAX_MS = 300_000;

interface Film {
  /** Messages with the parameters. */
  readonly head: Buffer;
  /** Messages of one video frame each, with the audio before it. */
  readonly frames: readonly Buffer[];
}

interface Publisher {
  readonly sender: RtmpSender;
  readonly startsAt: number;
  next: number;
  isOpen: boolean;
}

const publishers: Publisher[] = [];
let film: Film = { head: Buffer.alloc(0), frames: [] };
let late: number[] = [];

/** Repeats the tags for `seconds`, in wire format. */
function layOut(tags: readonly FlvTag[], seconds: number): Film {
  const media = tags.filter((tag) => isAudioFrame(tag) || isVideoFrame(tag));
  const frames: Buffer[] = [];
  let waiting: Buffer[] = [];
  for (let start = 0; start < seconds; start += SOURCE_SECONDS) {
    for (const tag of media) {
      waiting.push(tagMessage(tag, tag.timestamp + start * 1000));
      if (!isVideoFrame(tag)) continue;
      frames.push(Buffer.concat(waiting));
      waiting = [];
    }
  }
  return { head: Buffer.concat(tags.filter((tag) => !media.includes(tag)).map((tag) => tagMessage(tag, 0))), frames };
}

async function publish({ port, source, count, seconds }: Extract<SenderOrder, { type: 'publish' }>): Promise<void> {
  film = layOut(readFlv(source), seconds);
  const since = performance.now();
  const senders = await Promise.all(Array.from({ length: count }, (_, index) => RtmpSender.open(port, 'app', `s${index}`)));
  const begun = performance.now();
  for (const [index, sender] of senders.entries()) {
    // Unsynchronised encoders have their keyframes at any time.
    const publisher = { sender, startsAt: begun + (index * SOURCE_GOP_SECONDS * 1000) / count, next: 0, isOpen: true };
    sender.socket.once('close', () => {
      publisher.isOpen = false;
    });
    sender.write(film.head);
    publishers.push(publisher);
  }
  setInterval(send, TICK_MS);
  process.send?.({ type: 'published', milliseconds: begun - since } satisfies SenderAnswer);
}

function send(): void {
  const now = performance.now();
  for (const publisher of publishers) {
    for (;;) {
      const due = publisher.startsAt + publisher.next * FRAME_MS;
      const frame = film.frames[publisher.next];
      if (due > now || frame === undefined || !publisher.isOpen) break;
      publisher.next += 1;
      late.push(now - due);
      if (publisher.sender.socket.writableLength < MAX_WAITING) publisher.sender.write(frame);
      else publisher.sender.close();
    }
  }
}

function window(): void {
  const open = publishers.filter(({ isOpen }) => isOpen).length;
  const answer = { lateP99: percentile(late, 99), lateMost: late.reduce((most, one) => Math.max(most, one), 0), open };
  late = [];
  process.send?.({ type: 'window', ...answer } satisfies SenderAnswer);
}

/** Ends all publishers at once. */
async function end(): Promise<void> {
  await Promise.all(
    publishers.map(async ({ sender, isOpen }) => {
      const closed = once(sender.socket, 'close');
      sender.close();
      if (isOpen) await closed;
    }),
  );
  process.send?.({ type: 'ended' } satisfies SenderAnswer, () => process.exit());
}

os.setPriority(os.getPriority() + NICE);
process.on('message', (order: SenderOrder) => {
  if (order.type === 'publish') void publish(order);
  else if (order.type === 'window') window();
  else void end();
});
process.once('disconnect', () => process.exit());
setTimeout(() => process.exit(1), MAX_MS).unref();
