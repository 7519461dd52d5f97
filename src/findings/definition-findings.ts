/** Findings about virtual hosts and applications once they exist, whatever created them. */
import { type ServerConfig, secretsOf } from '../config/index.ts';
import { applicationSentences, virtualHostSentences } from '../config/ineffective.ts';
import { openWays } from '../config/open-ways.ts';
import { shortApplicationSecrets, shortHostSecrets } from '../config/short-secrets.ts';
import type { Application } from '../core/application.ts';
import type { VirtualHost } from '../core/virtual-host.ts';
import type { KnownSecrets } from '../util/known-secrets.ts';
import type { Logger } from '../util/logger.ts';

/** Logs findings about definitions, and reports their secrets to the filter that keeps them out of the log. */
export class DefinitionFindings {
  readonly #bind: ServerConfig['bind'];
  readonly #logger: Logger;
  readonly #secrets: KnownSecrets;
  readonly #told = new WeakSet<object>();

  constructor({ bind, logger, secrets }: { bind: ServerConfig['bind']; logger: Logger; secrets: KnownSecrets }) {
    this.#bind = bind;
    this.#logger = logger;
    this.#secrets = secrets;
  }

  /** Virtual hosts have changed: findings of each definition are logged once. */
  tellHosts(virtualHosts: readonly VirtualHost[]): void {
    for (const { name: vhost, definition } of virtualHosts) {
      if (this.#told.has(definition.config)) continue;
      this.#told.add(definition.config);
      // Those of its applications are learned when they start.
      const { applications: _others, ...own } = definition.config;
      this.#secrets.learn(secretsOf(own));
      const sentences = [...virtualHostSentences(definition.config), ...shortHostSecrets(definition.config)];
      for (const sentence of sentences) this.#logger.warn({ vhost }, sentence);
    }
  }

  /** An application has started, for the first time or with new settings. */
  tellApplication({ vhost, name: app, definition }: Application, host: VirtualHost | undefined): void {
    this.#secrets.learn(secretsOf(definition.config));
    const ways = host === undefined ? [] : openWays(this.#bind, host.definition.config, definition.config);
    const short = shortApplicationSecrets(vhost, definition.config);
    for (const sentence of [...applicationSentences(vhost, definition.config), ...ways, ...short])
      this.#logger.warn({ vhost, app }, sentence);
  }
}
