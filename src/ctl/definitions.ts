/** Commands that create, change and remove objects of the API: `create`, `patch`, `delete`. */
import { pathWith } from '../client/path.ts';
import { plainText } from '../util/plain-text.ts';
import { type Call, type Command, FILE_OPTION, fullAddress, UsageProblem } from './command.ts';
import { bodyOf, neededBody } from './json-input.ts';

const APP = '/v1/vhosts/{vhost}/apps/{app}';

/** A kind of object: its path in the API, and the member with its name. */
interface Kind {
  readonly word: string;
  /** Names in its address; the last is the object's own. */
  readonly names: readonly string[];
  readonly collection: string;
  /** The API takes a list of definitions. */
  readonly batch?: boolean;
  /** The member of the definition with its name. */
  readonly nameAt: readonly string[];
  /** Members that are added to a definition without them. */
  readonly defaults?: object;
  readonly patch?: boolean;
  readonly remove?: boolean;
}

const KINDS: readonly Kind[] = [
  { word: 'vhost', names: ['vhost'], collection: '/v1/vhosts', batch: true, nameAt: ['name'], remove: true },
  {
    word: 'app',
    names: ['vhost', 'app'],
    collection: '/v1/vhosts/{vhost}/apps',
    batch: true,
    nameAt: ['name'],
    defaults: { type: 'live' },
    patch: true,
    remove: true,
  },
  {
    word: 'profile',
    names: ['vhost', 'app', 'profile'],
    collection: `${APP}/outputProfiles`,
    batch: true,
    nameAt: ['name'],
    patch: true,
    remove: true,
  },
  { word: 'stream', names: ['vhost', 'app', 'stream'], collection: `${APP}/streams`, nameAt: ['name'], remove: true },
  {
    word: 'channel',
    names: ['vhost', 'app', 'channel'],
    collection: `${APP}/scheduledChannels`,
    nameAt: ['stream', 'name'],
    patch: true,
    remove: true,
  },
  {
    word: 'multiplex',
    names: ['vhost', 'app', 'channel'],
    collection: `${APP}/multiplexChannels`,
    nameAt: ['outputStream', 'name'],
    remove: true,
  },
  { word: 'publish-key', names: ['vhost', 'app', 'key'], collection: `${APP}/publishKeys`, nameAt: ['name'], remove: true },
  { word: 'play-token', names: ['vhost', 'app', 'key'], collection: `${APP}/playTokens`, nameAt: ['name'], remove: true },
];

const WORDS: Readonly<Record<string, string>> = {
  vhost: 'a virtual host',
  app: 'an application',
  profile: 'an output profile',
  stream: 'a pulled stream',
  channel: 'a scheduled channel',
  multiplex: 'a multiplex channel',
  'publish-key': 'a publish key',
  'play-token': 'a play token',
};

/** `create`, `patch` and `delete` for every kind that supports them. */
export const definitionCommands: readonly Command[] = [
  ...KINDS.map(createCommand),
  ...KINDS.filter(({ patch }) => patch === true).map(patchCommand),
  ...KINDS.filter(({ remove }) => remove === true).map(deleteCommand),
];

function createCommand(kind: Kind): Command {
  const isKey = kind.word === 'publish-key' || kind.word === 'play-token';
  return {
    name: `create ${kind.word}`,
    usage: addressOf(kind),
    summary: `Make ${WORDS[kind.word]}`,
    details: isKey
      ? 'The answer contains the key; it is not shown again.'
      : 'The JSON may omit the name; otherwise it must be the one in the address.',
    options: {
      ...FILE_OPTION,
      ...(kind.word === 'vhost' && { host: { value: 'NAME', about: 'a host name of the virtual host', multiple: true } }),
      ...(kind.word === 'stream' && { url: { value: 'URL', about: 'URL of the source; several are tried in turn', multiple: true } }),
    },
    run: async (call) => {
      const place = fullAddress(call, ...kind.names);
      const definition = definitionOf(kind, await bodyOf(call), place[kind.names.at(-1) ?? ''] ?? '', {
        ...(call.options('host').length > 0 && { host: { names: call.options('host') } }),
        ...(call.options('url').length > 0 && { urls: call.options('url') }),
      });
      const answer = await call.client.request('POST', pathWith(kind.collection, place), {
        body: kind.batch === true ? [definition] : definition,
      });
      const made = responseOf(answer.body);
      call.out.done(`created ${kind.word} ${Object.values(place).join('/')}${isKey ? `: ${secretIn(made)}` : ''}`, made);
      tellIdle(call, answer.ineffective);
    },
  };
}

function patchCommand(kind: Kind): Command {
  const replaces = kind.word === 'profile';
  return {
    name: `patch ${kind.word}`,
    usage: `${addressOf(kind)} --file FILE`,
    summary: `${replaces ? 'Replace' : 'Change'} ${WORDS[kind.word]}`,
    options: FILE_OPTION,
    run: async (call) => {
      const place = fullAddress(call, ...kind.names);
      const answer = await call.client.request('PATCH', itemPath(kind, place), { body: await neededBody(call) });
      call.out.done(`changed ${kind.word} ${Object.values(place).join('/')}`, responseOf(answer.body));
      tellIdle(call, answer.ineffective);
    },
  };
}

function deleteCommand(kind: Kind): Command {
  return {
    name: `delete ${kind.word}`,
    usage: addressOf(kind),
    summary: kind.word === 'stream' ? 'End a stream, pulled or published' : `Remove ${WORDS[kind.word]}`,
    run: async (call) => {
      const place = fullAddress(call, ...kind.names);
      await call.client.request('DELETE', itemPath(kind, place));
      call.out.done(`removed ${kind.word} ${Object.values(place).join('/')}`, place);
    },
  };
}

/** The content of the file, with the name from the address and the members from options. */
function definitionOf({ nameAt, defaults = {} }: Kind, body: unknown, name: string, more: object): object {
  const [given, ...others] = Array.isArray(body) ? body : [body];
  if (others.length > 0 || typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new UsageProblem('--file must hold one JSON object');
  }
  const [first = '', second] = nameAt;
  const holder: unknown = second === undefined ? given : given[first];
  const key = second ?? first;
  const known: unknown = typeof holder === 'object' && holder !== null ? (holder as Record<string, unknown>)[key] : undefined;
  if (known !== undefined && known !== name)
    throw new UsageProblem(`the address says '${name}', but ${nameAt.join('.')} in the JSON is ${JSON.stringify(known)}`);
  const named = second === undefined ? { [first]: name } : { [first]: { ...(holder as object | undefined), [second]: name } };
  return { ...defaults, ...given, ...named, ...more };
}

function responseOf(body: unknown): unknown {
  const [envelope] = Array.isArray(body) ? body : [body];
  return (envelope as { readonly response?: unknown } | null)?.response ?? null;
}

function secretIn(made: unknown): string {
  const { key, token } = (made ?? {}) as { readonly key?: string; readonly token?: string };
  return key ?? token ?? '(as given)';
}

/** Settings without effect are reported, but are not a failure. */
function tellIdle(call: Call, keys: readonly string[]): void {
  if (keys.length > 0) call.process.err(plainText(`note: these settings have no effect here: ${keys.join(', ')}\n`));
}

function addressOf({ names }: Kind): string {
  return names.map((name) => name.toUpperCase()).join('/');
}

function itemPath(kind: Kind, place: Readonly<Record<string, string>>): string {
  return pathWith(`${kind.collection}/{${kind.names.at(-1)}}`, place);
}
