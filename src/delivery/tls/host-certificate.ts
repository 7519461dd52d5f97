/** The certificate of one host, kept equal to its files: a renewal replaces them without notice. */
import type { TlsConfig } from '../../config/index.ts';
import type { Conditions } from '../../util/conditions.ts';
import { FileWatch, type FileWatchTimes } from '../../util/file-watch.ts';
import type { Logger } from '../../util/logger.ts';
import { messageOf } from '../../util/message-of.ts';
import { type CertificatePair, filesOf, readCertificate } from './certificate-files.ts';

/** Names the certificate in logs and conditions, and follows its files. */
export interface HostCertificateOptions {
  readonly tls: TlsConfig;
  /** For the log: `certificate of virtual host 'x'`. */
  readonly what: string;
  readonly fields?: object;
  /** Without names, for the public: `a virtual host`. */
  readonly whoseFault: string;
  readonly logger: Logger;
  readonly conditions?: Conditions;
  readonly times?: FileWatchTimes;
  /** The files have changed, or are read for the first time; the callback should call `renew`. */
  readonly onFiles: () => Promise<void>;
}

/** Follows its files until `close`. */
export class HostCertificate {
  /** Null before the first valid one. */
  pair: CertificatePair | null = null;
  readonly #options: HostCertificateOptions;
  readonly #watch: FileWatch;
  /** The last logged error of the files; null while they are valid. */
  #fault: string | null = null;
  /** An earlier read must not replace a later one. */
  #tail: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(options: HostCertificateOptions) {
    this.#options = options;
    const { tls, logger, times, onFiles } = options;
    this.#watch = new FileWatch({ paths: filesOf(tls), logger, changed: onFiles, ...(times !== undefined && { times }) });
  }

  /** Present contents of the files. Rejects if they are unusable. */
  async read(): Promise<CertificatePair> {
    try {
      return await readCertificate(this.#options.tls);
    } catch (error) {
      throw new Error(`${this.#options.what}: ${messageOf(error)}`, { cause: error });
    }
  }

  /** Reads the files and uses their certificate. Rejects, and keeps the previous one, if it is invalid. */
  reload(): Promise<CertificatePair> {
    return this.#inTurn(async () => {
      const pair = await this.read();
      this.take(pair);
      return pair;
    });
  }

  /** Uses `pair` from now on, unless closed. Returns whether it is a different one. */
  take(pair: CertificatePair): boolean {
    if (this.#closed) return false;
    const { what, fields, logger, conditions } = this.#options;
    this.#fault = null;
    conditions?.clear(what);
    if (pair.cert === this.pair?.cert && pair.key === this.pair.key) return false;
    this.pair = pair;
    const validTo = pair.validTo.toISOString();
    if (pair.validTo.getTime() < Date.now()) logger.warn({ ...fields, validTo }, `${what} has expired`);
    return true;
  }

  /**
   * Reads the files and uses their certificate; resolves with whether it has changed. An invalid one is logged once, and the previous one
   * stays.
   */
  renew(): Promise<boolean> {
    return this.#inTurn(() => this.#renew());
  }

  /** A running read is neither used nor reported. Idempotent. */
  close(): void {
    this.#closed = true;
    this.#watch.close();
    this.#options.conditions?.clear(this.#options.what);
  }

  #inTurn<T>(action: () => Promise<T>): Promise<T> {
    const done = this.#tail.then(action);
    this.#tail = done.catch(() => undefined);
    return done;
  }

  async #renew(): Promise<boolean> {
    const { what, fields, logger, conditions, whoseFault } = this.#options;
    const before = this.pair;
    try {
      const isNew = this.take(await this.read());
      if (isNew && before !== null) logger.info({ ...fields, validTo: this.pair?.validTo.toISOString() }, `${what} renewed from its files`);
      return isNew;
    } catch (error) {
      // Another certificate may have its name by now, and this one's condition would never be cleared.
      if (this.#closed) return false;
      const fault = messageOf(error);
      if (fault !== this.#fault) {
        const consequence = before === null ? 'there is none' : 'the one before stays';
        logger.error({ ...fields, err: error }, `${fault}; ${consequence} until the files change`);
      }
      this.#fault = fault;
      conditions?.raise(what, `the certificate files of ${whoseFault} cannot be used`);
      return false;
    }
  }
}
