/** Keys of an application: who may publish to it, and who may play from it. */
import type { Static } from '@sinclair/typebox';
import { hashKey, isKeyHash, keyFault, MAX_KEY_LENGTH, MIN_KEY_LENGTH, makeSalt } from '../../util/key-hash.ts';
import { timeOf } from '../../util/timestamp.ts';
import { type Fail, finishing, firstDuplicate, list, name, object, optional, text } from './field.ts';

/** Bounded because each key may have its own salt, with which a presented key is hashed. */
export const MAX_ACCESS_KEYS = 100;
/** The salt of all keys that are given in the clear while this process runs. */
let salt = makeSalt();
const MAX_PATTERN_LENGTH = 256;

/** Salt for hashing keys given in the clear: with it, equal keys have equal hashes. */
export function keySalt(): string {
  return salt;
}

/**
 * Makes this process hash keys with the `keySalt` of another process, to compare configurations. Only for a process that serves no clients.
 */
export function useKeySalt(other: string): void {
  salt = other;
}

interface KeyFinish {
  readonly name: string;
  key?: string;
  hash?: string;
  readonly created?: string;
  readonly expires?: string;
  readonly streams?: string;
}

function checkKey(value: KeyFinish, fail: Fail): void {
  const { name: title, key, hash, streams } = value;
  const fault = key === undefined ? undefined : keyFault(key);
  if (title === '') fail('the name of a key must not be empty', 'name');
  if (key === undefined && hash === undefined) fail(`key '${title}': key or hash must be given`, 'key');
  if (key !== undefined && hash !== undefined) fail(`key '${title}': key and hash must not both be given`, 'hash');
  if (fault !== undefined) fail(`key '${title}': key ${fault}`, 'key');
  if (hash !== undefined && !isKeyHash(hash)) fail(`key '${title}': hash must be sha256:SALT:DIGEST, both in base64url`, 'hash');
  for (const member of ['created', 'expires'] as const) {
    const time = value[member];
    if (time !== undefined && Number.isNaN(timeOf(time)))
      fail(`key '${title}': ${member} must be a time as 2026-01-31 or 2026-01-31T18:00:00Z, but got '${time}'`, member);
  }
  if (streams !== undefined && (streams === '' || streams.length > MAX_PATTERN_LENGTH))
    fail(`key '${title}': streams must have 1 to ${MAX_PATTERN_LENGTH} characters`, 'streams');
  if (key === undefined || fault !== undefined) return;
  // The key itself is not kept.
  value.hash = hashKey(key, salt);
  delete value.key;
}

const KEY_MEMBERS = {
  name: name('Name of the key, unique in its list'),
  key: optional(
    text(
      `The key: ${MIN_KEY_LENGTH} to ${MAX_KEY_LENGTH} letters, digits, or any of _ . ~ -. The server keeps only the hash of the key, and never shows the key`,
      {
        aliases: ['token'],
      },
    ),
  ),
  hash: optional(text('Instead of the key: `sha256:SALT:DIGEST`, the SHA-256 of `SALT:KEY` in base64url. Never shown')),
  created: optional(text('Time of creation; set by the API')),
  expires: optional(
    text('Time of expiry, e.g. `2026-01-31T18:00:00Z`. From then on the key admits nobody, and its users are disconnected'),
  ),
  streams: optional(text('Names of the streams that the key is for; `*` and `?` are wildcards. Absent: all streams')),
};

const finish = finishing<KeyFinish>(checkKey);
/** One item of either list, also the body of the API's key routes. */
export const AccessKeySchema = object('A key', KEY_MEMBERS, { finish });

/** `<PublishKeys>`. */
export const PublishKeysSchema = list(
  'If this list exists, only clients with one of its keys may publish; with an empty list nobody may',
  object('A key for publishers', KEY_MEMBERS, { finish }),
  { flatten: 'publishKey' },
);
/** `<PlayTokens>`. */
export const PlayTokensSchema = list(
  'If this list exists, only clients with one of its tokens may play; with an empty list nobody may',
  object('A token for players', KEY_MEMBERS, { finish }),
  { flatten: 'playToken' },
);

/** The typed form of a key: its secret has become a hash. */
export type AccessKeyConfig = Static<typeof AccessKeySchema>;

/** The lists of an application, by their members. */
export type KeyList = 'publishKeys' | 'playTokens';
/** All members with key lists. */
export const KEY_LISTS: readonly KeyList[] = ['publishKeys', 'playTokens'];

/** Refuses lists that are too long, or have a name twice. */
export const checkKeyLists = finishing<Partial<Record<KeyList, readonly AccessKeyConfig[]>>>((value, fail) => {
  for (const member of KEY_LISTS) {
    const keys = value[member] ?? [];
    const twice = firstDuplicate(keys);
    if (twice !== undefined) fail(`application.${member} has '${twice}' twice`, member);
    if (keys.length > MAX_ACCESS_KEYS) fail(`application.${member} must not have more than ${MAX_ACCESS_KEYS} items`, member);
  }
});
