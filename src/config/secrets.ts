/** Secrets of configurations, definitions and tasks: found by the names of members, and in URLs. */
import { repeats } from '../util/known-secrets.ts';
import { maskedUrl } from '../util/masked-url.ts';
import { configParts } from './config-parts.ts';
import type { ServerConfig } from './schema/server.ts';

/** Members that are never shown, wherever they occur. */
const SECRET: ReadonlySet<string> = new Set([
  ...['accessToken', 'auth', 'credential', 'hash', 'key', 'passphrase', 'secretKey', 'sentinelAuth', 'streamKey', 'userKey', 'value'],
]);
/** Parameters of URLs whose values grant access. */
const SECRET_PARAMETER = /auth|key|pass|pin$|policy|secret|sign|streamid|token/i;
/** Prefix of a sealed secret (`sealed`). */
const SEAL = 'sealed:';

/** A copy of `value` with sealed secrets, for a file. Equal secrets give equal seals. */
export function sealed<Value>(value: Value, seal: (secret: string) => string): Value {
  const walk = (part: unknown, key: string): unknown => {
    if (Array.isArray(part)) return part.map((item) => walk(item, key));
    if (typeof part === 'object' && part !== null) {
      return Object.fromEntries(Object.entries(part).map(([name, member]) => [name, walk(member, name)]));
    }
    return typeof part === 'string' && part !== '' && isSecret(key, part) ? `${SEAL}${seal(part)}` : part;
  };
  return walk(value, '') as Value;
}

/** Every secret text in `value`: members, whole URLs that contain secrets, and the secrets within them. */
export function secretsOf(value: object): string[] {
  const found: string[] = [];
  sealed(value, (secret) => {
    found.push(secret, ...secretsOfUrl(secret));
    return '';
  });
  return found;
}

/** The secrets in `value` that `text` repeats, as `secretsOf` finds them, in steps of one member each. */
export function* repeatedSecrets(value: object, text: string): Generator<void, string[]> {
  const found: string[] = [];
  const waiting: [part: unknown, key: string][] = [[value, '']];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const [part, key] = next;
    if (Array.isArray(part)) for (const item of part) waiting.push([item, key]);
    else if (typeof part === 'object' && part !== null) for (const [name, member] of Object.entries(part)) waiting.push([member, name]);
    else if (typeof part === 'string' && part !== '' && isSecret(key, part))
      found.push(...[part, ...secretsOfUrl(part)].filter((secret) => repeats(text, secret)));
    yield;
  }
  return found;
}

/** The secrets of a configuration, in steps of one application each. */
export function* secretSteps(config: ServerConfig): Generator<void, string[]> {
  const found: string[] = [];
  for (const part of configParts(config)) {
    found.push(...secretsOf(part));
    yield;
  }
  return found;
}

/** Texts that grant access, and URLs that contain such a text. */
export function isSecret(key: string, text: string): boolean {
  return SECRET.has(key) || text.startsWith(SEAL) || text.includes('@') || text.includes('?') || maskedUrl(text) !== text;
}

/**
 * The password of a URL, the user name with it in the form that servers echo, and the secrets in its parameters. URLs of origins lack a
 * scheme.
 */
function secretsOfUrl(text: string): string[] {
  const full = text.includes('://') ? text : `http://${text}`;
  if (!URL.canParse(full)) return [];
  const { username, password, searchParams } = new URL(full);
  const values = [...searchParams].flatMap(([name, value]) => (SECRET_PARAMETER.test(name) ? [value] : []));
  return [...(password === '' ? [] : [password, decoded(password), decoded(`${username}:${password}`)]), ...values];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
