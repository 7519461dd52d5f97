/** One outbound stream served over SRT: a transport stream for each watched playlist. */

import { TransportOutput } from '../../containers/mpegts/transport-output.ts';
import type { CloseReason } from '../../core/ingest.ts';
import { PublisherKind } from '../../core/kinds.ts';
import { NO_ROOM, type PublishableStream, type PublisherStream, type SessionHandle } from '../../core/publishing.ts';
import { Urgency } from '../../core/urgency.ts';
import type { Packet } from '../../media/packet.ts';
import type { Track } from '../../media/track.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { renditionTracks } from './rendition-tracks.ts';
import type { SrtViewer } from './srt-viewer.ts';

interface Channel {
  readonly output: TransportOutput;
  readonly viewers: Map<SrtViewer, SessionHandle>;
}

/** Made by the publisher, closed by the core, which disconnects all viewers. A second `close` has no effect. */
export class SrtStream implements PublisherStream {
  readonly #stream: PublishableStream;
  readonly #onClosed: () => void;
  /** By playlist file name; only watched playlists. */
  readonly #channels = new Map<string, Channel>();
  #tracks: readonly Track[] = [];
  #closed = false;

  constructor(stream: PublishableStream, onClosed: () => void) {
    this.#stream = stream;
    this.#onClosed = onClosed;
  }

  /** Players connected now. */
  get viewers(): number {
    let count = 0;
    for (const { viewers } of this.#channels.values()) count += viewers.size;
    return count;
  }

  get urgency(): Urgency {
    return this.#channels.size > 0 ? Urgency.REAL_TIME : Urgency.NONE;
  }

  /** True if the playlist exists and a transport stream can carry a track of it. */
  serves(fileName: string): boolean {
    return !this.#closed && this.#tracksOf(fileName) !== null;
  }

  /** The application may have another viewer over SRT. */
  get hasRoom(): boolean {
    return this.#stream.hasRoom(PublisherKind.SRT);
  }

  /** Adds a viewer; if its playlist has gone meanwhile, it is closed. */
  join(fileName: string, viewer: SrtViewer): void {
    if (!this.hasRoom) {
      viewer.close(NO_ROOM);
      return;
    }
    const channel = this.#channels.get(fileName) ?? this.#open(fileName);
    if (channel === null) {
      viewer.close(`playlist '${fileName}' is gone`);
      return;
    }
    const session = this.#stream.openSession({
      kind: PublisherKind.SRT,
      id: viewer.labels.session,
      client: viewer.labels.peer,
      onTerminate: (reason) => viewer.close(reason),
    });
    channel.viewers.set(viewer, session);
  }

  /** Idempotent. */
  leave(fileName: string, viewer: SrtViewer, reason: string): void {
    const channel = this.#channels.get(fileName);
    const session = channel?.viewers.get(viewer);
    if (channel === undefined || session === undefined) return;
    channel.viewers.delete(viewer);
    session.close(reason);
    if (channel.viewers.size === 0) this.#channels.delete(fileName);
  }

  onTracks(tracks: readonly Track[]): void {
    this.#tracks = tracks;
    for (const [fileName, { output, viewers }] of this.#channels) {
      const chosen = this.#tracksOf(fileName);
      if (chosen !== null) output.setTracks(chosen);
      else for (const viewer of [...viewers.keys()]) viewer.close(`playlist '${fileName}' is gone`);
    }
  }

  onPacket(packet: Packet): void {
    for (const { output } of this.#channels.values()) output.push(packet);
  }

  onDrained(): void {
    for (const channel of this.#channels.values()) this.#flush(channel);
  }

  close(reason: CloseReason): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const channel of [...this.#channels.values()]) {
      this.#flush(channel);
      for (const viewer of [...channel.viewers.keys()]) viewer.close(`the stream has ended: ${reason.detail}`);
    }
    this.#channels.clear();
    this.#onClosed();
  }

  /** Sends the waiting payloads, and counts once for all payloads of the turn. */
  #flush({ output, viewers }: Channel): void {
    output.flush();
    let sum = 0;
    for (const [viewer, session] of viewers) {
      const bytes = viewer.takeBytes();
      if (bytes === 0) continue;
      session.countBytes(bytes);
      sum += bytes;
    }
    if (sum > 0) this.#stream.meter.countBytes(sum);
  }

  #tracksOf(fileName: string): readonly Track[] | null {
    const playlist = this.#stream.playlists.find((candidate) => candidate.fileName === fileName);
    return playlist === undefined ? null : renditionTracks(playlist, this.#tracks);
  }

  #open(fileName: string): Channel | null {
    const tracks = this.#tracksOf(fileName);
    if (tracks === null) return null;
    const viewers = new Map<SrtViewer, SessionHandle>();
    try {
      const output = new TransportOutput(tracks, {
        onPayload: (payload) => {
          for (const viewer of viewers.keys()) viewer.send(payload);
        },
        onEntryPoint: () => {
          for (const viewer of viewers.keys()) viewer.enter();
        },
      });
      const channel = { output, viewers };
      this.#channels.set(fileName, channel);
      return channel;
    } catch (error) {
      if (error instanceof ProtocolError) return null;
      throw error;
    }
  }
}
