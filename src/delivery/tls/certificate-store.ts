import { isDeepStrictEqual } from 'node:util';
import type { TlsConfig } from '../../config/index.ts';
import type { VirtualHost } from '../../core/virtual-host.ts';
import type { Conditions } from '../../util/conditions.ts';
import type { FileWatchTimes } from '../../util/file-watch.ts';
import { forEachGuarded } from '../../util/guarded.ts';
import type { Logger } from '../../util/logger.ts';
import type { CertificatePair } from './certificate-files.ts';
import type { Certificate } from './certificate-index.ts';
import { HostCertificate } from './host-certificate.ts';

/** Gets all certificates; its promise resolves when they are in use. */
export type CertificateFollower = (certificates: readonly Certificate[]) => unknown;

/** Options of a store. */
export interface CertificateStoreOptions {
  /** Records virtual hosts with unusable files. */
  readonly conditions?: Conditions;
  readonly times?: FileWatchTimes;
}

/**
 * Certificates of the virtual hosts, read from their files when hosts or files change and at requests of the API. The creator calls
 * `close`.
 */
export class CertificateStore {
  readonly #logger: Logger;
  readonly #options: CertificateStoreOptions;
  readonly #followers: CertificateFollower[] = [];
  /** Certificates of the virtual hosts with TLS. */
  readonly #certificates = new Map<VirtualHost, HostCertificate>();
  /** The settings of each: a virtual host may get new ones. */
  readonly #settings = new WeakMap<HostCertificate, TlsConfig>();
  #virtualHosts: readonly VirtualHost[] = [];
  /** Updates run one after the other, so that an older one does not replace a newer one. */
  #tail: Promise<void> = Promise.resolve();

  constructor(logger: Logger, options: CertificateStoreOptions = {}) {
    this.#logger = logger;
    this.#options = options;
  }

  /** Passes all certificates to `follower`, now and at every change. */
  addFollower(follower: CertificateFollower): void {
    this.#followers.push(follower);
    follower(this.loaded);
  }

  /** In the order of the virtual hosts. */
  get loaded(): readonly Certificate[] {
    return this.#virtualHosts.flatMap((vhost) => {
      const pair = this.#certificates.get(vhost)?.pair ?? null;
      return pair === null ? [] : { hostNames: vhost.hostNames, cert: pair.cert, key: pair.key };
    });
  }

  get available(): boolean {
    return this.loaded.length > 0;
  }

  /**
   * Reads the certificates of new virtual hosts, and follows their files. An unusable file is named in the log; its host
   * has no TLS until the file is valid.
   */
  follow(virtualHosts: readonly VirtualHost[]): void {
    this.#virtualHosts = virtualHosts;
    for (const [vhost, certificate] of this.#certificates) {
      const tls = vhost.definition.config.host?.tls;
      if (virtualHosts.includes(vhost) && isDeepStrictEqual(this.#settings.get(certificate), tls)) continue;
      certificate.close();
      this.#certificates.delete(vhost);
    }
    const fresh = virtualHosts.flatMap((vhost) => {
      const tls = vhost.definition.config.host?.tls;
      return tls === undefined || this.#certificates.has(vhost) ? [] : this.#add(vhost, tls);
    });
    this.#inTurn(async () => {
      for (const certificate of fresh) await certificate.renew();
      void this.#changed();
    });
  }

  /** Resolves when all pending reads have ended. */
  settled(): Promise<void> {
    return this.#tail;
  }

  /**
   * Reads the files of these hosts again, and resolves when every port uses them for new clients; rejects, and keeps every old
   * certificate, if one is unusable.
   */
  reload(virtualHosts: readonly VirtualHost[]): Promise<void> {
    return this.#inTurn(async () => {
      const certificates = virtualHosts.flatMap((vhost) => this.#certificates.get(vhost) ?? []);
      try {
        // One after the other: reading a certificate takes some milliseconds of a turn of the event loop.
        const pairs: CertificatePair[] = [];
        for (const certificate of certificates) pairs.push(await certificate.read());
        for (const [n, pair] of pairs.entries()) certificates[n]?.take(pair);
      } catch (error) {
        this.#logger.error({ err: error }, `certificates were not reloaded: ${String(error)}; the previous ones stay in use`);
        throw error;
      }
      await this.#changed();
      this.#logger.info({ vhosts: virtualHosts.map(({ name }) => name) }, 'certificates reloaded');
    });
  }

  /** Files are no longer followed. Idempotent. */
  close(): void {
    for (const certificate of this.#certificates.values()) certificate.close();
  }

  #add(vhost: VirtualHost, tls: TlsConfig): HostCertificate {
    const certificate = new HostCertificate({
      ...this.#options,
      tls,
      logger: this.#logger,
      what: `certificate of virtual host '${vhost.name}'`,
      fields: { vhost: vhost.name },
      whoseFault: 'a virtual host',
      onFiles: () =>
        this.#inTurn(async () => {
          if (await certificate.renew()) await this.#changed();
        }),
    });
    this.#certificates.set(vhost, certificate);
    this.#settings.set(certificate, tls);
    return certificate;
  }

  #inTurn(action: () => Promise<void>): Promise<void> {
    const done = this.#tail.then(action);
    this.#tail = done.catch(() => undefined);
    return done;
  }

  async #changed(): Promise<void> {
    const { loaded } = this;
    const handed: unknown[] = [];
    forEachGuarded(
      this.#followers,
      (follower) => void handed.push(follower(loaded)),
      (_follower, error) => this.#logger.error({ err: error }, 'certificates could not be passed to a listener'),
    );
    await Promise.all(handed);
  }
}
