/** Brings back what the API created. */

import { type ApplicationConfig, type ReadOptions, type Resource, readApplication, readVirtualHost } from '../config/index.ts';
import { unprotected, unprotectedApplication } from '../config/not-built.ts';
import type { StateDocument, StateStore } from '../state/state-store.ts';
import { counted } from '../util/counted.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import type { Definition } from './definition.ts';
import type { Orchestrator } from './orchestrator.ts';
import type { PullRegistry } from './pull-registry.ts';
import type { PullDocumentStore } from './pull-store.ts';

/** The definition that the core runs on. */
export function definitionOf<Config extends { readonly name: string }>({ typed, echo }: Resource<Config>): Definition<Config> {
  return { name: typed.name, config: typed, echo };
}

/**
 * Restores the virtual hosts of the state folder. An invalid document is set aside; an invalid application is left out, and a copy of its
 * document set aside. Both are logged, and neither keeps the others from starting.
 */
export async function restoreVirtualHosts(
  store: StateStore,
  orchestrator: Pick<Orchestrator, 'restore'>,
  { logger, reading }: { readonly logger: Logger; readonly reading: ReadOptions },
): Promise<void> {
  for (const document of await store.load()) {
    const { name, order } = document;
    try {
      const vhost = readVirtualHost(document.definition, reading);
      const apps = applicationsOf(document, reading);
      const refused = [...unprotected(vhost.typed), ...apps.valid.flatMap(({ typed }) => unprotectedApplication(name, typed))];
      if (refused.length > 0) {
        // The document stays as it is, for a version that can hold to it.
        for (const sentence of refused) logger.error({ vhost: name }, sentence);
        continue;
      }
      orchestrator.restore(definitionOf(vhost), apps.valid.map(definitionOf<ApplicationConfig>), { readOnly: false, order });
      if (apps.faults.length > 0 && (await store.copyAside(name, apps.faults.join('; ')))) {
        await store.save({ ...document, applications: apps.valid.map(({ echo }) => echo) });
      }
      logger.info({ vhost: name }, `virtual host '${name}' restored with ${counted(apps.valid.length, 'application')}`);
    } catch (error) {
      await store.setAside(name, messageOf(error));
    }
  }
}

function applicationsOf({ applications }: StateDocument, reading: ReadOptions) {
  const valid: Resource<ApplicationConfig>[] = [];
  const faults: string[] = [];
  for (const application of applications) {
    try {
      valid.push(readApplication(application, reading));
    } catch (error) {
      faults.push(`application ${nameOf(application)} is left out: ${messageOf(error)}`);
    }
  }
  return { valid, faults };
}

function nameOf(application: unknown): string {
  const name = typeof application === 'object' && application !== null && 'name' in application ? application.name : undefined;
  return typeof name === 'string' ? `'${name}'` : 'without a name';
}

/** Restores persistent streams. A stream whose application is gone stays on disk: the application may return. */
export async function restorePulls(store: PullDocumentStore, pulls: PullRegistry, logger: Logger): Promise<void> {
  for (const document of await store.load()) {
    const { vhost, app, name } = document;
    try {
      pulls.restore(document);
    } catch (error) {
      logger.error({ vhost, app, stream: name, err: error }, `persistent stream '${vhost}/${app}/${name}' could not be restored`);
    }
  }
}
