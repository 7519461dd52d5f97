/** Differences between two configurations, by the path of each setting, and when a running server can follow. */
import { isDeepStrictEqual } from 'node:util';
import type { TSchema } from '@sinclair/typebox';
import { atOnce } from '../util/in-slices.ts';
import { type Field, fieldsOf } from './field-plan.ts';
import { shown } from './problem.ts';
import { KEY_LISTS } from './schema/access-keys.ts';
import { type ServerConfig, ServerSchema } from './schema/server.ts';
import { isSecret } from './secrets.ts';
import type { ChangeEffect, SettingChange } from './setting-change.ts';

/** Settings that a running server can follow, as members from the root on; all others need a restart. */
const LIVE: readonly (readonly string[])[] = [
  ['virtualHosts'],
  ['defaults'],
  ['limits', 'perApplication'],
  ['log'],
  ['alert'],
  ['managers', 'api'],
  ['managers', 'host', 'names'],
];

/** Levels above an application: configuration, list of virtual hosts, virtual host, list of applications. */
const APPLICATION_DEPTH = 4;

/** Items of a list are matched by name; items without a name by their index. */
type Named = Readonly<Record<string, unknown>> & { readonly name: string };

interface Step {
  readonly path: string;
  /** Members from the root on, with names in the place of indices. */
  readonly keys: readonly string[];
  readonly idle: boolean;
}

/** Every setting that differs; empty when none does. The order is that of the file. */
export function configChanges(before: ServerConfig, after: ServerConfig): SettingChange[] {
  return atOnce(configChangeSteps(before, after));
}

/** `configChanges` in steps of one list's item each. */
export function configChangeSteps(before: ServerConfig, after: ServerConfig): Generator<void, SettingChange[]> {
  return objectChanges(ServerSchema, before, after, { path: 'Server', keys: [], idle: false });
}

/**
 * The configuration of a running server after `configChanges`: `next`, with equal parts as the same objects as in `running`, and settings
 * that need a restart unchanged. In steps of one application each.
 */
export function* followedSteps(running: ServerConfig, next: ServerConfig): Generator<void, ServerConfig> {
  const { alert: _before, ...others } = running;
  const live: ServerConfig = {
    ...others,
    ...(next.alert !== undefined && { alert: next.alert }),
    virtualHosts: next.virtualHosts,
    defaults: next.defaults,
    limits: { ...running.limits, perApplication: next.limits.perApplication },
    log: next.log,
    managers: { ...running.managers, host: { ...running.managers.host, names: next.managers.host.names }, api: next.managers.api },
  };
  return (yield* sharingFromBelow(running, live, APPLICATION_DEPTH)) as ServerConfig;
}

/** One line for people. */
export function changeSentence({ path, kind, values, effect, application }: SettingChange): string {
  const what = values === '' ? kind : `${kind}: ${values}`;
  const consequence = {
    now: '',
    application: application === undefined ? '' : ` (application '${application.vhost}/${application.app}' starts anew, its streams end)`,
    restart: ' (needs a restart, the setting before holds until then)',
    never: ' (has no effect)',
  }[effect];
  return `${path} ${what}${consequence}`;
}

/** As `sharing`. The upper `levels` are compared by the objects inside them, each of which is a step. */
function* sharingFromBelow(known: unknown, value: unknown, levels: number): Generator<void, unknown> {
  const isDeep = levels > 0 && isTree(value) && isTree(known) && Array.isArray(value) === Array.isArray(known);
  if (!isDeep || (Array.isArray(value) && !value.every(isNamed))) {
    yield;
    return sharing(known, value);
  }
  if (Array.isArray(value)) {
    const all = known as unknown as readonly unknown[];
    const byName = new Map(all.filter(isNamed).map((item) => [item.name, item]));
    const items: unknown[] = [];
    for (const item of value as Named[]) items.push(yield* sharingFromBelow(byName.get(item.name), item, levels - 1));
    return items.length === all.length && items.every((item, index) => item === all[index]) ? known : items;
  }
  const shared: [string, unknown][] = [];
  for (const [key, member] of Object.entries(value)) shared.push([key, yield* sharingFromBelow(known[key], member, levels - 1)]);
  const isSame = shared.length === Object.keys(known).length && shared.every(([key, member]) => key in known && member === known[key]);
  return isSame ? known : Object.fromEntries(shared);
}

function isTree(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

/** `value`, with the equal parts of `known` as the same objects. */
function sharing(known: unknown, value: unknown): unknown {
  if (isDeepStrictEqual(known, value)) return known;
  if (Array.isArray(value)) {
    const all = Array.isArray(known) ? known : [];
    return value.map((item) => sharing(isNamed(item) ? all.find((other) => isNamed(other) && other.name === item.name) : undefined, item));
  }
  if (typeof value !== 'object' || value === null) return value;
  const members = (typeof known === 'object' && known !== null ? known : {}) as Readonly<Record<string, unknown>>;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, sharing(members[key], member)]));
}

function* objectChanges(schema: TSchema, before: object, after: object, at: Step): Generator<void, SettingChange[]> {
  const changes: SettingChange[] = [];
  for (const field of fieldsOf(schema)) {
    const [old, now] = [before, after].map((object) => (object as Readonly<Record<string, unknown>>)[field.key]);
    const idle = at.idle || field.notes.idle !== undefined;
    const step = { path: `${at.path}/${elementOf(field)}`, keys: [...at.keys, field.key], idle };
    changes.push(...(yield* memberChanges(field, old, now, step)));
  }
  return changes;
}

function* memberChanges(field: Field, before: unknown, after: unknown, at: Step): Generator<void, SettingChange[]> {
  // Items are compared one by one: a long list would take long.
  if (field.items?.shape === 'object' && Array.isArray(before) && Array.isArray(after)) return yield* itemChanges(field, before, after, at);
  if (isDeepStrictEqual(before, after)) return [];
  if (before === undefined || after === undefined) return [oneChange(field, before, after, at)];
  if (field.shape === 'object') return yield* objectChanges(field.schema, before as object, after as object, at);
  return [oneChange(field, before, after, at)];
}

function* itemChanges(field: Field, before: readonly object[], after: readonly object[], at: Step): Generator<void, SettingChange[]> {
  const named = [...before, ...after].every(isNamed) && [before, after].every(hasUniqueNames);
  const key = (item: object, index: number): string => (named ? (item as Named).name : `${index + 1}`);
  const [olds, news] = [before, after].map((items) => new Map(items.map((item, index) => [key(item, index), item])));
  const schema = field.items?.schema;
  if (olds === undefined || news === undefined || schema === undefined) return [];
  const container = field.flatten === undefined ? at.path : `${at.path}/${field.flatten.xmlName}`;
  const names = [...new Set([...olds.keys(), ...news.keys()])];
  const changes: SettingChange[] = [];
  for (const name of names) {
    yield;
    const [old, now] = [olds.get(name), news.get(name)];
    if (old === now) continue;
    const step = { ...at, path: `${container}[${name}]`, keys: [...at.keys, name] };
    if (old === undefined || now === undefined) changes.push(changeOf(old === undefined ? 'added' : 'removed', '', step));
    else changes.push(...(yield* objectChanges(schema, old, now, step)));
  }
  const kept = (items: ReadonlyMap<string, object>, others: ReadonlyMap<string, object>) =>
    [...items.keys()].filter((name) => others.has(name));
  if (!isDeepStrictEqual(kept(olds, news), kept(news, olds))) changes.push(changeOf('reordered', '', { ...at, path: container }));
  return changes;
}

function oneChange(field: Field, before: unknown, after: unknown, at: Step): SettingChange {
  const isList = Array.isArray(before) || Array.isArray(after);
  const isObject = field.shape === 'object' || field.items?.shape === 'object';
  const text = (value: unknown): string | null => {
    if (value === undefined) return 'nothing';
    const all = [value].flat() as unknown[];
    if (all.some((one) => typeof one === 'string' && isSecret(field.key, one))) return null;
    return isList ? all.map(shown).join(', ') : shown(value);
  };
  const [old, now] = isObject ? [null, null] : [text(before), text(after)];
  const path = field.flatten === undefined ? at.path : `${at.path}/${field.flatten.xmlName}`;
  let kind: SettingChange['kind'] = 'changed';
  if (before === undefined) kind = 'added';
  else if (after === undefined) kind = 'removed';
  return changeOf(kind, old === null || now === null ? '' : `${old} → ${now}`, { ...at, path });
}

function changeOf(kind: SettingChange['kind'], values: string, { path, keys, idle }: Step): SettingChange {
  const [root, vhost = '', member, app = '', setting = ''] = keys;
  const ofApplication = root === 'virtualHosts' && member === 'applications' && app !== '';
  const isLive = LIVE.some((live) => live.every((key, index) => keys[index] === key));
  // A running application takes other keys without a restart.
  const restartsApplication = ofApplication && setting !== '' && !(KEY_LISTS as readonly string[]).includes(setting);
  let effect: ChangeEffect = 'now';
  if (restartsApplication) effect = 'application';
  else if (idle) effect = 'never';
  else if (!isLive) effect = 'restart';
  return { path, kind, values, effect, ...(ofApplication && { application: { vhost, app } }) };
}

function isNamed(item: unknown): item is Named {
  return typeof item === 'object' && item !== null && 'name' in item && typeof item.name === 'string' && item.name !== '';
}

function hasUniqueNames(items: readonly object[]): boolean {
  return new Set(items.map((item) => (item as Named).name)).size === items.length;
}

function elementOf({ notes, xmlNames, key }: Field): string {
  return notes.attribute === undefined ? (xmlNames[0] ?? key) : `@${notes.attribute}`;
}
