/** Differences between two configurations, by the path of each setting, and when a running server can follow. */
import { isDeepStrictEqual } from 'node:util';
import type { TSchema } from '@sinclair/typebox';
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
  return objectChanges(ServerSchema, before, after, { path: 'Server', keys: [], idle: false });
}

/**
 * The configuration of a running server after `configChanges`: `next`, with equal parts as the same objects as in `running`, and settings
 * that need a restart unchanged.
 */
export function followed(running: ServerConfig, next: ServerConfig): ServerConfig {
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
  return sharing(running, live) as ServerConfig;
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

function objectChanges(schema: TSchema, before: object, after: object, at: Step): SettingChange[] {
  return fieldsOf(schema).flatMap((field) => {
    const [old, now] = [before, after].map((object) => (object as Readonly<Record<string, unknown>>)[field.key]);
    const idle = at.idle || field.notes.idle !== undefined;
    return memberChanges(field, old, now, { path: `${at.path}/${elementOf(field)}`, keys: [...at.keys, field.key], idle });
  });
}

function memberChanges(field: Field, before: unknown, after: unknown, at: Step): SettingChange[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (before === undefined || after === undefined) return [oneChange(field, before, after, at)];
  if (field.shape === 'object') return objectChanges(field.schema, before as object, after as object, at);
  if (field.items?.shape === 'object') return itemChanges(field, before as readonly object[], after as readonly object[], at);
  return [oneChange(field, before, after, at)];
}

function itemChanges(field: Field, before: readonly object[], after: readonly object[], at: Step): SettingChange[] {
  const named = [...before, ...after].every(isNamed) && [before, after].every(hasUniqueNames);
  const key = (item: object, index: number): string => (named ? (item as Named).name : `${index + 1}`);
  const [olds, news] = [before, after].map((items) => new Map(items.map((item, index) => [key(item, index), item])));
  const schema = field.items?.schema;
  if (olds === undefined || news === undefined || schema === undefined) return [];
  const container = field.flatten === undefined ? at.path : `${at.path}/${field.flatten.xmlName}`;
  const names = [...new Set([...olds.keys(), ...news.keys()])];
  const changes = names.flatMap((name): SettingChange[] => {
    const [old, now] = [olds.get(name), news.get(name)];
    const step = { ...at, path: `${container}[${name}]`, keys: [...at.keys, name] };
    if (old === undefined || now === undefined) return [changeOf(old === undefined ? 'added' : 'removed', '', step)];
    return objectChanges(schema, old, now, step);
  });
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
