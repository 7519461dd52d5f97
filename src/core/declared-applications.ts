/** Compares and changes the applications of a virtual host when its configuration file is read again. */
import { isDeepStrictEqual } from 'node:util';
import { type ApplicationConfig, KEY_LISTS, type VirtualHostConfig } from '../config/index.ts';
import type { Application } from './application.ts';
import type { Definition } from './definition.ts';
import type { CloseReason } from './ingest.ts';
import { TEMPLATE_NAME } from './template-applications.ts';
import type { VirtualHost } from './virtual-host.ts';

/** A virtual host as a configuration file declares it. */
export interface Declaration {
  readonly host: Definition<VirtualHostConfig>;
  readonly applications: readonly Definition<ApplicationConfig>[];
}

/** A declared virtual host, with its applications that are new or have new settings. Nobody sees them yet. */
export interface PreparedHost extends Declaration {
  readonly vhost: VirtualHost;
  readonly made: ReadonlyMap<Definition<ApplicationConfig>, Application>;
}

/** Makes what is declared and not there yet, in steps of one application each. `hostOf` finds or makes a virtual host. */
export function* preparedHosts(
  wanted: readonly Declaration[],
  {
    hostOf,
    make,
  }: {
    hostOf: (host: Declaration['host']) => VirtualHost;
    make: (vhost: VirtualHost, definition: Definition<ApplicationConfig>) => Application;
  },
): Generator<void, PreparedHost[]> {
  const prepared: PreparedHost[] = [];
  for (const { host, applications } of wanted) {
    const vhost = hostOf(host);
    const made = new Map<Definition<ApplicationConfig>, Application>();
    for (const definition of applications) {
      const current = vhost.applications.get(definition.name);
      const isKept = definition.name === TEMPLATE_NAME || (current !== undefined && canTake(current, definition));
      if (!isKept) made.set(definition, make(vhost, definition));
      yield;
    }
    prepared.push({ host, applications, vhost, made });
  }
  return prepared;
}

/** The present applications, the wanted ones, and the steps between them. */
export interface Redeclaration {
  readonly wanted: readonly Definition<ApplicationConfig>[];
  readonly present: ReadonlyMap<string, Application>;
  /** Whether an application stays although it is not declared. */
  readonly stays: (application: Application) => boolean;
  readonly begin: (definition: Definition<ApplicationConfig>) => Application;
  readonly end: (application: Application, reason: CloseReason) => void;
}

/** Ends and starts applications as needed. Returns the resulting ones in order, and those that have just started. */
export function redeclared({ wanted, present, stays, begin, end }: Redeclaration): { kept: Application[]; begun: Application[] } {
  const begun: Application[] = [];
  const names = new Set(wanted.map(({ name }) => name));
  const others = [...present.values()].filter(({ name }) => !names.has(name));
  for (const application of others) {
    if (stays(application)) continue;
    const detail = `application '${application.vhost}/${application.name}' is no longer configured`;
    end(application, { code: 'deleted', detail });
  }
  const declared = wanted.map((definition) => {
    const current = present.get(definition.name);
    if (current !== undefined && canTake(current, definition)) {
      current.amend(definition);
      return current;
    }
    if (current !== undefined) {
      const detail = `application '${current.vhost}/${current.name}' restarts with new settings`;
      end(current, { code: 'application-restart', detail });
    }
    const application = begin(definition);
    begun.push(application);
    return application;
  });
  return { kept: [...declared, ...others.filter(stays)], begun };
}

/** Whether a running application can keep its streams with `definition`: the differences do not affect them. */
function canTake(application: Application, definition: Definition<ApplicationConfig>): boolean {
  const { config } = application.definition;
  return config === definition.config || isDeepStrictEqual(withoutKeys(config), withoutKeys(definition.config));
}

function withoutKeys(config: ApplicationConfig): object {
  return Object.fromEntries(Object.entries(config).filter(([member]) => !(KEY_LISTS as readonly string[]).includes(member)));
}
