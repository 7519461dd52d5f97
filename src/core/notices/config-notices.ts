/** Makes notices of configuration changes. */
import { isDeepStrictEqual } from 'node:util';
import type { ApplicationConfig } from '../../config/index.ts';
import type { Definition } from '../definition.ts';
import type { ApplicationAddress } from '../stream-address.ts';
import type { Notices } from './notice.ts';

type Profiles = ReadonlyMap<string, unknown>;
/** Definitions of applications, by virtual host and name. */
type Definitions = ReadonlyMap<string, ReadonlyMap<string, Definition<ApplicationConfig>>>;

interface DefinedHost {
  readonly name: string;
  readonly applications: ReadonlyMap<string, { readonly definition: Definition<ApplicationConfig> }>;
}

/** The present definitions. */
export function definitionsOf(virtualHosts: readonly DefinedHost[]): Definitions {
  const applications = ({ applications: all }: DefinedHost) =>
    new Map(Array.from(all, ([app, { definition }]) => [app, definition] as const));
  return new Map(virtualHosts.map((vhost) => [vhost.name, applications(vhost)]));
}

/**
 * Posts how another configuration file changed virtual hosts and applications, in steps of one application each. An application whose keys
 * alone differ continues.
 */
export function* postRedeclared(notices: Notices, before: Definitions, after: Definitions): Generator<void, void> {
  for (const [vhost, applications] of before) {
    const now = after.get(vhost);
    for (const app of applications.keys()) if (now?.has(app) !== true) notices.post({ type: 'app.deleted', vhost, app });
    if (now === undefined) notices.post({ type: 'vhost.deleted', vhost });
  }
  for (const [vhost, applications] of after) {
    const old = before.get(vhost);
    if (old === undefined) notices.post({ type: 'vhost.created', vhost });
    for (const [app, { config }] of applications) {
      const was = old?.get(app)?.config;
      if (was === undefined) notices.post({ type: 'app.created', vhost, app });
      else if (was !== config && isDeepStrictEqual(withoutKeys(was), withoutKeys(config)))
        notices.post({ type: 'keys.changed', vhost, app });
      else if (was !== config) {
        notices.post({ type: 'app.changed', vhost, app });
        postProfileChanges(notices, { vhost, app }, was, config);
      }
      yield;
    }
  }
}

function withoutKeys(config: ApplicationConfig): object {
  return { ...config, publishKeys: null, playTokens: null };
}

/** Posts which output profiles of an application are new, changed or gone. */
export function postProfileChanges(notices: Notices, place: ApplicationAddress, before: ApplicationConfig, after: ApplicationConfig): void {
  const { vhost, app } = place;
  const [old, now] = [profilesOf(before), profilesOf(after)];
  for (const [profile, settings] of now) {
    if (!old.has(profile)) notices.post({ type: 'outputProfile.created', vhost, app, profile });
    else if (!isDeepStrictEqual(old.get(profile), settings)) notices.post({ type: 'outputProfile.changed', vhost, app, profile });
  }
  for (const profile of old.keys()) if (!now.has(profile)) notices.post({ type: 'outputProfile.deleted', vhost, app, profile });
}

function profilesOf({ outputProfiles }: ApplicationConfig): Profiles {
  return new Map((outputProfiles?.outputProfile ?? []).map((profile) => [profile.name, profile]));
}
