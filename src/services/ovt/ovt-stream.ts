/** One outbound stream for edges: each packet is serialized once, for all of them. */
import type { CloseReason } from '../../core/ingest.ts';
import { PublisherKind } from '../../core/kinds.ts';
import type { PublishableStream, PublisherStream, SessionHandle } from '../../core/publishing.ts';
import { Urgency } from '../../core/urgency.ts';
import type { Packet } from '../../media/packet.ts';
import type { SegmentMark } from '../../media/segment-mark.ts';
import { isMediaTrack, type Track } from '../../media/track.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { OvtDescription } from '../../wire/ovt/description.ts';
import { canRelay, MediaPacketizer } from '../../wire/ovt/media-packetizer.ts';
import { describeRelayedStream } from './describe-stream.ts';
import { MarkBacklog } from './mark-backlog.ts';
import type { OvtSession } from './ovt-session.ts';
import type { RelayPaths } from './relay-paths.ts';

/** Shared by all streams of a server. */
export interface EdgesSeen {
  /**
   * An edge with the same segment numbers has connected. Until then no backlog is kept: most servers never have such an edge, and it takes
   * the memory of some seconds of each stream.
   */
  numberAlike: boolean;
}

/** Gets the streams that edges can pull from this server. */
export interface EdgeDirectory {
  add(stream: PublishableStream): void;
  /** The stream has ended; called once for each added stream. */
  remove(stream: PublishableStream): void;
}

/** Dependencies of a stream. */
export interface OvtStreamOptions {
  readonly stream: PublishableStream;
  readonly paths: RelayPaths;
  /** Edges may request marks and the backlog. */
  readonly marks: boolean;
  readonly edges: EdgesSeen;
  /** Informed when edges can pull the stream from this server, and when they no longer can; null: none. */
  readonly directory: EdgeDirectory | null;
  readonly onClosed: () => void;
}

/** Created by the publisher, closed by the core, which informs all edges. A second `close` has no effect. */
export class OvtStream implements PublisherStream {
  /** Packets that could not be serialized. */
  malformed = 0;
  readonly #options: OvtStreamOptions;
  readonly #packetizer: MediaPacketizer;
  readonly #sessions = new Map<OvtSession, SessionHandle>();
  readonly #backlog = new MarkBacklog();
  /** The newest mark. */
  #mark: SegmentMark | null = null;
  readonly #waiting = new Set<() => void>();
  /** Empty until the stream has started. */
  #tracks: readonly Track[] = [];
  /** The directory has the stream. */
  #isListed = false;
  #closed = false;

  constructor(options: OvtStreamOptions) {
    this.#options = options;
    // Sessions of one stream share its number, so the same bytes serve all; a connection plays a stream once.
    this.#packetizer = new MediaPacketizer(options.stream.id);
    if (options.marks) options.stream.marks.listen((mark, packet) => this.#takeMark(mark, packet));
  }

  /** Edges that play it. */
  get sessions(): number {
    return this.#sessions.size;
  }

  get urgency(): Urgency {
    return this.#sessions.size > 0 ? Urgency.REAL_TIME : Urgency.NONE;
  }

  get tracks(): readonly Track[] {
    return this.#tracks;
  }

  /** Packets in the backlog. */
  get held(): number {
    return this.#backlog.packets.length;
  }

  /** Whether segments are announced by marks. */
  get numbered(): boolean {
    return this.#mark !== null;
  }

  /** Whether there is a description. */
  get started(): boolean {
    return !this.#closed && this.#tracks.length > 0;
  }

  /** `uncommon`: which of `UNCOMMON_CODEC_IDS` the edge accepts. */
  description(uncommon: readonly number[]): OvtDescription {
    return describeRelayedStream(this.#options.stream, this.#options.paths, uncommon);
  }

  /** Why the servers `askers` may not have the stream; null: they may. */
  loopOf(askers: readonly string[]): string | null {
    const { vhost, app, sourceName } = this.#options.stream;
    return this.#options.paths.loopOf({ vhost, app, stream: sourceName }, askers);
  }

  /** Calls back once, when the stream has started or ended. Returns a function that cancels the call. */
  whenSettled(callback: () => void): () => void {
    this.#waiting.add(callback);
    return () => this.#waiting.delete(callback);
  }

  /** Whether the application allows another edge. */
  get hasRoom(): boolean {
    return this.#options.stream.hasRoom(PublisherKind.OVT);
  }

  /** Sends later packets to the session. */
  join(session: OvtSession): void {
    const handle = this.#options.stream.openSession({
      kind: PublisherKind.OVT,
      id: session.id,
      onTerminate: (reason) => session.end(reason),
    });
    if (session.marked) {
      this.#options.edges.numberAlike = true;
      this.#sendBacklog(session, handle);
    }
    this.#sessions.set(session, handle);
  }

  /** Idempotent. */
  leave(session: OvtSession, reason: string): void {
    this.#sessions.get(session)?.close(reason);
    this.#sessions.delete(session);
  }

  onTracks(tracks: readonly Track[]): void {
    // Edges get new tracks only at their next request.
    const outdated = this.#tracks.length > 0 && !sameDescription(this.#tracks, tracks);
    this.#tracks = tracks;
    this.#list();
    if (outdated) this.#endSessions('its tracks have changed');
    this.#settle();
  }

  onPacket(packet: Packet): void {
    const isEvent = packet.track.type === 'data';
    if (this.#mark !== null && this.#options.edges.numberAlike && !isEvent && canRelay(packet.track)) this.#backlog.push(packet);
    if (this.#sessions.size === 0 || !(isEvent || canRelay(packet.track))) return;
    const bytes = this.#layOut(() => (isEvent ? this.#packetizer.packetizeEvent(packet) : this.#packetizer.packetize(packet)));
    if (bytes === null) return;
    let sent = 0;
    for (const [session, handle] of this.#sessions) {
      if (!session.send(packet, bytes)) continue;
      handle.countBytes(bytes.length);
      sent += bytes.length;
    }
    if (sent > 0) this.#options.stream.meter.countBytes(sent);
  }

  close(reason: CloseReason): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#options.stream.marks.listen(null);
    this.#backlog.clear();
    this.#endSessions(`the stream has ended: ${reason.detail}`);
    this.#settle();
    this.#list();
    this.#options.onClosed();
  }

  /** A stream of another server is registered by that server. */
  #list(): void {
    const { stream, directory } = this.#options;
    const isOurs = this.started && !stream.fromOriginMap;
    if (isOurs === this.#isListed) return;
    this.#isListed = isOurs;
    if (isOurs) directory?.add(stream);
    else directory?.remove(stream);
  }

  /** Edges get the mark before the packet. */
  #takeMark(mark: SegmentMark, packet: Packet): void {
    this.#mark = mark;
    if (this.#options.edges.numberAlike) this.#backlog.begin(mark, packet);
    for (const session of this.#sessions.keys()) if (session.marked) session.mark(mark, packet);
  }

  /** With the present tracks and events, which may be newer than the start of the segments. */
  #sendBacklog(session: OvtSession, handle: SessionHandle): void {
    const facts = this.#mark?.facts;
    if (facts === undefined) return;
    // The packet numbers of connected edges must continue, so the backlog has its own packetizer.
    const packetizer = new MediaPacketizer(this.#options.stream.id);
    let sent = 0;
    for (const { packet, mark } of this.#backlog.packets) {
      if (mark !== null) session.mark({ ...mark, facts }, packet);
      const bytes = this.#layOut(() => packetizer.packetize(packet));
      if (bytes !== null && session.send(packet, bytes)) sent += bytes.length;
    }
    if (sent === 0) return;
    handle.countBytes(sent);
    this.#options.stream.meter.countBytes(sent);
  }

  /** Null for a packet that violates its format, which is counted. */
  #layOut(write: () => Buffer | null): Buffer | null {
    try {
      return write();
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.malformed += 1;
      return null;
    }
  }

  #endSessions(detail: string): void {
    for (const session of [...this.#sessions.keys()]) session.end(detail);
  }

  #settle(): void {
    for (const callback of this.#waiting) callback();
    this.#waiting.clear();
  }
}

/** Parameter sets are sent with their frames; everything else is described once. */
function sameDescription(a: readonly Track[], b: readonly Track[]): boolean {
  const relayed = a.filter(canRelay);
  const others = b.filter(canRelay);
  return relayed.length === others.length && relayed.every((track, index) => sameTrack(track, others[index]));
}

function sameTrack(a: Track, b: Track | undefined): boolean {
  if (!isMediaTrack(a) || b === undefined || !isMediaTrack(b)) return false;
  if (a.id !== b.id || a.codec !== b.codec || a.variantName !== b.variantName) return false;
  if (a.type === 'video') return true;
  return a.config === b.config || (a.config !== null && b.config !== null && Buffer.compare(a.config, b.config) === 0);
}
