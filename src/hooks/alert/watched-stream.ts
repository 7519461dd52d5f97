/** One inbound stream and its outputs, for alerts. */
import type { AlertRulesConfig } from '../../config/index.ts';
import type { InboundStream } from '../../core/inbound-stream.ts';
import type { OutboundStream } from '../../core/outbound-stream.ts';
import { internalAppName } from '../../core/stream-address.ts';
import type { EncodeFault } from '../../core/transcoding.ts';
import { asNumbers } from '../../monitoring/real.ts';
import { tracksInformation } from '../../monitoring/stream-info.ts';
import type { SegmentObserver, SegmentSource } from '../../services/hls/packager/segment-observer.ts';
import { formatTimestamp } from '../../util/timestamp.ts';
import { ALL_GOOD, type AlertMessage, measuredAlerts } from './alert-rules.ts';
import { extraInfoOf } from './extra-info.ts';
import { RateWindow } from './rate-window.ts';

/** The kinds of HLS, with the number of segments that make a playlist playable. */
const READY_SEGMENTS = { llhls: 1, hls: 2 } as const;
/** One kind of HLS. */
export type SegmentKind = keyof typeof READY_SEGMENTS;

const READY: Readonly<Record<SegmentKind, AlertMessage>> = {
  llhls: { code: 'EGRESS_LLHLS_READY', description: 'LLHLS stream is ready to play - initial segment(s) have been generated' },
  hls: { code: 'EGRESS_HLS_READY', description: 'HLS stream is ready to play - initial segment(s) have been generated' },
};

/** Alert codes by fault. */
const FAULT_CODES: Readonly<Record<EncodeFault, string>> = {
  decoder: 'EGRESS_STREAM_CREATION_FAILED_DECODER',
  encoder: 'EGRESS_STREAM_CREATION_FAILED_ENCODER',
  filter: 'EGRESS_STREAM_CREATION_FAILED_FILTER',
  decoding: 'EGRESS_TRANSCODE_FAILED_DECODING',
  encoding: 'EGRESS_TRANSCODE_FAILED_ENCODING',
  filtering: 'EGRESS_TRANSCODE_FAILED_FILTERING',
};

/** A stream in an alert. */
export type StreamAlert = { readonly type: 'INGRESS' | 'EGRESS'; readonly messages: readonly AlertMessage[] } & Readonly<
  Record<string, unknown>
>;

/** Destination of a stream's alerts, and the values for making them. */
export interface WatchedStreamOptions {
  readonly stream: InboundStream;
  readonly rules: () => AlertRulesConfig;
  /** The packaged output stream of that name; undefined until it exists. */
  readonly segments: (kind: SegmentKind, output: string) => SegmentSource | undefined;
  /** Removes secrets from a text, and addresses if the configuration asks for it. */
  readonly hide: (text: string) => string;
  readonly now: () => number;
  readonly send: (alert: StreamAlert) => void;
}

interface WatchedOutput {
  readonly output: OutboundStream;
  readonly createdAt: number;
  readonly failures: Set<string>;
  /** Kinds that are not ready yet, each with a function that ends the wait for it. */
  readonly waiting: Map<SegmentKind, (() => void) | null>;
}

/** Its owner checks it twice a second, passes it events and closes it. */
export class WatchedStream {
  readonly stream: InboundStream;
  readonly #options: WatchedStreamOptions;
  readonly #outputs = new Map<string, WatchedOutput>();
  readonly #bitrate = new RateWindow();
  readonly #framerate = new RateWindow();
  /** Codes of the last report. */
  #told = '';
  #prepared = false;
  /** Profiles that were reported as left out. */
  #toldProfiles = 0;

  constructor(options: WatchedStreamOptions) {
    this.stream = options.stream;
    this.#options = options;
    if (this.#ingress?.streamStatus !== undefined)
      this.#sendIngress([{ code: 'INGRESS_STREAM_CREATED', description: 'A new ingress stream has been created' }]);
  }

  /** An output stream has its tracks. */
  addOutput(output: OutboundStream): void {
    const watched: WatchedOutput = {
      ...{ output, createdAt: this.#options.now(), failures: new Set<string>() },
      waiting: new Map(Object.keys(READY_SEGMENTS).map((kind) => [kind as SegmentKind, null])),
    };
    this.#outputs.set(output.name, watched);
    if (this.#egress?.streamStatus === undefined) return;
    this.#sendEgress(watched, { code: 'EGRESS_STREAM_CREATED', description: 'A new egress stream has been created' });
    this.#sendEgress(watched, { code: 'EGRESS_STREAM_PREPARED', description: 'A egress stream has been prepared' });
  }

  /** The stream has ended. */
  end(): void {
    for (const watched of this.#outputs.values()) {
      for (const endWait of watched.waiting.values()) endWait?.();
      if (this.#egress?.streamStatus !== undefined)
        this.#sendEgress(watched, { code: 'EGRESS_STREAM_DELETED', description: 'A egress stream has been deleted' });
    }
    this.#outputs.clear();
    if (this.#ingress?.streamStatus !== undefined)
      this.#sendIngress([{ code: 'INGRESS_STREAM_DELETED', description: 'A ingress stream has been deleted' }]);
  }

  /** The stream began before alerts were enabled. */
  adopt(): void {
    this.#prepared = this.stream.started;
    this.#toldProfiles = this.stream.leftOut.length;
  }

  /** Judges the present state of the stream. */
  look(): void {
    this.#prepare();
    this.#judge();
    this.#lookAtProfiles();
    for (const watched of this.#outputs.values()) {
      this.#lookAtFailures(watched);
      this.#lookForSegments(watched);
    }
  }

  get #ingress(): AlertRulesConfig['ingress'] {
    return this.#options.rules().ingress;
  }
  get #egress(): AlertRulesConfig['egress'] {
    return this.#options.rules().egress;
  }

  #prepare(): void {
    if (this.#prepared || !this.stream.started) return;
    this.#prepared = true;
    if (this.#ingress?.streamStatus !== undefined)
      this.#sendIngress([{ code: 'INGRESS_STREAM_PREPARED', description: 'A ingress stream has been prepared' }]);
  }

  /** Judges only while there is a source: that of a stand-in is not judged. */
  #judge(): void {
    const { stream } = this;
    if (!this.#prepared || !stream.source.present) {
      this.#bitrate.clear();
      this.#framerate.clear();
      return;
    }
    const { tracks } = stream;
    this.#bitrate.add(tracks.reduce((sum, { id }) => sum + stream.figures(id).bitrateLatest, 0));
    const video = tracks.find(({ type }) => type === 'video');
    if (video !== undefined) this.#framerate.add(stream.figures(video.id).framerateLatest);
    const rules = this.#ingress;
    const found =
      rules === undefined
        ? []
        : measuredAlerts(rules, {
            tracks,
            bitrate: this.#bitrate.mean,
            framerate: this.#framerate.mean,
            videoFacts: (id) => {
              const { hasBframes, keyframeAt, keyframeSeconds } = stream.figures(id);
              // A keyframe that has not come yet is already late.
              const waited = stream.mediaEnd / 1000 - keyframeAt;
              return { hasBframes, keyframeSeconds: Math.max(keyframeSeconds || 0, waited || 0) };
            },
          });
    const codes = found.map(({ code }) => code).join();
    if (codes === this.#told) return;
    this.#told = codes;
    this.#sendIngress(found.length === 0 ? [ALL_GOOD] : found);
  }

  #lookAtFailures(watched: WatchedOutput): void {
    if (this.#egress?.transcodeStatus === undefined) return;
    for (const failure of watched.output.failures) {
      const { sentence, fault } = failure;
      if (watched.failures.has(sentence)) continue;
      watched.failures.add(sentence);
      this.#sendEgress(
        watched,
        { code: FAULT_CODES[fault], description: sentence },
        { ...this.#parent(), extraInfo: extraInfoOf(failure) },
      );
    }
  }

  /** Profiles without an output stream are known from the beginning of the stream. */
  #lookAtProfiles(): void {
    if (this.#egress?.transcodeStatus === undefined) return;
    const { leftOut } = this.stream;
    for (const { output, profile, sentence } of leftOut.slice(this.#toldProfiles)) {
      const message = { code: 'EGRESS_STREAM_CREATION_FAILED_OUTPUT_PROFILE', description: sentence };
      const source = { sourceInfo: this.#outputInfo(output, this.#options.now(), []), sourceUri: this.#uri(output) };
      this.#options.send({ messages: [message], ...this.#parent(), ...source, extraInfo: { outputProfile: profile }, type: 'EGRESS' });
    }
    this.#toldProfiles = leftOut.length;
  }

  #lookForSegments(watched: WatchedOutput): void {
    const wants = { llhls: this.#egress?.llhlsReady !== undefined, hls: this.#egress?.hlsReady !== undefined };
    for (const [kind, endWait] of watched.waiting) {
      if (endWait !== null || !wants[kind]) continue;
      const source = this.#options.segments(kind, watched.output.name);
      if (source !== undefined) this.#awaitSegments(watched, kind, source);
    }
  }

  #awaitSegments(watched: WatchedOutput, kind: SegmentKind, source: SegmentSource): void {
    const counts = new Map<string, number>();
    const count = (playlist: string): boolean => {
      const segments = (counts.get(playlist) ?? 0) + 1;
      counts.set(playlist, segments);
      return segments >= READY_SEGMENTS[kind];
    };
    const observer: SegmentObserver = {
      segmentFinished: ({ playlist }) => {
        if (!count(playlist) || !watched.waiting.delete(kind)) return;
        source.unobserve(observer);
        this.#sendEgress(watched, READY[kind]);
      },
      streamEnded: () => undefined,
    };
    watched.waiting.set(kind, () => source.unobserve(observer));
    source.observe(observer);
    for (const segment of source.newestSegments()) if (watched.waiting.has(kind)) observer.segmentFinished(segment);
  }

  #sendIngress(messages: readonly AlertMessage[]): void {
    this.#options.send({ messages, ...this.#source(), type: 'INGRESS' });
  }

  #sendEgress({ output, createdAt }: WatchedOutput, message: AlertMessage, parent: object = {}): void {
    const sourceInfo = this.#outputInfo(output.name, createdAt, asNumbers(tracksInformation(output)));
    this.#options.send({ messages: [message], ...parent, sourceInfo, sourceUri: this.#uri(output.name), type: 'EGRESS' });
  }

  #source(): { readonly sourceInfo: object; readonly sourceUri: string } {
    const { name, createdAt, sourceType, sourceUrl } = this.stream;
    const source = { createdTime: formatTimestamp(createdAt), name, sourceType, sourceUrl: this.#options.hide(sourceUrl) };
    return { sourceInfo: { ...source, tracks: asNumbers(tracksInformation(this.stream)) }, sourceUri: this.#uri(name) };
  }

  #outputInfo(name: string, createdAt: number, tracks: unknown): object {
    return { createdTime: formatTimestamp(createdAt), name, sourceType: 'Transcoder', sourceUrl: this.#uri(this.stream.name), tracks };
  }

  #parent(): object {
    const { sourceInfo, sourceUri } = this.#source();
    return { parentSourceInfo: sourceInfo, parentSourceUri: sourceUri };
  }

  #uri(name: string): string {
    return `${internalAppName(this.stream.vhost, this.stream.app)}/${name}`;
  }
}
