/**
 * Reports the state of the process to the service manager that started it: readiness, stops, reloads and a watchdog, by messages of
 * `sd_notify`.
 */
import { execFile } from 'node:child_process';
import { loadAddon } from '../native/addon.ts';
import type { LogLines } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import { plainLine } from '../util/plain-text.ts';

/** Sends one message to the socket of this name; throws, or rejects, if no process receives it. */
export type NotifySender = (socket: string, message: string) => void | Promise<void>;

/** Members of the environment that are read here. */
type Environment = Record<string, string | undefined>;

/** Options of a service manager's client. */
export interface ServiceManagerOptions {
  readonly logger: Pick<LogLines, 'warn' | 'info'>;
  /** The members for service managers are removed, so that no child process uses them. */
  readonly environment: Environment;
  readonly send?: NotifySender;
  readonly pid?: number;
}

/** Watchdog notifications are sent twice per interval, so that one late notification does no harm. */
const PINGS_IN_TIME = 2;
/** Shorter watchdog intervals make no sense, ms. */
const MIN_PING_MS = 1;
/** Limit of `setInterval`, ms. */
const MAX_PING_MS = 2_147_483_647;
const MICROSECONDS_IN_MS = 1000;
const NANOSECONDS_IN_US = 1000n;
/** Limit of a status, characters: the message must fit into a datagram. */
const MAX_STATUS = 1000;
/** Pause, ms, and number of retries while the queue of the socket is full. */
const RETRY_MS = 100;
const MAX_RETRIES = 20;
const EAGAIN = 11;

/**
 * Without `NOTIFY_SOCKET` in the environment every method does nothing. Pings of the watchdog come from a timer of the event loop: they stop
 * when that does. `close` ends them; the process may also simply end.
 */
export class ServiceManager {
  readonly #socket: string | null;
  readonly #watchdogMs: number | null;
  readonly #logger: ServiceManagerOptions['logger'];
  readonly #send: NotifySender;
  #watchdog: NodeJS.Timeout | null = null;
  /** The messages in order: a `READY=1` that overtakes `RELOADING=1` would leave a service reloading for ever. */
  #tail: Promise<void> = Promise.resolve();
  /** Messages that are not sent yet. */
  #pending = 0;
  #failed = false;

  constructor({ logger, environment, send = sender(), pid = process.pid }: ServiceManagerOptions) {
    this.#logger = logger;
    this.#send = send;
    const { NOTIFY_SOCKET: socket = '', WATCHDOG_USEC: time = '', WATCHDOG_PID: watched = '' } = environment;
    for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete environment[name];
    this.#socket = /^[/@]./.test(socket) ? socket : null;
    if (socket !== '' && this.#socket === null) {
      logger.warn({ socket }, 'the service manager is not notified: NOTIFY_SOCKET is neither a path nor an abstract name');
    }
    const us = /^\d+$/.test(time) ? Number(time) : 0;
    const isOurs = watched === '' || watched === `${pid}`;
    this.#watchdogMs =
      this.#socket === null || us === 0 || !isOurs
        ? null
        : Math.min(MAX_PING_MS, Math.max(MIN_PING_MS, us / MICROSECONDS_IN_MS / PINGS_IN_TIME));
  }

  /** Whether a service manager listens. */
  get active(): boolean {
    return this.#socket !== null;
  }

  /** The server is ready, also after a reload. From now on the watchdog runs. */
  ready(status: string): void {
    this.#tell('READY=1', statusLine(status));
    if (this.#watchdogMs === null || this.#watchdog !== null) return;
    this.#tell('WATCHDOG=1');
    this.#watchdog = setInterval(() => {
      // Pings must not pile up while the socket takes none.
      if (this.#pending === 0) this.#tell('WATCHDOG=1');
    }, this.#watchdogMs).unref();
  }

  /** One line for people, as `systemctl status` shows it. */
  status(status: string): void {
    this.#tell(statusLine(status));
  }

  /** A reload begins; `ready` ends it. */
  reloading(): void {
    this.#tell('RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / NANOSECONDS_IN_US}`);
  }

  /** The process is about to end. The watchdog continues, to notice a stop that hangs. */
  stopping(): void {
    this.#tell('STOPPING=1', statusLine('stopping'));
  }

  /** Ends the pings. Idempotent. */
  close(): void {
    if (this.#watchdog !== null) clearInterval(this.#watchdog);
    this.#watchdog = null;
  }

  #tell(...lines: string[]): void {
    const socket = this.#socket;
    if (socket === null) return;
    const failed = (error: unknown): void => {
      if (!this.#failed) this.#logger.warn({ error: messageOf(error) }, `the service manager could not be notified: ${messageOf(error)}`);
      this.#failed = true;
    };
    this.#pending += 1;
    this.#tail = this.#tail
      .then(() => this.#send(socket, lines.join('\n')))
      .catch(failed)
      .finally(() => {
        this.#pending -= 1;
      });
  }
}

function statusLine(status: string): string {
  return `STATUS=${plainLine(status).slice(0, MAX_STATUS)}`;
}

/** Sends by the addon; without it, by the program that comes with systemd. */
function sender(): NotifySender {
  const { addon } = loadAddon();
  if (addon === null) return byProgram;
  return async (socket, message) => {
    for (let retries = 0; ; retries += 1) {
      const error = addon.notifySend(socket, message);
      if (error === 0) return;
      if (error !== EAGAIN || retries >= MAX_RETRIES) throw new Error(`${socket}: ${addon.udpErrorText(error)}`);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  };
}

/** Another process sends, so the unit needs `NotifyAccess=all`. */
function byProgram(socket: string, message: string): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile(
      'systemd-notify',
      ['--no-block', ...message.split('\n')],
      { env: { ...process.env, NOTIFY_SOCKET: socket }, timeout: 5000 },
      (error) => (error === null ? resolve() : reject(error)),
    );
  });
}
