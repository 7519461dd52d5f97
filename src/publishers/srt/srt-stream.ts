/** One outbound stream served over SRT: a transport stream for each playlist that somebody watches. */

import { TransportOutput } from '../../containers/mpegts/transport-output.ts';
import type { CloseReason } from '../../core/ingest.ts';
import { PublisherKind } from '../../core/kinds.ts';
import type { PublishableStream, PublisherStream } from '../../core/publishing.ts';
import type { Packet } from '../../media/packet.ts';
import type { Track } from '../../media/track.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { renditionTracks } from './rendition-tracks.ts';
import type { SrtViewer } from './srt-viewer.ts';

interface Channel {
  readonly output: TransportOutput;
  readonly viewers: Set<SrtViewer>;
}

export class SrtStream implements PublisherStream {
  readonly #stream: PublishableStream;
  readonly #onClosed: () => void;
  /** By playlist file name; only those that are watched. */
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

  /** True when the playlist exists and something of it can be carried. */
  serves(fileName: string): boolean {
    return !this.#closed && this.#tracksOf(fileName) !== null;
  }

  /** Adds a viewer; one whose playlist has gone meanwhile is closed. */
  join(fileName: string, viewer: SrtViewer): void {
    const channel = this.#channels.get(fileName) ?? this.#open(fileName);
    if (channel === null) {
      viewer.close(`playlist '${fileName}' is gone`);
      return;
    }
    channel.viewers.add(viewer);
    this.#stream.meter.connect(PublisherKind.SRT);
  }

  /** Idempotent. */
  leave(fileName: string, viewer: SrtViewer): void {
    const channel = this.#channels.get(fileName);
    if (channel?.viewers.delete(viewer) !== true) return;
    this.#stream.meter.disconnect(PublisherKind.SRT);
    if (channel.viewers.size === 0) this.#channels.delete(fileName);
  }

  onTracks(tracks: readonly Track[]): void {
    this.#tracks = tracks;
    for (const [fileName, { output, viewers }] of this.#channels) {
      const chosen = this.#tracksOf(fileName);
      if (chosen !== null) output.setTracks(chosen);
      else for (const viewer of [...viewers]) viewer.close(`playlist '${fileName}' is gone`);
    }
  }

  onPacket(packet: Packet): void {
    for (const { output } of this.#channels.values()) output.push(packet);
  }

  onDrained(): void {
    for (const { output } of this.#channels.values()) output.flush();
  }

  close(reason: CloseReason): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const { output, viewers } of [...this.#channels.values()]) {
      output.flush();
      for (const viewer of [...viewers]) viewer.close(`the stream has ended: ${reason.detail}`);
    }
    this.#channels.clear();
    this.#onClosed();
  }

  #tracksOf(fileName: string): readonly Track[] | null {
    const playlist = this.#stream.playlists.find((candidate) => candidate.fileName === fileName);
    return playlist === undefined ? null : renditionTracks(playlist, this.#tracks);
  }

  #open(fileName: string): Channel | null {
    const tracks = this.#tracksOf(fileName);
    if (tracks === null) return null;
    const viewers = new Set<SrtViewer>();
    const { meter } = this.#stream;
    try {
      const output = new TransportOutput(tracks, {
        onPayload: (payload) => {
          for (const viewer of viewers) {
            const sent = viewer.send(payload);
            if (sent > 0) meter.countBytes(sent);
          }
        },
        onEntryPoint: () => {
          for (const viewer of viewers) viewer.enter();
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
