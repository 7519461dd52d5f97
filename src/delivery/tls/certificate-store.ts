import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { VirtualHost } from '../../core/virtual-host.ts';
import { forEachGuarded } from '../../util/guarded.ts';
import type { Logger } from '../../util/logger.ts';
import type { Certificate } from './certificate-choice.ts';

/** Certificates of the virtual hosts, read from their files when hosts change and when the API asks. */
export class CertificateStore {
  readonly #logger: Logger;
  readonly #followers: ((certificates: readonly Certificate[]) => void)[] = [];
  /** By virtual host. */
  readonly #loaded = new Map<string, Certificate>();
  #virtualHosts: readonly VirtualHost[] = [];
  #tail: Promise<void> = Promise.resolve();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Tells `follower` all certificates, now and whenever they change. */
  tell(follower: (certificates: readonly Certificate[]) => void): void {
    this.#followers.push(follower);
    follower(this.loaded);
  }

  /** In the order of the virtual hosts. */
  get loaded(): readonly Certificate[] {
    return this.#virtualHosts.flatMap(({ name }) => this.#loaded.get(name) ?? []);
  }

  get available(): boolean {
    return this.#loaded.size > 0;
  }

  /** Reads the certificates of virtual hosts that are new. A file that cannot be used is named in the log; its host goes on without TLS. */
  follow(virtualHosts: readonly VirtualHost[]): void {
    const known = new Set(this.#virtualHosts);
    this.#virtualHosts = virtualHosts;
    const names = new Set(virtualHosts.map(({ name }) => name));
    for (const name of this.#loaded.keys()) {
      if (!names.has(name)) this.#loaded.delete(name);
    }
    const fresh = virtualHosts.filter((vhost) => !known.has(vhost));
    this.#tail = this.#tail.then(async () => {
      for (const vhost of fresh) {
        try {
          await this.#load(vhost);
        } catch (error) {
          this.#logger.error(
            { vhost: vhost.name, err: error },
            `certificate of virtual host '${vhost.name}' cannot be used: ${String(error)}`,
          );
        }
      }
      this.#changed();
    });
  }

  /** Resolves when everything asked for has been read. */
  settled(): Promise<void> {
    return this.#tail;
  }

  /** Reads the files of these hosts again; rejects, and keeps every old certificate, when one cannot be used. */
  async reload(virtualHosts: readonly VirtualHost[]): Promise<void> {
    const before = new Map(this.#loaded);
    try {
      for (const vhost of virtualHosts) await this.#load(vhost);
    } catch (error) {
      for (const [name, certificate] of before) this.#loaded.set(name, certificate);
      this.#logger.error({ err: error }, `certificates were not reloaded: ${String(error)}`);
      throw error;
    }
    this.#changed();
    this.#logger.info({ vhosts: virtualHosts.map(({ name }) => name) }, 'certificates reloaded');
  }

  #changed(): void {
    const { loaded } = this;
    forEachGuarded(
      this.#followers,
      (follower) => follower(loaded),
      (_follower, error) => this.#logger.error({ err: error }, 'certificates could not be handed to a port'),
    );
  }

  async #load(vhost: VirtualHost): Promise<void> {
    const tls = vhost.definition.config.host?.tls;
    if (tls === undefined) {
      // Another of this name may have had one.
      this.#loaded.delete(vhost.name);
      return;
    }
    const chain = tls.chainCertPath === undefined ? '' : `\n${await readFile(tls.chainCertPath, 'utf8')}`;
    const cert = (await readFile(tls.certPath, 'utf8')) + chain;
    const key = await readFile(tls.keyPath, 'utf8');
    createSecureContext({ cert, key });
    // It may have gone while its files were read, and another have its name.
    if (!this.#virtualHosts.includes(vhost)) return;
    const { validTo } = new X509Certificate(cert);
    if (Date.parse(validTo) < Date.now())
      this.#logger.warn({ vhost: vhost.name, validTo }, `certificate of virtual host '${vhost.name}' has expired`);
    this.#loaded.set(vhost.name, { hostNames: vhost.hostNames, cert, key });
  }
}
