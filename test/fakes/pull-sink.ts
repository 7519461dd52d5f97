/** A pull sink that records everything, and the other arguments for opening a pulled stream. */
import { setTimeout as delay } from 'node:timers/promises';
import type { CloseReason, SourceEvent, SourcePacket, SourceTrack } from '../../src/core/ingest.ts';
import type { Playlist } from '../../src/core/playlist.ts';
import type { PullSink } from '../../src/core/pull.ts';

export class RecordingSink implements PullSink {
  /** Every `setTracks` call. */
  readonly tracks: (readonly SourceTrack[])[] = [];
  /** Playlists of the last announcement. */
  playlists: readonly Playlist[] = [];
  readonly packets: SourcePacket[] = [];
  readonly events: SourceEvent[] = [];
  bytes = 0;
  /** Calls of `heard`. */
  signs = 0;
  reason: CloseReason | null = null;

  setTracks(tracks: readonly SourceTrack[], playlists: readonly Playlist[] = []): void {
    this.tracks.push(tracks);
    this.playlists = playlists;
  }

  push(packet: SourcePacket): void {
    this.packets.push(packet);
  }

  pushEvent(event: SourceEvent): boolean {
    this.events.push(event);
    return true;
  }

  countBytes(bytes: number): void {
    this.bytes += bytes;
  }

  heard(): void {
    this.signs += 1;
  }

  close(reason: CloseReason): void {
    this.reason = reason;
  }

  /** The test's own timeout is the deadline. */
  async until(predicate: (sink: this) => boolean): Promise<void> {
    while (!predicate(this)) await delay(5);
  }
}
