import type { Packet } from '../media/packet.ts';
import type { Track } from '../media/track.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import type { OutboundMap } from './outbound-map.ts';
import type { PlannedEncode } from './output-profile.ts';
import type { OverlayRule } from './overlay-files.ts';
import { overlaysFor } from './overlay-map.ts';
import type { StreamAddress } from './stream-address.ts';
import type { EncodeRequest, OverlayRequest, TranscodeListener, Transcoder, TranscodeSession } from './transcoding.ts';

/** Many viewers may request a keyframe at once: the encoder gets no more requests than this. */
const KEYFRAME_REQUEST_INTERVAL_MS = 500;

/** Settings of `OutputProfiles` that all encodes of a stream share. */
export interface DecodeSettings {
  readonly threadCount: number;
  readonly onlyKeyframes: boolean;
  /** Hardware encoders: whether to try them, and which, in order; all there are when empty. */
  readonly hardware: { readonly enable: boolean; readonly modules: string };
  /** The same for decoders. */
  readonly hardwareDecoding: { readonly enable: boolean; readonly modules: string };
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

interface JobOptions extends StreamAddress {
  readonly decodes: DecodeSettings;
  /** Images over the frames of encodes. */
  readonly overlays: readonly OverlayRule[];
  readonly transcoder: Transcoder;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Packets were handed to outbound streams outside a turn of the inbound stream. */
  readonly onOutput: () => void;
}

/** A session of the transcoder and its encodes, by source and parameters. */
interface Run {
  readonly encodes: ReadonlyMap<string, Encode>;
  readonly sources: ReadonlySet<number>;
  /** Null while it opens, and when it could not be opened. */
  session: TranscodeSession | null;
}

/** The encodes of one inbound stream for all output profiles together; equal encodes are made once. */
export class TranscodeJob {
  readonly #options: JobOptions;
  readonly #runs = new Set<Run>();
  /** Inbound video tracks that were bypassed while they were also encoded; none is ever removed. */
  readonly #bypassed = new Set<number>();
  #nextId = 0;

  constructor(options: JobOptions) {
    this.#options = options;
  }

  /** At least one encode runs or is being opened. */
  get active(): boolean {
    return this.#runs.size > 0;
  }

  /**
   * Follows the plans of `maps`. The initial encodes share one session; each later group gets a new session, so running encodes continue.
   * A session with an unwanted encode restarts without it; a session whose source becomes bypassed restarts with the source's keyframes.
   */
  follow(maps: readonly OutboundMap[], tracks: readonly Track[]): void {
    const wanted = wantedBy(maps, this.#options.overlays);
    const ids = new Map<string, number>();
    const realigned = new Set(maps.flatMap((map) => map.bypassedVideos).filter((id) => !this.#bypassed.has(id)));
    for (const id of realigned) this.#bypassed.add(id);
    for (const run of this.#runs) {
      const aligned = ![...run.sources].some((id) => realigned.has(id));
      const lasting = aligned && [...run.encodes.keys()].every((fingerprint) => wanted.has(fingerprint));
      for (const [fingerprint, encode] of run.encodes) {
        if (!lasting) ids.set(fingerprint, encode.request.id);
        else {
          encode.targets = wanted.get(fingerprint)?.targets ?? NONE;
          wanted.delete(fingerprint);
        }
      }
      if (!lasting) this.#end(run);
    }
    if (wanted.size > 0) {
      const encodes = new Map<string, Encode>();
      for (const [fingerprint, { planned, overlays, targets }] of wanted) {
        const request = requestOf({ planned, overlays }, ids.get(fingerprint) ?? this.#newId(), targets[0]?.map.trackId(planned.key));
        encodes.set(fingerprint, { request, targets, keyframeAskedAt: Number.NEGATIVE_INFINITY });
      }
      this.#open(encodes);
    }
    for (const { session } of this.#runs) session?.setTracks(tracks);
  }

  push(packet: Packet): void {
    for (const { session, sources } of this.#runs) if (sources.has(packet.track.id)) session?.push(packet);
  }

  /** Asks for a keyframe of the track that `map` carries under `key`. */
  requestKeyframe(map: OutboundMap, key: string): void {
    for (const { session, encodes } of this.#runs) {
      for (const encode of encodes.values()) {
        if (!encode.targets.some((target) => target.map === map && target.key === key)) continue;
        const now = this.#options.clock.monotonic();
        if (now - encode.keyframeAskedAt < KEYFRAME_REQUEST_INTERVAL_MS) return;
        encode.keyframeAskedAt = now;
        session?.requestKeyframe(encode.request.id);
      }
    }
  }

  /** Forces a keyframe of all video encodes at `pts` (1/90000 s of the inbound stream), so that all renditions can be cut there. */
  forceKeyframes(pts: number): void {
    for (const { session, encodes } of this.#runs) {
      for (const { request } of encodes.values()) if (request.type === 'video') session?.requestKeyframe(request.id, pts);
    }
  }

  /** Idempotent. */
  close(): void {
    for (const run of [...this.#runs]) this.#end(run);
  }

  #newId(): number {
    this.#nextId += 1;
    return this.#nextId - 1;
  }

  #end(run: Run): void {
    this.#runs.delete(run);
    run.session?.close();
  }

  #open(encodes: ReadonlyMap<string, Encode>): void {
    const requests = Array.from(encodes.values(), ({ request }) => request);
    const run: Run = { encodes, sources: new Set(requests.map(({ sourceId }) => sourceId)), session: null };
    this.#runs.add(run);
    const { vhost, app, stream, decodes, transcoder } = this.#options;
    // Decoding keyframes alone is enough if only images are made of the video.
    const onlyKeyframes = decodes.onlyKeyframes && !requests.some(({ type }) => type === 'video');
    const { threadCount: decoderThreads, hardware, hardwareDecoding } = decodes;
    const bypassedSources = [...run.sources].filter((id) => this.#bypassed.has(id));
    const job = { vhost, app, stream, encodes: requests, decoderThreads, onlyKeyframes, bypassedSources, hardware, hardwareDecoding };
    try {
      run.session = transcoder.open(job, this.#listenFor(run));
    } catch (error) {
      this.#options.logger.error({ err: error }, 'transcoder could not be started: the stream continues with its bypassed tracks');
      for (const { targets } of encodes.values())
        for (const { map, key } of targets)
          map.fail(key, { reason: `the transcoder could not be started: ${messageOf(error)}`, fault: 'encoder' });
    }
  }

  #listenFor(run: Run): TranscodeListener {
    const byId = new Map(Array.from(run.encodes.values(), (encode) => [encode.request.id, encode]));
    /** Messages of a closed session do not count. */
    const targetsOf = (encodeId: number): readonly Target[] => (this.#runs.has(run) ? (byId.get(encodeId)?.targets ?? NONE) : NONE);
    return {
      onTrack: (encodeId, track) => {
        for (const { map, key } of targetsOf(encodeId)) map.setEncoded(key, track);
      },
      onPacket: (packet) => {
        const targets = targetsOf(packet.encodeId);
        for (const { map, key } of targets) map.pushEncoded(key, packet);
        if (targets !== NONE) this.#options.onOutput();
      },
      onEncodeFailed: (encodeId, reason, fault, facts) => {
        const targets = targetsOf(encodeId);
        const names = targets.map(({ map, key }) => `${map.profile.name}/${map.variantName(key)}`);
        if (names.length > 0) this.#options.logger.error({ encodes: names, reason }, `encode ${names.join(', ')} failed: ${reason}`);
        for (const { map, key } of targets) map.fail(key, { reason, fault, facts });
      },
    };
  }
}

/** The encodes of a job. */
interface WantedEncode {
  readonly planned: PlannedEncode;
  readonly overlays: readonly OverlayRequest[];
}

function wantedBy(maps: readonly OutboundMap[], rules: readonly OverlayRule[]): Map<string, WantedEncode & { readonly targets: Target[] }> {
  const wanted = new Map<string, WantedEncode & { readonly targets: Target[] }>();
  for (const map of maps) {
    for (const planned of map.encodes) {
      const overlays = planned.kind === 'video' ? overlaysFor(rules, map.stream, planned.variantName) : [];
      const fingerprint = fingerprintOf({ planned, overlays });
      const known = wanted.get(fingerprint);
      const target = { map, key: planned.key };
      if (known === undefined) wanted.set(fingerprint, { planned, overlays, targets: [target] });
      else known.targets.push(target);
    }
  }
  return wanted;
}

const NONE: readonly Target[] = [];

/** Equal for encodes that give the same packets: names and the rules for bypassing do not matter. */
function fingerprintOf({ planned: { kind, source, encode }, overlays }: WantedEncode): string {
  const { name: _name, bypassIfMatch: _rule, ...settings } = encode;
  const members = Object.entries(settings).sort(([a], [b]) => (a < b ? -1 : 1));
  const images = overlays.map(({ imageId, left, top, width, height, opacity }) => [imageId, left, top, width, height, opacity]);
  return JSON.stringify([kind, source.id, members, images]);
}

function requestOf({ planned, overlays }: WantedEncode, id: number, trackId: number | undefined): EncodeRequest {
  const common = { id, sourceId: planned.source.id, ...(trackId !== undefined && { trackId }) };
  switch (planned.kind) {
    case 'video':
      return { ...common, type: 'video', encode: planned.encode, ...(overlays.length > 0 && { overlays }) };
    case 'audio':
      return { ...common, type: 'audio', encode: planned.encode };
    case 'image':
      return { ...common, type: 'image', encode: planned.encode };
  }
}
