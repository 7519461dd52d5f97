/** A transcoder that returns its input, or waits until the test decides on the output. */
import type {
  EncodeFault,
  EncodeFaultFacts,
  EncodeRequest,
  TranscodeListener,
  Transcoder,
  TranscodeSession,
} from '../../src/core/transcoding.ts';
import type { Packet } from '../../src/media/packet.ts';
import type { Track } from '../../src/media/track.ts';

type Job = Parameters<Transcoder['open']>[0];

export class FakeTranscodeSession implements TranscodeSession {
  readonly job: Job;
  readonly trackCalls: (readonly Track[])[] = [];
  readonly pushed: Packet[] = [];
  readonly keyframeRequests: number[] = [];
  /** Keyframes requested for a given time. */
  readonly forcedKeyframes: { readonly encodeId: number; readonly pts: number }[] = [];
  closed = false;
  readonly #listener: TranscodeListener;
  readonly #announced = new Set<number>();
  readonly #echo: boolean;

  constructor(job: Job, listener: TranscodeListener, echo: boolean) {
    this.job = job;
    this.#listener = listener;
    this.#echo = echo;
  }

  setTracks(tracks: readonly Track[]): void {
    this.trackCalls.push(tracks);
  }

  push(packet: Packet): void {
    this.pushed.push(packet);
    if (!this.#echo) return;
    for (const encode of this.job.encodes) {
      if (encode.sourceId !== packet.track.id) continue;
      if (!this.#announced.has(encode.id)) this.announce(encode.id);
      this.emit(encode.id, packet);
    }
  }

  requestKeyframe(encodeId: number, pts?: number): void {
    if (pts === undefined) this.keyframeRequests.push(encodeId);
    else this.forcedKeyframes.push({ encodeId, pts });
  }

  close(): void {
    this.closed = true;
  }

  /** The encode of this name. */
  encode(name: string): EncodeRequest {
    const found = this.job.encodes.find(({ encode }) => encode.name === name);
    if (found === undefined) throw new Error(`no encode ${name} in the job`);
    return found;
  }

  /** Announces the parameters of an encode: those of its source with `overrides`. */
  announce(encodeId: number, overrides: object = {}): void {
    const request = this.job.encodes.find(({ id }) => id === encodeId);
    const source = this.trackCalls.at(-1)?.find(({ id }) => id === request?.sourceId);
    if (request === undefined || source === undefined) throw new Error(`no encode ${encodeId} or no tracks yet`);
    this.#announced.add(encodeId);
    const codec = (request.encode.codec ?? '').toUpperCase();
    const track = { ...source, id: encodeId, variantName: request.encode.name, bypass: false, codec, ...overrides } as Track;
    this.#listener.onTrack(encodeId, track);
  }

  /** Emits a packet with the times and bytes of `packet`. */
  emit(encodeId: number, { pts, dts, duration, keyframe, data }: Packet): void {
    this.#listener.onPacket({ encodeId, pts, dts, duration, keyframe, data });
  }

  fail(encodeId: number, reason: string, fault: EncodeFault = 'encoder', facts: EncodeFaultFacts = {}): void {
    this.#listener.onEncodeFailed(encodeId, reason, fault, facts);
  }
}

export class FakeTranscoder implements Transcoder {
  readonly sessions: FakeTranscodeSession[] = [];
  /** False: the test calls `announce` and `emit`. */
  echo = true;
  /** Thrown instead of opening a session. */
  refusal: Error | null = null;

  open(job: Job, listener: TranscodeListener): FakeTranscodeSession {
    if (this.refusal !== null) throw this.refusal;
    const session = new FakeTranscodeSession(job, listener, this.echo);
    this.sessions.push(session);
    return session;
  }

  /** The session opened last. */
  get session(): FakeTranscodeSession {
    const session = this.sessions.at(-1);
    if (session === undefined) throw new Error('no session was opened');
    return session;
  }
}
