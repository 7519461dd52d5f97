/** Settings of a configuration without effect on this server: named by `check`, the log and the API, never ignored silently. */
import type { TSchema } from '@sinclair/typebox';
import { elementOf, type Field, fieldsOf, innerOf, joined } from './field-plan.ts';
import type { ApplicationConfig, OutputProfileConfig, ServerConfig, VirtualHostConfig } from './index.ts';
import { encodingRules, hardwareRules, type IneffectiveMember, queryRules } from './ineffective-values.ts';
import { ApplicationSchema } from './schema/application.ts';
import { OutputProfileSchema } from './schema/output-profile.ts';
import { ServerSchema } from './schema/server.ts';
import { VirtualHostSchema } from './schema/virtual-host.ts';

/** One setting without effect. */
export interface Ineffective {
  /** Keys of the API from its resource on, e.g. `publishers.webrtc.jitterBuffer`; the items of a list are not distinguished. */
  readonly key: string;
  /** The same in the words of `Server.xml`: `Publishers/WebRTC/JitterBuffer`. */
  readonly element: string;
  /** The behaviour instead. */
  readonly why: string;
  /** True: not built yet. False: not needed here. */
  readonly unbuilt: boolean;
}

/** Cached by definition, because every GET asks for it and definitions are immutable. */
const known = new WeakMap<object, readonly Ineffective[]>();

/** Settings without effect of the server, without its virtual hosts. */
function ineffectiveInServer(config: ServerConfig): readonly Ineffective[] {
  return remember(config, () => collect(ServerSchema, config, ['virtualHosts']));
}

/** Settings without effect of a virtual host, without its applications. */
export function ineffectiveInVirtualHost(config: VirtualHostConfig): readonly Ineffective[] {
  return remember(config, () => collect(VirtualHostSchema, config, ['applications']));
}

/** Settings without effect of an application and its output profiles. */
export function ineffectiveInApplication(config: ApplicationConfig): readonly Ineffective[] {
  return remember(config, () => {
    const { encoder, decoder } = config.outputProfiles.hwaccels ?? {};
    const rules = [
      ...queryRules(config.publishers),
      ...config.outputProfiles.outputProfile.flatMap((profile) => under('outputProfiles.outputProfile', encodingRules(profile, encoder))),
      ...hardwareRules(decoder, encoder),
    ];
    return [...collect(ApplicationSchema, config), ...located(ApplicationSchema, rules)];
  });
}

/** Settings without effect of one output profile; keys begin in the profile. */
export function ineffectiveInProfile(config: OutputProfileConfig): readonly Ineffective[] {
  return remember(config, () => [...collect(OutputProfileSchema, config), ...located(OutputProfileSchema, encodingRules(config))]);
}

/** A sentence for the log and for `check`; `owner` has the setting. */
export function sentenceOf(owner: string, { element, why, unbuilt }: Ineffective): string {
  return `${owner}: ${element} ${unbuilt ? 'is not built yet' : 'has no effect'}: ${why}`;
}

/** Sentences about the whole server, without its virtual hosts. */
export function serverSentences(config: ServerConfig): string[] {
  return ineffectiveInServer(config).map((each) => sentenceOf('Server', each));
}

/** Sentences about a virtual host, without its applications. */
export function virtualHostSentences(config: VirtualHostConfig): string[] {
  return ineffectiveInVirtualHost(config).map((each) => sentenceOf(`virtual host '${config.name}'`, each));
}

/** Sentences about an application. */
export function applicationSentences(vhost: string, config: ApplicationConfig): string[] {
  return ineffectiveInApplication(config).map((each) => sentenceOf(`application '${vhost}/${config.name}'`, each));
}

/** Everything at once: the server, its virtual hosts and their applications. */
export function allSentences(config: ServerConfig): string[] {
  return [
    ...serverSentences(config),
    ...config.virtualHosts.flatMap((vhost) => [
      ...virtualHostSentences(vhost),
      ...vhost.applications.flatMap((application) => applicationSentences(vhost.name, application)),
    ]),
  ];
}

/** A member that may be without effect, for the list of the reference. `key` and `element` start at `Server`. */
export interface IdleMember extends Ineffective {
  /** Only a description, about which nobody is warned. */
  readonly label: boolean;
}

/** Every member of the configuration that has no effect, whatever its value. */
export function idleMembers(schema: TSchema = ServerSchema, key = '', element = ''): IdleMember[] {
  return fieldsOf(schema).flatMap((field) => {
    const at = { key: joined('.', key, field.key), element: joined('/', element, elementOf(field)) };
    const { idle } = field.notes;
    if (idle !== undefined) return [{ ...at, why: idle.why, unbuilt: idle.unbuilt === true, label: idle.label === true }];
    const inner = innerOf(field);
    return inner === undefined ? [] : idleMembers(inner, at.key, at.element);
  });
}

function remember(config: object, find: () => readonly Ineffective[]): readonly Ineffective[] {
  let found = known.get(config);
  if (found === undefined) {
    found = [...new Map(find().map((each) => [each.key, each])).values()];
    known.set(config, found);
  }
  return found;
}

/** Settings in `value` that have no effect by its schema; members in `without` are left to the caller. */
function collect(schema: TSchema, value: object, without: readonly string[] = [], key = '', element = ''): Ineffective[] {
  return fieldsOf(schema).flatMap((field) => {
    const member = (value as Readonly<Record<string, unknown>>)[field.key];
    if (member === undefined || without.includes(field.key)) return [];
    const at = { key: joined('.', key, field.key), element: joined('/', element, elementOf(field)) };
    const { idle } = field.notes;
    if (idle !== undefined) {
      const { why, unbuilt = false } = idle;
      return idle.label !== true && asks(field, member) ? [{ ...at, why, unbuilt }] : [];
    }
    const inner = innerOf(field);
    if (inner === undefined) return [];
    return [member].flat().flatMap((item) => collect(inner, item as object, [], at.key, at.element));
  });
}

/** Whether the value of an idle member asks for an effect. */
function asks(field: Field, value: unknown): boolean {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return !('enable' in value) || value.enable === true;
  const { quiet = field.schema.default } = field.notes.idle ?? {};
  return value !== quiet;
}

function under(path: string, found: readonly IneffectiveMember[]): IneffectiveMember[] {
  return found.map(({ key, why }) => ({ key: `${path}.${key}`, why }));
}

/** Adds the elements that belong to the keys. */
function located(schema: TSchema, found: readonly IneffectiveMember[]): Ineffective[] {
  return found.map(({ key, why }) => {
    let at: TSchema | undefined = schema;
    let element = '';
    for (const name of key.split('.')) {
      const field: Field | undefined = at === undefined ? undefined : fieldsOf(at).find((candidate) => candidate.key === name);
      if (field === undefined) throw new Error(`no member '${name}' of ${key}`);
      element = joined('/', element, elementOf(field));
      at = innerOf(field);
    }
    return { key, element, why, unbuilt: false };
  });
}
