/** What changes of the configuration are told as. */
import { isDeepStrictEqual } from 'node:util';
import type { ApplicationConfig } from '../../config/index.ts';
import type { ApplicationAddress } from '../stream-address.ts';
import type { Notices } from './notice.ts';

type Profiles = ReadonlyMap<string, unknown>;

/** Tells which output profiles of an application are new, others than before, or gone. */
export function tellProfileChanges(notices: Notices, place: ApplicationAddress, before: ApplicationConfig, after: ApplicationConfig): void {
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
