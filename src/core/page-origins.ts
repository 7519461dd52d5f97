/** Cross-origin rules of the applications of a virtual host. Delivery threads need them for streams that do not exist yet, too. */
import type { ApplicationConfig, CrossDomainsConfig } from '../config/index.ts';
import type { VirtualHost } from './virtual-host.ts';

/** The publishers with rules of their own. Plain values: delivery threads get them by message. */
const KINDS = ['llhls', 'hls', 'thumbnail'] as const;
/** A kind of page. */
export type PageKind = (typeof KINDS)[number];
/** By publisher; absent without an element. */
export type ApplicationOrigins = { readonly [kind in PageKind]?: CrossDomainsConfig };

/** The rules of a virtual host. */
export interface HostOrigins {
  /** Origins of all declared applications, by name. */
  readonly applications: ReadonlyMap<string, ApplicationOrigins>;
  /** Origins of applications made on demand. */
  readonly template: ApplicationOrigins;
}

/** The rules of a virtual host as they are now; undefined when no application has any. */
export function hostOriginsOf({ applications, dynamic, template }: VirtualHost): HostOrigins | undefined {
  const declared = [...applications.values()].filter((application) => !dynamic.has(application));
  const origins = {
    applications: new Map(declared.map(({ name, definition }) => [name, originsOf(definition.config)])),
    template: template === null ? {} : originsOf(template.config),
  };
  const all = [...origins.applications.values(), origins.template];
  return all.some((rules) => Object.keys(rules).length > 0) ? origins : undefined;
}

/** An application's rules for pages of other origins. */
function originsOf({ publishers }: ApplicationConfig): ApplicationOrigins {
  const found = KINDS.flatMap((kind) => {
    const rules = publishers[kind]?.crossDomains;
    return rules === undefined ? [] : [[kind, rules] as const];
  });
  return Object.fromEntries(found);
}

/** Whether an application has cross-origin rules of its own. */
export function hasOrigins(config: ApplicationConfig): boolean {
  return KINDS.some((kind) => config.publishers[kind]?.crossDomains !== undefined);
}
