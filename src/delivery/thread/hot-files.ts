/** Second copies of media in memory files, for files with several viewers: the kernel sends them without copying. */
import { loadAddon, type NativeAddon } from '../../native/addon.ts';
import type { Span } from '../feed/messages.ts';
import type { MemoryFile } from '../http/direct-sender.ts';
import type { HotFigures } from '../thread-protocol.ts';

/** For fewer bytes, copying is cheaper. */
const MIN_MEMORY_FILE_BYTES = 32 * 1024;
/** Copying a larger file would block the thread too long. */
const MAX_MEMORY_FILE_BYTES = 8 * 1024 * 1024;
/** Each memory file takes a file descriptor. */
const MAX_MEMORY_FILES = 256;
/** Remembered files, requested once or more. */
const MAX_FILES = 4096;
/** Sweeps without a request after which a file is dropped. */
const MAX_AGE = 4;

interface HotFile {
  copy: MemoryFile | null;
  /** Sweeps since the last request. */
  age: number;
}

/** The ledger for the descriptors of memory files. */
interface Descriptors {
  takeDescriptors(count: number): boolean;
  giveDescriptors(count: number): void;
}

/**
 * A file of media gets a memory file at its second request, or at once if several viewers wait for it, so a single viewer causes no cost.
 * If there is no room, memory files without a request since the last sweep are removed; if that is not enough, media is sent by copying.
 */
export class HotFiles {
  readonly #addon: NativeAddon | null;
  readonly #limit: number;
  readonly #descriptors: Descriptors | null;
  /** By the list of spans, which is the same array for all viewers. */
  readonly #files = new Map<readonly Span[], HotFile>();
  #bytes = 0;
  #count = 0;
  #evicted = 0;
  #refused = 0;
  /** There was no room: no attempt before the next sweep. */
  #full = false;

  /** `limit`: bytes of all memory files. `descriptors`: the ledger for their descriptors; null: unlimited. */
  constructor(limit: number, addon: NativeAddon | null = loadAddon().addon, descriptors: Descriptors | null = null) {
    this.#descriptors = descriptors;
    this.#limit = limit;
    this.#addon = addon;
  }

  get figures(): HotFigures {
    return { bytes: this.#bytes, memoryFiles: this.#count, evicted: this.#evicted, refused: this.#refused };
  }

  /** The memory file with the `size` bytes of `chunks`, which are at `spans`; null if there is none. `awaited`: several viewers wait for it. */
  memoryFile(spans: readonly Span[], chunks: readonly Uint8Array[], size: number, awaited = false): MemoryFile | null {
    if (this.#addon === null || size < MIN_MEMORY_FILE_BYTES || size > MAX_MEMORY_FILE_BYTES) return null;
    let file = this.#files.get(spans);
    if (file === undefined) {
      file = { copy: null, age: 0 };
      if (this.#files.size >= MAX_FILES) return null;
      this.#files.set(spans, file);
      if (!awaited) return null;
    }
    file.age = 0;
    file.copy ??= this.#open(this.#addon, chunks, size);
    return file.copy;
  }

  /** Call regularly: removes memory files without recent requests. */
  sweep(): void {
    this.#full = false;
    for (const [spans, file] of this.#files) {
      file.age += 1;
      if (file.age > MAX_AGE) this.#forget(spans, file);
    }
  }

  /** Idempotent. */
  close(): void {
    for (const [spans, file] of this.#files) this.#forget(spans, file);
  }

  #open(addon: NativeAddon, chunks: readonly Uint8Array[], size: number): MemoryFile | null {
    const hasRoom = !this.#full && this.#makeRoom(size) && this.#descriptors?.takeDescriptors(1) !== false;
    const handle = hasRoom ? addon.memoryFileOpen(chunks) : null;
    if (hasRoom && handle === null) this.#descriptors?.giveDescriptors(1);
    if (handle === null) {
      this.#full = true;
      this.#refused += 1;
      return null;
    }
    this.#bytes += size;
    this.#count += 1;
    return { handle, length: size };
  }

  #makeRoom(size: number): boolean {
    const fits = (): boolean => this.#count < MAX_MEMORY_FILES && this.#bytes + size <= this.#limit;
    if (fits()) return true;
    for (const [spans, file] of this.#files) {
      if (file.copy === null || file.age === 0) continue;
      this.#evicted += 1;
      this.#forget(spans, file);
      if (fits()) return true;
    }
    return false;
  }

  #forget(spans: readonly Span[], file: HotFile): void {
    this.#files.delete(spans);
    if (file.copy === null) return;
    this.#bytes -= file.copy.length;
    this.#count -= 1;
    this.#addon?.memoryFileClose(file.copy.handle);
    this.#descriptors?.giveDescriptors(1);
  }
}
