import { type ChildProcess, spawn } from 'node:child_process';
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { type Duplex, PassThrough } from 'node:stream';
import { entryFile } from '../util/entry-file.ts';
import { messageOf } from '../util/message-of.ts';
import { FrameWriter } from './frame-writer.ts';
import type { HelloMessage } from './messages.ts';
import { type FrameHeader, FrameReader, FrameType } from './process-frames.ts';
import { environmentOf, sandboxed } from './sandbox.ts';

/** The program of transcoder processes. */
export const CHILD_ENTRY = entryFile('./process/child', import.meta.url);

/** The program of processes that read files. */
export const FILE_CHILD_ENTRY = entryFile('./process/file-child', import.meta.url);

const SOCKET_DESCRIPTOR = 3;
/** Threads for codecs; each waits in one operation at a time. */
const POOL_THREADS = '32';
/** SVT-AV1 has a log of its own. */
const SVT_ERRORS_ONLY = '1';
const HELLO_DEADLINE_MS = 30_000;
/** A process reports every second; after this silence it counts as hung. */
export const SILENCE_DEADLINE_MS = 15_000;
/**
 * Interval of the rounds in which the server watches processes and jobs. Their deadlines count rounds instead of time: while the server
 * itself stands still, what they send waits in the sockets.
 */
export const WATCH_INTERVAL_MS = 1000;
/** Limit of a process's kept output. */
const MAX_LAST_WORDS = 2000;

/** How a process is run and watched. */
export interface ProcessOptions {
  /** The program. */
  readonly entry: URL;
  readonly silenceDeadlineMs: number;
  /** A descriptor for the standard input of the process; the caller keeps it. Absent: none. */
  readonly input?: number;
  /** Bytes of data that it may have, where the sandbox can hold it to that. Absent: no limit. */
  readonly memory?: number;
}

/** Owner of a transcoder process. */
export interface ProcessOwner {
  onHello(hello: HelloMessage): void;
  /** `header` is reused; `payload` may be kept. */
  onFrame(header: FrameHeader, payload: Buffer): void;
  /** The process has ended, for whatever reason. Called once. */
  onExit(reason: string): void;
}

/** One transcoder process as the server sees it. */
export class TranscoderProcess {
  readonly #child: ChildProcess;
  readonly #socket: Duplex;
  readonly #writer: FrameWriter;
  readonly #owner: ProcessOwner;
  readonly #watch: NodeJS.Timeout;
  readonly #silenceDeadlineMs: number;
  /** Rounds of the watch since the process was heard. */
  #silentRounds = 0;
  #greeted = false;
  #reason = '';
  #lastWords = '';
  #exited = false;

  constructor({ entry, silenceDeadlineMs, input, memory }: ProcessOptions, owner: ProcessOwner) {
    this.#silenceDeadlineMs = silenceDeadlineMs;
    this.#owner = owner;
    const compiled = getCompileCacheDir() ?? null;
    const { file, args } = sandboxed(entry, compiled, memory ?? null);
    this.#child = spawn(file, args, {
      stdio: [input ?? 'ignore', 'ignore', 'pipe', 'pipe'],
      env: {
        ...environmentOf(process.env),
        ...{ UV_THREADPOOL_SIZE: POOL_THREADS, SVT_LOG: SVT_ERRORS_ONLY },
        // Node.js adds the folder of its version again.
        ...(compiled !== null && { NODE_COMPILE_CACHE: dirname(compiled) }),
      },
    });
    // Without free descriptors there is no socket; the error event reports it.
    const stdio = this.#child.stdio as ChildProcess['stdio'] | undefined;
    this.#socket = (stdio?.[SOCKET_DESCRIPTOR] as Duplex | null | undefined) ?? new PassThrough();
    this.#writer = new FrameWriter(this.#socket);
    const reader = new FrameReader((header, payload) => this.#onFrame(header, payload));
    this.#socket.on('data', (chunk: Buffer) => this.#receive(reader, chunk));
    // The exit of the process has the reason; data in flight is lost.
    this.#socket.on('error', () => {});
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#lastWords = (this.#lastWords + chunk.toString()).slice(-MAX_LAST_WORDS);
    });
    this.#child.on('error', (error) => this.#onExit(error.message));
    this.#child.on('exit', (code, signal) => this.#onExit(signal ?? `exit code ${code}`));
    this.#watch = setInterval(() => this.#look(), WATCH_INTERVAL_MS).unref();
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** It can take jobs. */
  get greeted(): boolean {
    return this.#greeted;
  }

  /** Rounds of the watch since it was heard. */
  get silentRounds(): number {
    return this.#silentRounds;
  }

  get writer(): FrameWriter {
    return this.#writer;
  }

  /** Ends the process at once: nothing gentler is sure to work. Idempotent. */
  kill(reason: string): void {
    if (this.#exited || this.#reason !== '') return;
    this.#reason = reason;
    this.#child.kill('SIGKILL');
  }

  #receive(reader: FrameReader, chunk: Buffer): void {
    if (this.#exited) return;
    this.#silentRounds = 0;
    try {
      reader.push(chunk);
    } catch (error) {
      this.kill(`it sent what cannot be read: ${messageOf(error)}`);
    }
  }

  #onFrame(header: FrameHeader, payload: Buffer): void {
    if (header.type !== FrameType.HELLO) {
      this.#owner.onFrame(header, payload);
      return;
    }
    this.#greeted = true;
    this.#owner.onHello(JSON.parse(payload.toString()) as HelloMessage);
  }

  #look(): void {
    this.#silentRounds += 1;
    const silent = this.#silentRounds * WATCH_INTERVAL_MS;
    if (silent > (this.#greeted ? this.#silenceDeadlineMs : HELLO_DEADLINE_MS)) this.kill(`it was silent for ${silent / 1000} s`);
  }

  #onExit(how: string): void {
    if (this.#exited) return;
    this.#exited = true;
    clearInterval(this.#watch);
    this.#socket.destroy();
    const words = this.#lastWords.trim();
    if (this.#reason !== '') this.#owner.onExit(this.#reason);
    else this.#owner.onExit(words === '' ? how : `${how}: ${words}`);
  }
}
