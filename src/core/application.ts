import type { ApplicationConfig } from '../config/index.ts';
import { showHidden } from '../util/hidden-characters.ts';
import type { Logger } from '../util/logger.ts';
import { NO_TURNS } from '../util/newcomer-turns.ts';
import { compileWildcard } from '../util/wildcard.ts';
import type { ApplicationContext } from './application-context.ts';
import type { Definition } from './definition.ts';
import { DelayedOutputs } from './delayed-outputs.ts';
import { DRAINING } from './drain.ts';
import type { InboundStreamOptions } from './inbound-options.ts';
import { InboundStream } from './inbound-stream.ts';
import { type CloseReason, type IngestName, IngestRefused, type IngestRequest, type IngestStream } from './ingest.ts';
import { InheritedOutputs } from './inherited-outputs.ts';
import { ProviderKind, type PublisherKind } from './kinds.ts';
import { PROVIDER_KEYS, type ProviderSettings, PUBLISHER_KEYS } from './module-settings.ts';
import { NO_NOTICES, type Notices } from './notices/notice.ts';
import { StreamNotices } from './notices/stream-notices.ts';
import { type EnabledPublisher, OutboundStream } from './outbound-stream.ts';
import { type OutputPlan, planOf } from './output-plan.ts';
import { PASSTHROUGH_PROFILE } from './output-profile.ts';
import type { OverlayRule } from './overlay-files.ts';
import { playlistsOf } from './playlist-builder.ts';
import type { ProfileAdviser } from './profile-advice.ts';
import { isAddressableName } from './stream-address.ts';
import { StreamArrivals } from './stream-arrivals.ts';
import { type Outputs, StreamOutputs } from './stream-outputs.ts';
import { subtitleTracks } from './subtitle-injector.ts';
import { TrafficMeter } from './traffic-meter.ts';

/** Only one node of a cluster plays a channel; the others get it from that node, as a relayed stream. */
const CHANNELS: readonly ProviderKind[] = [ProviderKind.SCHEDULED, ProviderKind.MULTIPLEX];

/** A named set of providers, output profiles and publishers, with the streams that run in it. */
export class Application {
  readonly name: string;
  readonly vhost: string;
  #definition: Definition<ApplicationConfig>;
  readonly meter: TrafficMeter;
  readonly #context: ApplicationContext;
  readonly #logger: Logger;
  readonly #streams = new Map<string, InboundStream>();
  readonly #outputs = new Map<string, OutboundStream>();
  readonly #arrivals = new StreamArrivals({
    isPlayable: (name) => this.isPlayable(name),
    isComing: (name) => this.hasStream(name),
  });
  readonly #publishers: readonly EnabledPublisher[];
  /** Null: the configuration alone determines the output profiles. */
  readonly #adviser: ProfileAdviser | null;
  #closed = false;

  constructor(vhost: string, definition: Definition<ApplicationConfig>, parentMeter: TrafficMeter, context: ApplicationContext) {
    this.vhost = vhost;
    this.name = definition.name;
    this.#definition = definition;
    this.#context = context;
    this.#logger = context.logger.child({ vhost, app: this.name });
    this.meter = new TrafficMeter(context.clock, parentMeter);
    const { transcodeWebhook } = definition.config;
    this.#adviser = transcodeWebhook?.enable === true ? (context.adviserOf?.(transcodeWebhook) ?? null) : null;
    const settings: Partial<Record<string, unknown>> = definition.config.publishers ?? {};
    this.#publishers = Array.from(context.publishers.values(), (publisher) => ({
      publisher,
      settings: settings[PUBLISHER_KEYS[publisher.kind]],
    })).filter((enabled) => enabled.settings !== undefined);
  }

  get definition(): Definition<ApplicationConfig> {
    return this.#definition;
  }

  /** Receives the notices of the application. */
  get notices(): Notices {
    return this.#context.notices ?? NO_NOTICES;
  }

  /** Takes another definition without a restart; it must be equal in everything that the streams depend on. */
  amend(definition: Definition<ApplicationConfig>): void {
    this.#definition = definition;
  }

  /** Inbound streams that have announced their tracks or are being pulled, in order of arrival. */
  get streams(): InboundStream[] {
    return [...this.#streams.values()].filter((stream) => stream.listed);
  }

  stream(name: string): InboundStream | undefined {
    const stream = this.#streams.get(name);
    return stream?.listed ? stream : undefined;
  }

  /** True when a stream has the name, even one that has not announced its tracks. */
  hasStream(name: string): boolean {
    return this.#streams.has(name);
  }

  /** The application has ended, for good or because of a restart with new settings. */
  get closed(): boolean {
    return this.#closed;
  }

  /** True when no name is taken. */
  get isEmpty(): boolean {
    return this.#streams.size === 0;
  }

  outbound(name: string): OutboundStream | undefined {
    return this.#outputs.get(name);
  }

  /** Viewers can be served: the output stream exists and has announced its tracks. */
  isPlayable(name: string): boolean {
    return (this.#outputs.get(name)?.tracks.length ?? 0) > 0;
  }

  /** Resolves with whether a coming stream can be played, as soon as that is known, after `limitMs` at the latest. Never rejects. */
  awaitPlayable(name: string, limitMs: number): Promise<boolean> {
    return this.#arrivals.wait(name, limitMs);
  }

  /**
   * Registers a pushed stream, or gives a kept stream a new source (`SourceLoss`); throws IngestRefused. Check and registration are one
   * synchronous step.
   */
  openIngest(request: IngestRequest): IngestStream {
    this.#requireOpen(request);
    const settings = this.#settingsFor(request);
    const inherited = CHANNELS.includes(request.provider) ? this.#inherit(request, settings) : null;
    if (inherited !== null) return inherited.link(settings);
    const existing = this.#streams.get(request.streamName);
    if (existing !== undefined && this.#takesOver(existing, request)) {
      return existing.takeOver(request, settings.packetSilenceTimeoutMs ?? 0, settings);
    }
    if (existing === undefined) this.#requireRoom();
    return this.#open(request, settings, this.#standInFor(request.streamName)).link(settings);
  }

  /** Throws IngestRefused when `openIngest` would now; changes nothing. */
  checkIngest(request: IngestName): void {
    this.#requireOpen(request);
    const settings = this.#settingsFor(request);
    const existing = this.#streams.get(request.streamName);
    if (existing === undefined) this.#requireRoom();
    if (existing === undefined || !existing.source.present) return;
    if (CHANNELS.includes(request.provider) && isRelayed(existing)) return;
    const { takeOver } = this.definition.config.sourceLoss ?? {};
    if (takeOver === undefined ? settings.blockDuplicateStreamName !== false : this.#keepsSource(existing, request))
      throw duplicate(existing);
  }

  /**
   * Registers a stream that the server fetches itself: its source is permanent. If viewers had the stream from the server that the origin
   * map named, it continues for them. Throws IngestRefused.
   */
  openPulled(request: IngestRequest): InboundStream {
    const settings = this.#settingsFor(request);
    return this.#inherit(request, settings) ?? this.#open(request, settings);
  }

  /** Ends every stream. Idempotent. */
  close(reason: CloseReason): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const stream of [...this.#streams.values()]) stream.terminate(reason);
    this.#adviser?.close();
    this.meter.retire();
  }

  /**
   * Throws IngestRefused if the application has its maximum of published streams. Pulled streams do not count, because the operator
   * requested them.
   */
  #requireRoom(): void {
    const { maxStreams = 0, onFull } = this.#context;
    if (maxStreams === 0 || this.#streams.size < maxStreams) return;
    let published = 0;
    for (const stream of this.#streams.values()) if (stream.source.linked) published += 1;
    if (published < maxStreams) return;
    onFull?.(this);
    throw new IngestRefused('full', `application '${this.name}' has ${maxStreams} streams, which is all it may have`);
  }

  /** A drain does not refuse channels: the server makes them, and their owner ends them. (Scheduled channels come by `openPulled`.) */
  #requireOpen({ provider }: IngestName): void {
    if (this.#context.drain?.active === true && provider !== ProviderKind.MULTIPLEX) throw new IngestRefused('shutting-down', DRAINING);
  }

  /** The settings of the provider that asks; throws IngestRefused when there is no stream for it. */
  #settingsFor({ streamName, provider }: IngestName): ProviderSettings {
    if (this.#closed) throw new IngestRefused('no-application', `application '${this.name}' is being closed`);
    if (!isAddressableName(streamName))
      throw new IngestRefused(
        'invalid-name',
        `stream name ${showHidden(JSON.stringify(streamName))} is empty, too long, or contains / : ? # or blanks`,
      );
    const settings = this.providerSettings(provider);
    if (settings === undefined)
      throw new IngestRefused('provider-disabled', `provider '${provider}' is not enabled in application '${this.name}'`);
    this.#requireConnection({ streamName, provider }, settings);
    return settings;
  }

  /**
   * Throws IngestRefused if the provider has its maximum of connections; a source of the same stream does not count, because the new one
   * replaces it.
   */
  #requireConnection({ provider, streamName }: IngestName, { maxConnection = 0 }: ProviderSettings): void {
    if (maxConnection <= 0) return;
    let others = 0;
    for (const stream of this.#streams.values()) {
      if (stream.provider === provider && stream.source.present && stream.name !== streamName) others += 1;
    }
    if (others < maxConnection) return;
    const reason = `application '${this.name}' has ${others} streams of provider '${provider}', which is all it may have (MaxConnection)`;
    throw new IngestRefused('full', reason);
  }

  #hasRoom(kind: PublisherKind): boolean {
    const publishers: Partial<Record<string, unknown>> = this.definition.config.publishers ?? {};
    const { maxConnection = 0 } = (publishers[PUBLISHER_KEYS[kind]] ?? {}) as { readonly maxConnection?: number };
    return maxConnection <= 0 || this.meter.sessions[kind] < maxConnection;
  }

  /**
   * Gives the caller a stream that came from the server named by the origin map, because this server makes it now. Null: no such stream can
   * continue.
   */
  #inherit(request: IngestRequest, settings: ProviderSettings): InboundStream | null {
    const existing = this.#streams.get(request.streamName);
    if (existing === undefined || !isRelayed(existing) || request.fromOriginMap === true) return null;
    const isTimedAlike = keepsSourceTime(this.providerSettings(existing.provider)) === keepsSourceTime(settings);
    if (!isTimedAlike || request.steadyTime === true) {
      existing.terminate({ code: 'replaced', detail: `replaced by ${request.sourceUrl}` });
      return null;
    }
    existing.passTo(request, settings.packetSilenceTimeoutMs ?? 0);
    return existing;
  }

  /**
   * Whether an existing stream continues with a new source; throws IngestRefused if its present source keeps it. A stream that has no
   * source and cannot continue ends here.
   */
  #takesOver(existing: InboundStream, request: IngestRequest): boolean {
    if (!existing.source.present) {
      const continues = this.#continues(existing, request);
      if (!continues) existing.terminate({ code: 'replaced', detail: `replaced by ${request.sourceUrl}` });
      return continues;
    }
    if (this.definition.config.sourceLoss?.takeOver === undefined) return false;
    if (this.#keepsSource(existing, request)) throw duplicate(existing);
    return true;
  }

  /** Whether the settings protect the present source of a stream from being replaced. */
  #keepsSource(existing: InboundStream, request: IngestName): boolean {
    const { takeOver, takeOverSilenceMs = 0 } = this.definition.config.sourceLoss ?? {};
    const refused = takeOver === 'block' || (takeOver === 'afterSilence' && existing.silence < takeOverSilenceMs);
    return refused || !this.#continues(existing, request);
  }

  /** The outputs of a stream never change their kind, so passthrough and ordinary sources cannot continue each other. */
  #continues(existing: InboundStream, request: IngestName): boolean {
    return existing.source.linked && this.#isPassthrough(existing.source.request) === this.#isPassthrough(request);
  }

  /** A stream is never its own stand-in. */
  #standInFor(name: string): Pick<InboundStreamOptions<InboundStream>, 'standIn'> {
    const { standIns } = this.#context;
    const own = `stream://${this.vhost}/${this.name}/${name}`;
    const settings = this.definition.config.sourceLoss?.standIn?.find(
      ({ streamName, url }) => compileWildcard(streamName)(name) && url !== own,
    );
    return settings === undefined || standIns === undefined ? {} : { standIn: { settings, open: standIns } };
  }

  #open(
    request: IngestRequest,
    settings: ProviderSettings,
    standIn: Pick<InboundStreamOptions<InboundStream>, 'standIn'> = {},
  ): InboundStream {
    const { streamName } = request;
    const existing = this.#streams.get(streamName);
    if (existing !== undefined) {
      if (settings.blockDuplicateStreamName !== false) throw duplicate(existing);
      existing.terminate({ code: 'replaced', detail: `replaced by ${request.sourceUrl}` });
    }
    const { clock } = this.#context;
    const notices = new StreamNotices(this.#context.notices, { vhost: this.vhost, app: this.name, stream: streamName }, clock);
    const stream = new InboundStream({
      id: this.#context.nextStreamId(),
      vhost: this.vhost,
      app: this.name,
      request,
      clock,
      logger: this.#logger.limited.child({ stream: streamName }),
      queues: this.#context.queues,
      meter: new TrafficMeter(clock, this.meter),
      silenceTimeoutMs: settings.packetSilenceTimeoutMs ?? 0,
      keepMs: this.definition.config.sourceLoss?.keepStreamMs ?? 0,
      ...standIn,
      keepSourceTime: keepsSourceTime(settings),
      subtitles: subtitleTracks(this.definition.config.outputProfiles?.mediaOptions?.subtitles),
      createOutputs: (inbound, inherited = new InheritedOutputs()) =>
        this.#delayed(inbound, this.#createOutputs(inbound, notices, inherited)),
      notices,
      onEnd: (ended, reason) => {
        this.#forget(ended);
        notices.ended(reason);
      },
    });
    this.#streams.set(streamName, stream);
    return stream;
  }

  #isPassthrough({ passthrough, provider }: Pick<IngestRequest, 'provider' | 'passthrough'>): boolean {
    return passthrough === true || this.providerSettings(provider)?.passthroughOutputProfile === true;
  }

  /** The configuration of a provider; undefined when it is not enabled. */
  providerSettings(kind: ProviderKind): ProviderSettings | undefined {
    const providers: Partial<Record<string, unknown>> = this.definition.config.providers ?? {};
    return providers[PROVIDER_KEYS[kind]] as ProviderSettings | undefined;
  }

  #delayed(inbound: InboundStream, outputs: StreamOutputs): Outputs {
    const delayMs = this.definition.config.publishers?.delayBufferTimeMs ?? 0;
    if (delayMs === 0) return outputs;
    const { clock } = this.#context;
    const logger = this.#logger.limited.child({ stream: inbound.name });
    return new DelayedOutputs(outputs, { delayMs, clock, logger, onFault: (error) => inbound.fail(error) });
  }

  #createOutputs(inbound: InboundStream, notices: StreamNotices, inherited: InheritedOutputs): StreamOutputs {
    for (const stream of inherited.streams) {
      stream.fromOriginMap = isRelayed(inbound);
      stream.marks.leave();
    }
    const local = planOf(this.definition.config.outputProfiles);
    const passthrough = this.#isPassthrough(inbound.source.request);
    const logger = this.#logger.limited.child({ stream: inbound.name });
    return new StreamOutputs({
      vhost: this.vhost,
      app: this.name,
      stream: inbound.name,
      ...local,
      ...(passthrough && { profiles: [PASSTHROUGH_PROFILE] }),
      ...(this.#asks && !passthrough && { advise: (signal) => this.#advise(inbound, signal) }),
      transcoder: this.#context.transcoder,
      clock: this.#context.clock,
      logger,
      turns: this.#context.turns ?? NO_TURNS,
      newcomer: {
        client: inbound.source.request.client ?? '',
        failed: (error) => inbound.fail(error),
        refused: (reason) => inbound.judge(reason, 'no-room'),
      },
      requestSourceKeyframe: (trackId) => inbound.requestKeyframe(trackId),
      inherited,
      onDisinherited: (stream) => this.#forgetOutput(stream),
      createOutput: (name, requestKeyframe) => this.#createOutput(inbound, name, { requestKeyframe, logger, notices }),
      playlists: (stream, profile, tracks) =>
        playlistsOf(tracks, {
          inherited: this.#isPassthrough(inbound.source.request) ? inbound.playlists : [],
          rules: profile.playlists,
          publishers: this.#publishers,
          figures: (id) => stream.figures(id),
        }),
    });
  }

  /** The outputs of a stream depend on more than the configuration: on advice, or on an overlay map. */
  get #asks(): boolean {
    return this.#adviser !== null || this.#overlayMap !== null;
  }

  /** The path of the map; null where there are no overlays. */
  get #overlayMap(): string | null {
    const { enable = false, path = '' } = this.definition.config.outputProfiles?.mediaOptions?.overlays ?? {};
    return enable && path !== '' && this.#context.readOverlays !== undefined ? path : null;
  }

  /** The plan for a stream; null if the source was refused. */
  async #advise(inbound: InboundStream, signal: AbortSignal): Promise<OutputPlan | null> {
    const [plan, overlays] = await Promise.all([this.#profilesFor(inbound, signal), this.#overlaysFor(inbound, signal)]);
    return plan === null ? null : { ...plan, overlays };
  }

  /** The images of the map as it is now; none if reading takes longer than packets can be held. */
  async #overlaysFor(inbound: InboundStream, signal: AbortSignal): Promise<readonly OverlayRule[]> {
    const path = this.#overlayMap;
    const { readOverlays } = this.#context;
    if (path === null || readOverlays === undefined) return [];
    const logger = this.#logger.limited.child({ stream: inbound.name });
    const late = Promise.withResolvers<readonly OverlayRule[]>();
    const giveUp = (): void => {
      if (!inbound.closed) logger.warn({ map: path }, 'the overlay map could not be read in time: the stream has no overlays');
      late.resolve([]);
    };
    signal.addEventListener('abort', giveUp, { once: true });
    try {
      return await Promise.race([readOverlays(path, logger), late.promise]);
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  async #profilesFor(inbound: InboundStream, signal: AbortSignal): Promise<OutputPlan | null> {
    const local = planOf(this.definition.config.outputProfiles);
    if (this.#adviser === null) return local;
    const { vhost, app, name: stream, sourceType, sourceUrl, createdAt, tracks, source } = inbound;
    const { changes } = source;
    const figures = inbound.figures.bind(inbound);
    const asked = { vhost, app, stream, sourceType, sourceUrl, createdAt, tracks, figures };
    const advice = await this.#adviser.advise(asked, signal);
    if (inbound.closed) return null;
    // The source changed while the control server answered.
    if (source.changes !== changes && !signal.aborted) return this.#profilesFor(inbound, signal);
    const logger = this.#logger.limited.child({ stream });
    const plan = advice.kind === 'profiles' ? planOf(advice.outputProfiles) : local;
    if (advice.kind !== 'refused' && plan.profiles.length > 0) {
      const names = plan.profiles.map(({ name }) => name);
      if (advice.kind === 'profiles') logger.info({ profiles: names }, `output profiles of the control server: ${names.join(', ')}`);
      else logger.warn({ profiles: names }, `the output profiles of the configuration are used: ${advice.reason}`);
      return plan;
    }
    const reason = advice.kind === 'profiles' ? 'the control server gives no output profile' : advice.reason;
    logger.warn({ code: 'denied' }, `stream refused: ${reason}`);
    inbound.judge(reason, 'denied');
    return null;
  }

  #createOutput(
    inbound: InboundStream,
    name: string,
    {
      requestKeyframe,
      logger,
      notices,
    }: Pick<OutboundStream, 'requestKeyframe'> & { readonly logger: Logger; readonly notices: StreamNotices },
  ): OutboundStream | null {
    const relay = this.#outputs.get(name);
    if (relay?.fromOriginMap === true && !isRelayed(inbound)) {
      this.#streams.get(relay.sourceName)?.terminate({ code: 'replaced', detail: `stream '${inbound.name}' makes '${name}' here now` });
    }
    if (this.#outputs.has(name)) {
      logger.error({ output: name }, `output stream '${name}' exists already: the second output profile with that name is left out`);
      return null;
    }
    const stream = new OutboundStream({
      id: this.#context.nextStreamId(),
      vhost: this.vhost,
      app: this.name,
      name,
      sourceName: inbound.name,
      fromOriginMap: isRelayed(inbound),
      meter: inbound.meter,
      sessions: inbound.sessions,
      logger: logger.child({ output: name }),
      requestKeyframe,
      wake: () => inbound.wake(),
      hasRoom: (kind) => this.#hasRoom(kind),
      onTracks: () => {
        this.#arrivals.look();
        notices.ready(name);
      },
    });
    this.#outputs.set(name, stream);
    for (const enabled of this.#publishers) stream.attach(enabled);
    return stream;
  }

  #forget(stream: InboundStream): void {
    for (const output of stream.outputs) this.#forgetOutput(output);
    if (this.#streams.get(stream.name) === stream) this.#streams.delete(stream.name);
    this.#arrivals.look();
  }

  #forgetOutput(output: OutboundStream): void {
    if (this.#outputs.get(output.name) === output) this.#outputs.delete(output.name);
  }
}

function isRelayed({ source }: InboundStream): boolean {
  return source.request.fromOriginMap === true;
}

function keepsSourceTime(settings: ProviderSettings | undefined): boolean {
  return settings?.timestampMode === 'Original';
}

function duplicate({ name, sourceUrl }: InboundStream): IngestRefused {
  return new IngestRefused('duplicate-name', `stream '${name}' is already being published by ${sourceUrl}`);
}
