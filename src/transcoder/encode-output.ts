import type { EncodedPacket, EncodeFault, EncodeFaultFacts, EncodeRequest, TranscodeListener } from '../core/transcoding.ts';
import { MPEG_90K } from '../media/timebase.ts';
import type { Track } from '../media/track.ts';
import { configBytes, type EncodePart, type TrackMessage } from './messages.ts';

/** Failures of an encode that has made something. */
const UNDER_WAY = { decoder: 'decoding', filter: 'filtering', encoder: 'encoding' } as const satisfies Record<EncodePart, EncodeFault>;

/** The server's side of one encode of a job: passes on the encoder's output, except what a restarted encoder repeats. Needs no closing. */
export class EncodeOutput {
  readonly request: EncodeRequest;
  readonly #listener: TranscodeListener;
  #track = '';
  #lastDts = Number.NEGATIVE_INFINITY;
  #failed = false;

  constructor(request: EncodeRequest, listener: TranscodeListener) {
    this.request = request;
    this.#listener = listener;
  }

  get failed(): boolean {
    return this.#failed;
  }

  /** Passes parameters on, unless a restarted encoder repeats known ones. */
  onTrack(json: string, source: Track | undefined): void {
    if (json === this.#track) return;
    this.#track = json;
    this.#listener.onTrack(this.request.id, trackOf(this.request, JSON.parse(json) as TrackMessage, source));
  }

  /** Passes a packet on, unless a restarted encoder repeats a time already passed. */
  onPacket(packet: EncodedPacket): void {
    if (packet.dts <= this.#lastDts) return;
    this.#lastDts = packet.dts;
    this.#listener.onPacket(packet);
  }

  /** Reports once that the encode has failed. */
  onFailed(reason: string, part: EncodePart, facts: EncodeFaultFacts = {}): void {
    if (this.#failed) return;
    this.#failed = true;
    const hasMade = this.#lastDts > Number.NEGATIVE_INFINITY;
    this.#listener.onEncodeFailed(this.request.id, reason, hasMade ? UNDER_WAY[part] : part, facts);
  }
}

function trackOf({ id, encode }: EncodeRequest, message: TrackMessage, source: Track | undefined): Track {
  const common = {
    id,
    variantName: encode.name,
    bitrateConf: message.bitrate,
    language: source?.language ?? '',
    characteristics: source?.characteristics ?? '',
    bypass: false,
    config: configBytes(message.config),
    codecString: message.codecString,
  };
  if (message.type === 'audio') {
    const { codec, sampleRate, channels } = message;
    return { ...common, type: 'audio', publicName: `Audio_${id}`, timebase: { num: 1, den: sampleRate }, codec, sampleRate, channels };
  }
  const { codec, width, height, framerate } = message;
  return { ...common, type: 'video', publicName: `Video_${id}`, timebase: MPEG_90K, codec, width, height, framerateConf: framerate };
}
