import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  applicationDefaults,
  ConfigError,
  loadServerConfig,
  mergePatch,
  readApplication,
  readOutputProfile,
  readVirtualHost,
} from './index.ts';
import type { EchoObject } from './reader.ts';

interface Recorded {
  readonly name: string;
  readonly resource: 'virtualHost' | 'application' | 'outputProfile';
  readonly request?: unknown;
  readonly patch?: Record<string, unknown>;
  readonly response?: Record<string, unknown>;
  readonly message?: string;
}

const FIXTURES = new URL('../../test/fixtures/config/', import.meta.url);
const recorded = JSON.parse(readFileSync(new URL('recorded.json', FIXTURES), 'utf8')) as Recorded[];
const fromFile = JSON.parse(readFileSync(new URL('recorded-file.json', FIXTURES), 'utf8')) as Record<string, unknown>;

/** Accepted by the reference and refused here: it could not work. */
const REFUSED: Record<string, RegExp> = {
  'vhosts-post-name-empty': /virtualHost\.name must not be empty/,
  'vhosts-post-name-slash': /virtualHost\.name must not contain/,
  'vhosts-post-name-hash': /virtualHost\.name must not contain/,
  'vhosts-post-name-colon': /virtualHost\.name must not contain/,
  'vhosts-post-names-string': /virtualHost\.host\.names must be a list, but got "c"/,
  'apps-post-name-empty': /application\.name must not be empty/,
  'apps-post-name-slash': /application\.name must not contain/,
  'apps-post-name-hash': /application\.name must not contain/,
  'apps-post-name-colon': /application\.name must not contain/,
  'apps-post-name-space': /application\.name must not contain/,
  'app-patch-wrong-value-type': /application\.publishers\.llhls\.segmentDuration must be a number above 0 .*, but got "abc"/,
};

/** Refused by the reference and accepted here: the contract's spelling of keys. */
const ACCEPTED = ['apps-post-full', 'apps-post-playlist-renditionTemplates-camel', 'apps-post-playlist-webrtcAutoAbr'];

function create({ resource, request }: Recorded): EchoObject {
  if (resource === 'virtualHost') return readVirtualHost(request).echo;
  if (resource === 'outputProfile') return readOutputProfile(request).echo;
  return readApplication(applicationDefaults(request)).echo;
}

function attempt(action: () => unknown): { readonly echo: unknown; readonly error?: ConfigError } {
  try {
    return { echo: action() };
  } catch (error) {
    if (error instanceof ConfigError) return { echo: undefined, error };
    throw error;
  }
}

/** The recorded answer with the contract's additions: both lists of encodes, empty if unused. */
function asContract(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(asContract);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([key, inner]) => [
    key,
    key === 'encodes' ? { audios: [], videos: [], ...inner } : asContract(inner),
  ]);
  return Object.fromEntries(members);
}

/** Values with the types of the contract: the reference shows those of a file as texts, and those of a body unchanged. */
function withTypes(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (key, inner: unknown) => {
    if (key === 'name') return String(inner);
    if (inner === 'true' || inner === 'false') return inner === 'true';
    return typeof inner === 'string' && /^\d+$/.test(inner) ? Number(inner) : inner;
  });
}

/** Bodies whose values have other types than their members. */
const OTHER_TYPES: ReadonlySet<string> = new Set([
  ...['vhosts-post-name-number', 'apps-post-name-number', 'apps-post-numbers-as-strings', 'apps-post-bool-as-string'],
]);

function withoutDynamic(response: Record<string, unknown> | undefined): unknown {
  const { dynamic: _, ...rest } = response ?? {};
  return asContract(rest);
}

describe('bodies recorded from the reference server', () => {
  let patched = readApplication(applicationDefaults({ name: 'app2', type: 'live' })).echo;

  test.each(recorded)('$name', (exchange) => {
    const { patch } = exchange;
    const before = patched;
    const action = patch === undefined ? () => create(exchange) : () => readApplication(mergePatch(before, patch)).echo;
    const { echo, error } = attempt(action);
    const title = exchange.name.replace(/^[\d.]+ /, '');
    if (REFUSED[title] !== undefined) return expect(error?.message).toMatch(REFUSED[title]);
    if (ACCEPTED.includes(title)) return expect(error).toBeUndefined();
    if (exchange.message !== undefined) return expect(`[Config] ${error?.message}`).toBe(exchange.message);
    expect(error).toBeUndefined();
    const expected = withoutDynamic(exchange.response);
    expect(echo).toEqual(OTHER_TYPES.has(title) ? withTypes(expected) : expected);
    if (patch !== undefined) patched = echo as EchoObject;
  });

  test('keys of an echo are sorted', () => {
    const { echo } = readVirtualHost({ name: 'v', host: { tls: { keyPath: 'k', certPath: 'c' }, names: ['n'] } });
    expect(JSON.stringify(echo)).toBe('{"host":{"names":["n"],"tls":{"certPath":"c","keyPath":"k"}},"name":"v"}');
  });
});

describe('resources of a configuration file', () => {
  const file = new URL('server.xml', FIXTURES).pathname;
  const { virtualHosts, warnings } = loadServerConfig(file);

  test('load without a warning', () => {
    expect(warnings).toEqual([]);
  });

  test.each(Object.entries(fromFile))('%s is echoed as the reference does, with the types of the contract', (path, expected) => {
    const [host] = virtualHosts;
    const [, , name, profiles] = path.split('/');
    const application = host?.applications.find(({ typed }) => typed.name === name);
    const [profile] =
      (application?.echo as { outputProfiles?: { outputProfile: EchoObject[] } } | undefined)?.outputProfiles?.outputProfile ?? [];
    const echo = name === undefined ? host?.echo : profiles === undefined ? application?.echo : profile;
    expect(echo).toEqual(withTypes(withoutDynamic(expected as Record<string, unknown>)));
  });
});
