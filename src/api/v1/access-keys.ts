import { grantOf, type KeyPlace } from '../../access/access-keys.ts';
import { AccessKeySchema, type KeyList, MAX_ACCESS_KEYS } from '../../config/index.ts';
import type { JsonObject } from '../../core/definition.ts';
import { hashKey, keyFault, makeKey, saltOf } from '../../util/key-hash.ts';
import { formatTimestamp } from '../../util/timestamp.ts';
import { Type } from '../../util/typebox.ts';
import { acknowledge, created, ok } from '../envelope.ts';
import { ApiError } from '../errors.ts';
import { memberOf, nameIn, textIn } from '../json/json-value.ts';
import { keysIn, shownKey } from '../key-lists.ts';
import { changed, requireObject, requireWritable } from '../refusals.ts';
import type { AppRequest, Route } from '../route.ts';
import { AccessKey } from '../schemas.ts';

/** A list in the words of its routes. */
interface ListWords {
  readonly list: KeyList;
  readonly noun: string;
  /** Member with the key itself, which only the first answer has. */
  readonly secret: 'key' | 'token';
}

/** Publish keys and play tokens. Nothing restarts; removing a key disconnects its users. */
export const accessKeyRoutes: readonly Route[] = [
  ...routesOf({ list: 'publishKeys', noun: 'publish key', secret: 'key' }),
  ...routesOf({ list: 'playTokens', noun: 'play token', secret: 'token' }),
];

function routesOf(words: ListWords): Route[] {
  const { list, noun, secret } = words;
  const path = `/v1/vhosts/{vhost}/apps/{app}/${list}`;
  return [
    {
      method: 'GET',
      path,
      level: 'app',
      summary: `All ${noun}s, without their secrets`,
      response: Type.Array(AccessKey),
      handle: (request) => ok(keysIn(request.app.definition.echo, list).map((item) => listed(request, list, item))),
    },
    {
      method: 'POST',
      path,
      level: 'app',
      summary: `Add a ${noun}; only this answer shows it`,
      body: AccessKeySchema,
      response: Type.Object({ ...AccessKey.properties, [secret]: Type.Optional(Type.String()) }),
      success: 201,
      handle: (request) => add(request, words),
    },
    {
      method: 'DELETE',
      path: `${path}/{key}`,
      level: 'app',
      summary: `Remove a ${noun}; its users are disconnected`,
      handle: (request) => remove(request, words),
    },
  ];
}

async function add(request: AppRequest, { list, noun, secret }: ListWords) {
  const { control, vhost, app } = request;
  requireWritable(vhost);
  const body = requireObject(request.body);
  const given = textIn(body, 'key') || textIn(body, 'token');
  const key = given === '' && memberOf(body, 'hash') === undefined ? makeKey() : given;
  const { token: _token, ...rest } = body;
  const item = { ...rest, created: new Date(control.now()).toISOString(), ...(key !== '' && { key }) };
  const name = nameIn(item);
  const changing = control.changeKeys(vhost.name, app.name, (echo) => {
    const present = keysIn(echo, list);
    if (present.some((each) => nameIn(each) === name)) throw new ApiError('KEY_EXISTS', noun, name);
    if (present.length >= MAX_ACCESS_KEYS) throw new ApiError('KEY_LIMIT', noun, String(MAX_ACCESS_KEYS));
    return { ...echo, [list]: [...present, hashedAs(present, item)] };
  });
  const { definition } = await changed(changing, { vhost: vhost.name, app: app.name, failed: 'KEY_NOT_SAVED' });
  const stored = keysIn(definition.echo, list).find((each) => nameIn(each) === name) ?? item;
  return created({ ...listed(request, list, stored), ...(key !== '' && { [secret]: key }) });
}

/**
 * Hashes with the salt of the list, so that a presented key is hashed only once. An invalid key is left unchanged for the later check to
 * refuse.
 */
function hashedAs(present: readonly JsonObject[], item: JsonObject): JsonObject {
  const { key, ...rest } = item;
  const salt = present.map((each) => saltOf(textIn(each, 'hash'))).find((found) => found !== undefined);
  const isPlain = typeof key === 'string' && keyFault(key) === undefined && memberOf(item, 'hash') === undefined;
  return isPlain && salt !== undefined ? { ...rest, hash: hashKey(key, salt) } : item;
}

async function remove(request: AppRequest, { list, noun }: ListWords) {
  const { control, vhost, app } = request;
  requireWritable(vhost);
  const name = request.parameter('key');
  const changing = control.changeKeys(vhost.name, app.name, (echo) => {
    const present = keysIn(echo, list);
    const left = present.filter((each) => nameIn(each) !== name);
    if (left.length === present.length) throw new ApiError('KEY_NOT_FOUND', noun, name);
    // An empty list keeps protecting the application.
    return { ...echo, [list]: left };
  });
  await changed(changing, { vhost: vhost.name, app: app.name, failed: 'KEY_NOT_SAVED' });
  return acknowledge();
}

function listed({ control, vhost, app }: AppRequest, list: KeyList, item: JsonObject): JsonObject {
  const place: KeyPlace = { vhost: vhost.name, app: vhost.dynamic.has(app) ? '*' : app.name, list };
  const key = { name: nameIn(item), hash: textIn(item, 'hash'), expires: textIn(item, 'expires'), streams: textIn(item, 'streams') };
  const usedAt = control.keyUsedAt(grantOf(place, key));
  return { ...shownKey(item), ...(usedAt !== undefined && { lastUsed: formatTimestamp(usedAt) }) };
}
