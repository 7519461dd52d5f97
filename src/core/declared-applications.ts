/** Compares and changes the applications of a virtual host when its configuration file is read again. */
import { isDeepStrictEqual } from 'node:util';
import { type ApplicationConfig, KEY_LISTS, type VirtualHostConfig } from '../config/index.ts';
import type { Application } from './application.ts';
import type { Definition } from './definition.ts';
import type { CloseReason } from './ingest.ts';

/** A virtual host as a configuration file declares it. */
export interface Declaration {
  readonly host: Definition<VirtualHostConfig>;
  readonly applications: readonly Definition<ApplicationConfig>[];
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
  const others = [...present.values()].filter(({ name }) => !wanted.some((definition) => definition.name === name));
  for (const application of others) {
    if (stays(application)) continue;
    const detail = `application '${application.vhost}/${application.name}' is no longer configured`;
    end(application, { code: 'deleted', detail });
  }
  const declared = wanted.map((definition) => {
    const current = present.get(definition.name);
    if (current !== undefined && takes(current, definition)) return current;
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
function takes(application: Application, definition: Definition<ApplicationConfig>): boolean {
  const { config } = application.definition;
  if (config !== definition.config && !isDeepStrictEqual(withoutKeys(config), withoutKeys(definition.config))) return false;
  application.amend(definition);
  return true;
}

function withoutKeys(config: ApplicationConfig): object {
  return Object.fromEntries(Object.entries(config).filter(([member]) => !(KEY_LISTS as readonly string[]).includes(member)));
}
