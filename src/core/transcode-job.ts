import type { Packet } from '../media/packet.ts';
import type { Track } from '../media/track.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { OutboundMap } from './outbound-map.ts';
import type { PlannedEncode } from './output-profile.ts';
import type { EncodeRequest, TranscodeListener, Transcoder, TranscodeSession } from './transcoding.ts';

/** Many viewers may ask for a keyframe at once: the encoder is asked no more often than this. */
const KEYFRAME_REQUEST_INTERVAL_MS = 500;

/** Settings of `OutputProfiles` that all encodes of a stream share. */
export interface DecodeSettings {
  readonly threadCount: number;
  readonly onlyKeyframes: boolean;
}

/** Where an encoded track goes. */
interface Target {
  readonly map: OutboundMap;
  readonly key: string;
}

interface Encode {
  readonly request: EncodeRequest;
  targets: readonly Target[];
  keyframeAskedAt: number;
}

interface JobOptions {
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
  readonly decodes: DecodeSettings;
  readonly transcoder: Transcoder;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Packets were handed to outbound streams outside a turn of the inbound stream. */
  readonly onOutput: () => void;
}

/** The encodes that all output profiles together want of one inbound stream; equal ones are made once. */
export class TranscodeJob {
  readonly #options: JobOptions;
  /** By what is encoded how. */
  #encodes = new Map<string, Encode>();
  #sources: ReadonlySet<number> = new Set();
  #session: TranscodeSession | null = null;
  #nextId = 0;

  constructor(options: JobOptions) {
    this.#options = options;
  }

  /** Follows the plans of `maps`. Encodes go on as they are when the same ones are wanted as before; else all begin anew. */
  follow(maps: readonly OutboundMap[], tracks: readonly Track[]): void {
    const wanted = new Map<string, { planned: PlannedEncode; targets: Target[] }>();
    for (const map of maps) {
      for (const planned of map.encodes) {
        const fingerprint = fingerprintOf(planned);
        const known = wanted.get(fingerprint);
        const target = { map, key: planned.key };
        if (known === undefined) wanted.set(fingerprint, { planned, targets: [target] });
        else known.targets.push(target);
      }
    }
    const same = this.#encodes.size === wanted.size && [...wanted.keys()].every((fingerprint) => this.#encodes.has(fingerprint));
    if (same) {
      for (const [fingerprint, encode] of this.#encodes) encode.targets = wanted.get(fingerprint)?.targets ?? [];
    } else {
      const encodes = new Map<string, Encode>();
      for (const [fingerprint, { planned, targets }] of wanted) {
        encodes.set(fingerprint, {
          request: requestOf(planned, this.#idOf(fingerprint)),
          targets,
          keyframeAskedAt: Number.NEGATIVE_INFINITY,
        });
      }
      this.#reopen(encodes);
    }
    this.#session?.setTracks(tracks);
  }

  push(packet: Packet): void {
    if (this.#sources.has(packet.track.id)) this.#session?.push(packet);
  }

  /** Asks for a keyframe of the track that `map` carries under `key`. */
  requestKeyframe(map: OutboundMap, key: string): void {
    for (const encode of this.#encodes.values()) {
      if (!encode.targets.some((target) => target.map === map && target.key === key)) continue;
      const now = this.#options.clock.monotonic();
      if (now - encode.keyframeAskedAt < KEYFRAME_REQUEST_INTERVAL_MS) return;
      encode.keyframeAskedAt = now;
      this.#session?.requestKeyframe(encode.request.id);
    }
  }

  /** Idempotent. */
  close(): void {
    const session = this.#session;
    this.#session = null;
    this.#encodes = new Map();
    this.#sources = new Set();
    session?.close();
  }

  /** An encode keeps its number when the job begins anew. */
  #idOf(fingerprint: string): number {
    const known = this.#encodes.get(fingerprint);
    if (known !== undefined) return known.request.id;
    this.#nextId += 1;
    return this.#nextId - 1;
  }

  #reopen(encodes: Map<string, Encode>): void {
    this.close();
    this.#encodes = encodes;
    if (encodes.size === 0) return;
    const requests = Array.from(encodes.values(), ({ request }) => request);
    this.#sources = new Set(requests.map(({ sourceId }) => sourceId));
    const { vhost, app, stream, decodes, transcoder } = this.#options;
    // Keyframes are enough only when nothing but still pictures is made of the video.
    const onlyKeyframes = decodes.onlyKeyframes && !requests.some(({ type }) => type === 'video');
    const job = { vhost, app, stream, encodes: requests, decoderThreads: decodes.threadCount, onlyKeyframes };
    try {
      this.#session = transcoder.open(job, this.#listenFor(encodes));
    } catch (error) {
      this.#options.logger.error({ err: error }, 'transcoder could not be started: the stream goes on with its bypassed tracks');
      for (const { targets } of encodes.values()) for (const { map, key } of targets) map.fail(key);
    }
  }

  #listenFor(encodes: Map<string, Encode>): TranscodeListener {
    const byId = new Map(Array.from(encodes.values(), (encode) => [encode.request.id, encode]));
    /** What a closed session still says does not count. */
    const targetsOf = (encodeId: number): readonly Target[] => (this.#encodes === encodes ? (byId.get(encodeId)?.targets ?? NONE) : NONE);
    return {
      onTrack: (encodeId, track) => {
        for (const { map, key } of targetsOf(encodeId)) map.setEncoded(key, track);
      },
      onPacket: (packet) => {
        const targets = targetsOf(packet.encodeId);
        for (const { map, key } of targets) map.pushEncoded(key, packet);
        if (targets !== NONE) this.#options.onOutput();
      },
      onEncodeFailed: (encodeId, reason) => {
        const targets = targetsOf(encodeId);
        const names = targets.map(({ map, key }) => `${map.profile.name}/${map.variantName(key)}`);
        if (names.length > 0) this.#options.logger.error({ encodes: names, reason }, `encode ${names.join(', ')} failed: ${reason}`);
        for (const { map, key } of targets) map.fail(key);
      },
    };
  }
}

const NONE: readonly Target[] = [];

/** Equal for encodes that give the same packets: names and the rules for bypassing do not matter. */
function fingerprintOf({ kind, source, encode }: PlannedEncode): string {
  const { name: _name, bypassIfMatch: _rule, ...settings } = encode;
  const members = Object.entries(settings).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([kind, source.id, members]);
}

function requestOf(planned: PlannedEncode, id: number): EncodeRequest {
  const sourceId = planned.source.id;
  switch (planned.kind) {
    case 'video':
      return { id, sourceId, type: 'video', encode: planned.encode };
    case 'audio':
      return { id, sourceId, type: 'audio', encode: planned.encode };
    case 'image':
      return { id, sourceId, type: 'image', encode: planned.encode };
  }
}
