/** Times of the last use of access keys, kept over restarts. Writing each use is not worth the cost: a crash loses one minute. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import { writeFileAtomic } from './atomic-file.ts';

const FILE_NAME = 'key-uses.json';
/** Minimum time between writes, ms. */
const INTERVAL_MS = 60_000;

/** The stored data: names of keys, which are not secret, with wall clock times in ms. */
export type KeyUseTimes = ReadonlyMap<string, number>;

/** Folder and source of the times. */
export interface KeyUsesOptions {
  readonly stateFolder: string;
  readonly logger: Logger;
  /** Times of the present keys; no others are stored. */
  readonly times: () => KeyUseTimes;
}

/** Writes changed times once a minute, from `start` to `stop`. Errors are logged and have no other effect. */
export class KeyUses {
  readonly #options: KeyUsesOptions;
  readonly #file: string;
  /** Contents on disk; null: unknown. */
  #kept: string | null = null;
  /** Nothing is written before the stored times have been read, because they would be lost. */
  #isLoaded = false;
  #timer: NodeJS.Timeout | null = null;
  #saving: Promise<void> | null = null;
  #hasFailed = false;

  constructor(options: KeyUsesOptions) {
    this.#options = options;
    this.#file = join(options.stateFolder, FILE_NAME);
  }

  /** The stored times; empty if the file is missing or unreadable. Never rejects. */
  async load(): Promise<KeyUseTimes> {
    this.#isLoaded = true;
    try {
      const text = await readFile(this.#file, 'utf8');
      const entries = Object.entries(JSON.parse(text) as object).filter((entry): entry is [string, number] => Number.isFinite(entry[1]));
      this.#kept = text;
      return new Map(entries);
    } catch (error) {
      const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
      if (!isMissing)
        this.#options.logger.warn({ file: this.#file }, `the times of the last uses of access keys are lost: ${messageOf(error)}`);
      if (isMissing) this.#kept = '{}';
      return new Map();
    }
  }

  /** Idempotent. */
  start(): void {
    this.#timer ??= setInterval(() => void this.save(), INTERVAL_MS).unref();
  }

  /** Resolves when the last times are on disk, or the write has failed. Idempotent. */
  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    // A running write may have begun before the last use.
    await this.#saving;
    await this.save();
  }

  /** Writes the changes since the last time; returns a running write. Never rejects. */
  save(): Promise<void> {
    this.#saving ??= this.#save().finally(() => {
      this.#saving = null;
    });
    return this.#saving;
  }

  async #save(): Promise<void> {
    const text = JSON.stringify(Object.fromEntries(this.#options.times()));
    if (!this.#isLoaded || text === this.#kept) return;
    try {
      await writeFileAtomic(this.#file, text, 0o600);
      this.#kept = text;
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed)
        this.#options.logger.warn({ file: this.#file }, `the times of the last uses of access keys cannot be saved: ${messageOf(error)}`);
      this.#hasFailed = true;
    }
  }
}
