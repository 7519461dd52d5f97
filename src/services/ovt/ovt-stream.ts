/** One outbound stream served to edges: each packet is laid out once, for all of them. */
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
import { describeStream } from './describe-stream.ts';
import { MarkBacklog } from './mark-backlog.ts';
import type { OvtSession } from './ovt-session.ts';
import type { RelayPaths } from './relay-paths.ts';

/** One for all streams of a server. */
export interface EdgesSeen {
  /** An edge that numbers alike has come. Until then nothing is held for others: most servers never see one, and it takes seconds of media for each stream. */
  numberAlike: boolean;
}

/** Told which streams edges can fetch from here, as soon as they can. */
export interface EdgeDirectory {
  add(stream: PublishableStream): void;
  /** The stream is no more; called once for each that was added. */
  remove(stream: PublishableStream): void;
}

/** Dependencies of a stream. */
export interface OvtStreamOptions {
  readonly stream: PublishableStream;
  readonly paths: RelayPaths;
  /** Edges may ask where segments begin, and for what has come since. */
  readonly marks: boolean;
  readonly edges: EdgesSeen;
  /** Told when edges can fetch it from here, and when they no longer can; null: nobody is. */
  readonly directory: EdgeDirectory | null;
  readonly onClosed: () => void;
}

/** Made by the publisher, closed by the core, which tells all edges that play it. A second `close` has no effect. */
export class OvtStream implements PublisherStream {
  /** Packets that could not be laid out. */
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
  /** The directory has it. */
  #isListed = false;
  #closed = false;

  constructor(options: OvtStreamOptions) {
    this.#options = options;
    // Sessions of one stream share its number, so that the same bytes serve all; a connection plays a stream once.
    this.#packetizer = new MediaPacketizer(options.stream.id);
    if (options.marks) options.stream.marks.listen((mark, packet) => this.#takeMark(mark, packet));
  }

  /** Edges that play it now. */
  get sessions(): number {
    return this.#sessions.size;
  }

  get urgency(): Urgency {
    return this.#sessions.size > 0 ? Urgency.REAL_TIME : Urgency.NONE;
  }

  get tracks(): readonly Track[] {
    return this.#tracks;
  }

  /** Packets that are held for edges which come later. */
  get held(): number {
    return this.#backlog.packets.length;
  }

  /** It is told where segments begin. */
  get numbered(): boolean {
    return this.#mark !== null;
  }

  /** There is something to describe. */
  get started(): boolean {
    return !this.#closed && this.#tracks.length > 0;
  }

  /** `uncommon`: which of `UNCOMMON_CODEC_IDS` the edge takes. */
  description(uncommon: readonly number[]): OvtDescription {
    return describeStream(this.#options.stream, this.#options.paths, uncommon);
  }

  /** Why the servers `askers` may not have it; null: they may. */
  circleOf(askers: readonly string[]): string | null {
    const { vhost, app, sourceName } = this.#options.stream;
    return this.#options.paths.circleOf({ vhost, app, stream: sourceName }, askers);
  }

  /** Calls back once, when the stream has started or ended. Returns how to call that off. */
  whenSettled(callback: () => void): () => void {
    this.#waiting.add(callback);
    return () => this.#waiting.delete(callback);
  }

  /** The application may have another edge. */
  get hasRoom(): boolean {
    return this.#options.stream.hasRoom(PublisherKind.OVT);
  }

  /** Sends the session what comes from now on. */
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
    // Edges are told of tracks only when they ask.
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

  /** What another server has is that server's to register. */
  #list(): void {
    const { stream, directory } = this.#options;
    const isOurs = this.started && !stream.fromOriginMap;
    if (isOurs === this.#isListed) return;
    this.#isListed = isOurs;
    if (isOurs) directory?.add(stream);
    else directory?.remove(stream);
  }

  /** Edges are told before they get the packet. */
  #takeMark(mark: SegmentMark, packet: Packet): void {
    this.#mark = mark;
    if (this.#options.edges.numberAlike) this.#backlog.begin(mark, packet);
    for (const session of this.#sessions.keys()) if (session.marked) session.mark(mark, packet);
  }

  /** With what is known of the stream now: it may not have been when the segments began. */
  #sendBacklog(session: OvtSession, handle: SessionHandle): void {
    const facts = this.#mark?.facts;
    if (facts === undefined) return;
    // Numbers of packets go on for those who have been there.
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

  /** Null for what breaks its format, which is counted. */
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

/** Parameter sets of frames travel with them; everything else is told once. */
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
