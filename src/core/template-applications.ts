import type { ApplicationConfig } from '../config/index.ts';
import type { Clock } from '../util/clock.ts';
import { guarded } from '../util/guarded.ts';
import type { Logger } from '../util/logger.ts';
import type { Application } from './application.ts';
import type { Definition } from './definition.ts';
import type { Notices } from './notices/notice.ts';
import { isAddressableName } from './stream-address.ts';
import type { VirtualHost } from './virtual-host.ts';

/** Name under which a configuration file declares what applications are made of on demand. */
export const TEMPLATE_NAME = '*';

/**
 * Limit of applications that viewers, who choose the names, can create in a virtual host; beyond it, applications without a stream make
 * room.
 */
const MAX_DYNAMIC = 200;
/** Minimum time without a stream before an application makes room, ms: a younger one may still get its stream. */
const ROOM_MS = 10_000;
/** Time without streams after which such an application ends, and interval of the checks, ms. */
const UNUSED_APPLICATION_MS = 60_000;
const APPLICATION_CHECK_MS = 10_000;

/** Dependencies, none of which is closed here. */
export interface TemplateApplicationsOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly notices: Notices;
  readonly virtualHosts: ReadonlyMap<string, VirtualHost>;
  readonly make: (vhost: VirtualHost, definition: Definition<ApplicationConfig>) => Application;
  /** The application runs. */
  readonly onMade: (application: Application) => void;
  /** The application has ended; its owner removes all traces of it. */
  readonly forget: (application: Application) => void;
}

/** Applications that are not declared: they are made of the template of their virtual host for viewers, and end when they are unused. */
export class TemplateApplications {
  /** Not made because there were too many. */
  refused = 0;
  readonly #options: TemplateApplicationsOptions;

  constructor(options: TemplateApplicationsOptions) {
    this.#options = options;
  }

  /** Makes an application of this name; undefined when there is no template, no room, or the name is invalid. */
  make(vhost: VirtualHost, name: string): Application | undefined {
    const { template } = vhost;
    if (template === null || !isAddressableName(name)) return undefined;
    if (vhost.dynamic.size >= MAX_DYNAMIC) this.removeUnused(ROOM_MS);
    if (vhost.dynamic.size >= MAX_DYNAMIC) {
      this.refused += 1;
      return undefined;
    }
    const named = { name, config: { ...template.config, name }, echo: { ...template.echo, name } };
    const application = this.#options.make(vhost, named);
    vhost.applications.set(name, application);
    vhost.dynamic.set(application, this.#options.clock.monotonic());
    this.#options.logger.limited.info({ vhost: vhost.name, app: name }, `application '${vhost.name}/${name}' made from the template`);
    this.#options.onMade(application);
    this.#options.notices.post({ type: 'app.created', vhost: vhost.name, app: name });
    return application;
  }

  /** Ends the applications that have had no stream for `unusedMs`; call it periodically. */
  removeUnused(unusedMs: number): void {
    const now = this.#options.clock.monotonic();
    for (const vhost of this.#options.virtualHosts.values()) {
      for (const [application, since] of vhost.dynamic) {
        // A stream that is being pulled for a viewer counts already.
        if (!application.isEmpty) vhost.dynamic.set(application, null);
        else if (since === null) vhost.dynamic.set(application, now);
        else if (now - since >= unusedMs) this.#remove(vhost, application);
      }
    }
  }

  #remove(vhost: VirtualHost, application: Application): void {
    const { name } = application;
    vhost.dynamic.delete(application);
    vhost.applications.delete(name);
    application.close({ code: 'deleted', detail: 'the application made from the template is not used any more' });
    this.#options.forget(application);
    this.#options.logger.info({ vhost: vhost.name, app: name }, `application '${vhost.name}/${name}' is not used any more and was removed`);
    this.#options.notices.post({ type: 'app.deleted', vhost: vhost.name, app: name });
  }
}

/** `Modules/DynamicAppRemoval`: looks periodically for unused applications, until it is stopped. */
export function removingUnusedApplications(
  applications: Pick<TemplateApplications, 'removeUnused'>,
  logger: Logger,
): { stop(): Promise<void> } {
  const look = guarded(logger, 'the removal of unused applications', () => applications.removeUnused(UNUSED_APPLICATION_MS));
  const timer = setInterval(look, APPLICATION_CHECK_MS);
  return { stop: async () => clearInterval(timer) };
}
