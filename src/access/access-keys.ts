/** Keys of applications as access checks see them: plain values that delivery threads get by message, and keys ready to compare. */
import { createHash } from 'node:crypto';
import type { AccessKeyConfig, KeyList } from '../config/index.ts';
import type { VirtualHost } from '../core/virtual-host.ts';
import { keptMark, saltOf } from '../util/key-hash.ts';
import { timeOf } from '../util/timestamp.ts';
import { compileWildcard } from '../util/wildcard.ts';
import type { Direction } from './access-check.ts';

/** The lists of one application. An absent list requires no key; an empty list admits no client. */
export type ApplicationKeys = { readonly [list in KeyList]?: readonly AccessKeyConfig[] };

/** The lists of a virtual host. */
export interface HostKeys {
  /** All applications that are declared, by name. */
  readonly applications: ReadonlyMap<string, ApplicationKeys>;
  /** Keys of applications made on demand. */
  readonly template: ApplicationKeys;
}

/** The list for each direction. */
export const LIST_OF: Readonly<Record<Direction, KeyList>> = { incoming: 'publishKeys', outgoing: 'playTokens' };
/** Delivery threads load no schemas. */
const LISTS = Object.values(LIST_OF);

const GRANT_DIGITS = 12;

/** The keys of a virtual host as they are now; undefined when no application has any. */
export function hostKeysOf({ applications, dynamic, template }: VirtualHost): HostKeys | undefined {
  const declared = [...applications.values()].filter((application) => !dynamic.has(application));
  const keys = {
    applications: new Map(declared.map(({ name, definition }) => [name, listsOf(definition.config)])),
    template: template === null ? {} : listsOf(template.config),
  };
  const all = [...keys.applications.values(), keys.template];
  return all.some((lists) => LISTS.some((list) => lists[list] !== undefined)) ? keys : undefined;
}

function listsOf(config: ApplicationKeys): ApplicationKeys {
  return Object.fromEntries(LISTS.flatMap((list) => (config[list] === undefined ? [] : [[list, config[list]]])));
}

/** The place for which a key is valid. */
export interface KeyPlace {
  readonly vhost: string;
  /** `*`: the key is from the template. */
  readonly app: string;
  readonly list: KeyList;
}

/** A key ready to compare. */
export interface ReadyKey {
  /** Identifies the key in the sessions that it admitted; different for every place and key. Not secret. */
  readonly grant: string;
  /** Identifies the key in the record of last uses; unchanged after a restart, even if its hash gets another salt. Not secret. */
  readonly title: string;
  /** Undefined, like the mark: the key matches nothing. */
  readonly salt: string | undefined;
  readonly mark: string | undefined;
  /** Wall clock ms; infinite: never. */
  readonly expiresAt: number;
  readonly isFor: (stream: string) => boolean;
}

/** The key's name in sessions. It changes when the key's limits change, because sessions admitted under the old limits must end. */
export function grantOf({ vhost, app, list }: KeyPlace, { hash = '', expires = '', streams = '' }: AccessKeyConfig): string {
  return createHash('sha256').update([vhost, app, list, hash, expires, streams].join('\n')).digest('hex').slice(0, GRANT_DIGITS);
}

function titleOf({ vhost, app, list }: KeyPlace, { name, created = '' }: AccessKeyConfig): string {
  return createHash('sha256').update([vhost, app, list, name, created].join('\n')).digest('hex').slice(0, GRANT_DIGITS);
}

/** An invalid key matches nothing. */
export function readyKey(place: KeyPlace, key: AccessKeyConfig): ReadyKey {
  const { hash = '', expires, streams = '*' } = key;
  return {
    grant: grantOf(place, key),
    title: titleOf(place, key),
    salt: saltOf(hash),
    mark: keptMark(hash),
    expiresAt: expires === undefined ? Number.POSITIVE_INFINITY : timeOf(expires),
    isFor: compileWildcard(streams),
  };
}
