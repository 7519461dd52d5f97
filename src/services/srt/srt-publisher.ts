/** Serves outbound streams to SRT players that call. */
import { type Gatekeeper, OPEN_GATE } from '../../access/access-check.ts';
import { canCarry } from '../../containers/mpegts/stream-type.ts';
import { defaultPlaylist } from '../../core/default-playlist.ts';
import { DRAINING } from '../../core/drain.ts';
import { PublisherKind } from '../../core/kinds.ts';
import type { WantedStream } from '../../core/origins.ts';
import type { Playlist } from '../../core/playlist.ts';
import { NO_ROOM, type PublishableStream, type Publisher } from '../../core/publishing.ts';
import { addressOf, streamKey } from '../../core/stream-address.ts';
import type { StreamFinder } from '../../core/stream-demand.ts';
import { UNKNOWN_STREAM } from '../../core/unknown-stream.ts';
import { AudioCodec } from '../../media/codec.ts';
import type { Track } from '../../media/track.ts';
import { LinkReporter, type LinkStatistics } from '../../transport/srt/link-reporter.ts';
import { SrtListener, type SrtListenerConfig } from '../../transport/srt/listener.ts';
import type { SrtUdpPort } from '../../transport/srt/udp-port.ts';
import { hostPort, plainAddress } from '../../util/client-address.ts';
import type { Clock } from '../../util/clock.ts';
import { guarded } from '../../util/guarded.ts';
import type { Logger } from '../../util/logger.ts';
import { logRefused } from '../../util/refused.ts';
import type { DatagramPeer } from '../../wire/srt/link.ts';
import type { SrtCall, SrtSession } from '../../wire/srt/multiplexer.ts';
import { describeRejection, RejectionCode } from '../../wire/srt/rejection.ts';
import type { SrtTarget } from '../../wire/srt/stream-id.ts';
import { admitCaller } from './srt-admission.ts';
import { SrtStream } from './srt-stream.ts';
import { SrtViewer } from './srt-viewer.ts';

const DEFAULT_PLAYLIST_NAME = 'srt_default';
const DEFAULT_PLAYLIST_FILE = 'playlist';
/** Default maximum of connected players of one port. */
export const MAX_SRT_VIEWERS = 5000;

/** Dependencies of listening beyond the listener's own configuration. */
export interface SrtEgressOptions extends SrtListenerConfig {
  /** Maximum of connected players of one port. */
  readonly maxConnections?: number;
}

interface SrtPlayRequest {
  readonly call: SrtCall;
  readonly target: SrtTarget;
  readonly port: SrtUdpPort;
  readonly virtualHostFor: SrtEgressOptions['virtualHostFor'];
}

/** Registered in the core, which closes the streams. The server calls `listen` for each address, and `stop`. */
export class SrtPublisher implements Publisher {
  readonly kind = PublisherKind.SRT;
  /** Callers refused because of their request. */
  refused = 0;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #finder: StreamFinder | null;
  readonly #access: Gatekeeper;
  /** By virtual host, application and stream. */
  readonly #streams = new Map<string, SrtStream>();
  readonly #listeners: SrtListener[] = [];
  readonly #reporter: LinkReporter;
  #lastSession = 0;

  /** `finder` looks up missing streams; absent: they are not looked up. `access`: access control; absent: open. */
  constructor(options: {
    readonly logger: Logger;
    readonly clock: Clock;
    readonly finder?: StreamFinder;
    readonly access?: Gatekeeper;
  }) {
    this.#logger = options.logger;
    this.#clock = options.clock;
    this.#reporter = new LinkReporter(options);
    this.#finder = options.finder ?? null;
    this.#access = options.access ?? OPEN_GATE;
  }

  /** The listening ports. */
  get ports(): readonly number[] {
    return this.#listeners.flatMap(({ ports }) => ports.map(({ port }) => port));
  }

  /** Present figures of every viewer's connection, for metrics. */
  statistics(): LinkStatistics[] {
    return this.#reporter.statistics();
  }

  /** The first video and the first audio that a transport stream can carry; AAC, which every receiver knows, before other audio. */
  defaultPlaylist(tracks: readonly Track[]): Playlist | null {
    return defaultPlaylist(
      tracks,
      { canServe: canCarry, isCommon: ({ type, codec }) => type === 'video' || codec === AudioCodec.AAC },
      {
        name: DEFAULT_PLAYLIST_NAME,
        fileName: DEFAULT_PLAYLIST_FILE,
        options: { webrtcAutoAbr: true, hlsChunklistPathDepth: -1, enableTsPackaging: false, enableSubtitles: true },
      },
    );
  }

  attach(stream: PublishableStream): SrtStream {
    const key = streamKey(addressOf(stream));
    const served = new SrtStream(stream, () => {
      if (this.#streams.get(key) === served) this.#streams.delete(key);
    });
    this.#streams.set(key, served);
    return served;
  }

  /** Listens on the ports of one address. Rejects when one cannot be bound. */
  async listen(options: SrtEgressOptions): Promise<void> {
    const listener = new SrtListener({
      ...options,
      mode: 'request',
      clock: this.#clock,
      maxConnections: options.maxConnections ?? MAX_SRT_VIEWERS,
      open: (call, target, port) => this.#admit({ call, target, port, virtualHostFor: options.virtualHostFor }),
      onRefused: (peer, code, why) => this.#refuse(peer, describeRejection(code), why ?? describeRejection(code)),
      onError: (error) => this.#logger.error({ err: error }, 'SRT listener failed'),
      onFault: (error) => this.#logger.limited.error({ err: error }, 'SRT viewer failed inside the server'),
    });
    await listener.start();
    this.#listeners.push(listener);
    this.#reporter.start();
    this.#logger.info({ host: options.host, ports: listener.ports.map(({ port }) => port) }, 'SRT publisher listening');
  }

  /** Stops listening; viewers are notified. Idempotent. */
  async stop(): Promise<void> {
    this.#reporter.stop();
    await Promise.all(this.#listeners.splice(0).map((listener) => listener.stop('the SRT publisher stops')));
  }

  #admit(request: SrtPlayRequest): SrtSession | RejectionCode {
    const { call, target, port } = request;
    const session = admitCaller(this.#access, {
      ...{ direction: 'outgoing', call, target, now: () => port.now() },
      open: (admitted) => this.#open({ ...request, target: admitted }),
      onFault: (error) => this.#logger.limited.error({ err: error }, 'SRT viewer failed inside the server'),
    });
    if (session === RejectionCode.UNAUTHORIZED) this.refused += 1;
    return session;
  }

  #open(request: SrtPlayRequest): SrtViewer | RejectionCode {
    const { call, target, port, virtualHostFor } = request;
    if (this.#finder?.draining === true) {
      this.#refuse(call.peer, 'draining', DRAINING, { app: target.app, stream: target.stream });
      return RejectionCode.UNAVAILABLE;
    }
    const vhost = virtualHostFor(target.host);
    const fileName = target.playlist ?? DEFAULT_PLAYLIST_FILE;
    const key = streamKey({ vhost: vhost ?? '', app: target.app, stream: target.stream });
    const stream = this.#streams.get(key);
    const wanted =
      vhost === null
        ? null
        : { vhost, app: target.app, stream: target.stream, query: queryOf(target.url), client: plainAddress(call.peer.address) };
    const fetched = wanted === null || stream !== undefined ? null : (this.#finder?.find(wanted) ?? null);
    if (wanted !== null && stream === undefined && fetched === null && this.#finder?.isUnknown?.(wanted) === true) {
      this.#refuse(call.peer, 'map-away', UNKNOWN_STREAM, { app: target.app, stream: target.stream });
      return RejectionCode.UNAVAILABLE;
    }
    if (vhost === null || (fetched === null && stream?.serves(fileName) !== true)) {
      const name = `${target.host}/${target.app}/${target.stream}`;
      const isServed = vhost !== null && stream !== undefined;
      const lack = `${name} has no playlist '${fileName}' that can be played over SRT`;
      const { app } = target;
      const reason = isServed ? lack : `there is no stream ${name}, or its application has no SRT publisher`;
      this.#refuse(call.peer, isServed ? 'no-playlist' : 'no-stream', reason, { app, stream: target.stream });
      return RejectionCode.NOT_FOUND;
    }
    if (stream?.hasRoom === false) {
      this.#refuse(call.peer, 'full', NO_ROOM, { app: target.app, stream: target.stream });
      return RejectionCode.RESOURCE;
    }
    this.#lastSession += 1;
    let hasLeft = false;
    const session = String(this.#lastSession);
    const labels = { session, peer: hostPort(call.peer.address, call.peer.port), vhost, app: target.app, stream: target.stream };
    return new SrtViewer({
      call,
      labels,
      logger: this.#logger.limited.child(labels),
      now: () => port.now(),
      onJoined: (viewer) => {
        this.#reporter.add(viewer);
        if (fetched === null) stream?.join(fileName, viewer);
        else {
          const join = guarded(this.#logger, 'the beginning of an SRT viewer', () => {
            if (!hasLeft && wanted !== null) this.#joinFetched(wanted, fileName, viewer);
          });
          fetched.then(join, join);
        }
      },
      onLeft: (viewer, reason) => {
        hasLeft = true;
        this.#reporter.delete(viewer);
        this.#streams.get(key)?.leave(fileName, viewer, reason);
      },
    });
  }

  /** The handshake could not wait for the origin: if the stream has not come, the viewer is disconnected now. */
  #joinFetched(wanted: WantedStream, fileName: string, viewer: SrtViewer): void {
    const stream = this.#streams.get(streamKey(wanted));
    if (stream?.serves(fileName) === true) stream.join(fileName, viewer);
    else if (stream === undefined && this.#finder?.isUnknown?.(wanted) === true) viewer.close(UNKNOWN_STREAM);
    else viewer.close(`no origin has the stream, or it has no playlist '${fileName}' that can be played over SRT`);
  }

  #refuse(peer: DatagramPeer, code: string, reason: string, place: object = {}): void {
    this.refused += 1;
    logRefused(this.#logger, 'viewer', { code, reason, peer: hostPort(peer.address, peer.port), ...place });
  }
}

function queryOf(url: string): string {
  const start = url.indexOf('?');
  return start < 0 ? '' : url.slice(start + 1);
}
