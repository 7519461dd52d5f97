import type { EncodedPacket, EncodeRequest, TranscodeListener } from '../core/transcoding.ts';
import { MPEG_90K } from '../media/timebase.ts';
import type { Track } from '../media/track.ts';
import { configBytes, type TrackMessage } from './messages.ts';

/** Encodes of one job that ask for the same: made once, handed out to each. */
export class EncodeGroup {
  readonly members: readonly EncodeRequest[];
  #track = '';
  #lastDts = Number.NEGATIVE_INFINITY;
  #failed = false;

  constructor(members: readonly EncodeRequest[]) {
    this.members = members;
  }

  /** The one that is really made; its id stands for the group on the wire. */
  get leader(): EncodeRequest {
    const [leader] = this.members;
    if (leader === undefined) throw new TypeError('a group has members');
    return leader;
  }

  get failed(): boolean {
    return this.#failed;
  }

  /** Passes parameters on, unless a restarted encoder only repeats what is known. */
  onTrack(message: TrackMessage, json: string, source: Track | undefined, listener: TranscodeListener): void {
    if (json === this.#track) return;
    this.#track = json;
    for (const member of this.members) listener.onTrack(member.id, trackOf(member, message, source));
  }

  /** Passes a packet on under each member's id. What a restarted encoder made of a time already told is left out. */
  onPacket(packet: Omit<EncodedPacket, 'encodeId'>, listener: TranscodeListener): void {
    if (packet.dts <= this.#lastDts) return;
    this.#lastDts = packet.dts;
    for (const { id } of this.members) listener.onPacket({ encodeId: id, ...packet });
  }

  onFailed(reason: string, listener: TranscodeListener): void {
    if (this.#failed) return;
    this.#failed = true;
    for (const { id } of this.members) listener.onEncodeFailed(id, reason);
  }
}

/** Puts encodes together that are made of the same track with the same parameters. Names do not count. */
export function groupEncodes(encodes: readonly EncodeRequest[]): EncodeGroup[] {
  const groups = new Map<string, EncodeRequest[]>();
  for (const request of encodes) {
    const { name: _name, bypassIfMatch: _rule, ...parameters } = request.encode;
    const key = JSON.stringify([request.type, request.sourceId, Object.entries(parameters).sort(([a], [b]) => (a < b ? -1 : 1))]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [request]);
    else group.push(request);
  }
  return Array.from(groups.values(), (members) => new EncodeGroup(members));
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
