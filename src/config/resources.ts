/** Resources as the API gives them: JSON bodies to typed trees and echoes. */
import type { TSchema } from '@sinclair/typebox';
import { JsonSource } from './json-source.ts';
import { ConfigError } from './problem.ts';
import { type Echo, type EchoObject, readObject } from './reader.ts';
import { KEY_LISTS } from './schema/access-keys.ts';
import { type ApplicationConfig, ApplicationSchema } from './schema/application.ts';
import { type OutputProfileConfig, OutputProfileSchema, type OutputProfilesConfig, OutputProfilesSchema } from './schema/output-profile.ts';
import { type VirtualHostConfig, VirtualHostSchema } from './schema/virtual-host.ts';
import type { Reading } from './source.ts';

/** The virtual host in errors. */
const LABEL = 'virtualHost';
/** Applications of a virtual host that are read in steps. */
const MANY = 20;

/** A resource: `typed` is for the server, `echo` for GET responses. */
export interface Resource<T> {
  readonly typed: T;
  readonly echo: EchoObject;
}

/** A virtual host and its applications; `echo` shows none of them. */
export interface VirtualHostResource extends Resource<VirtualHostConfig> {
  readonly applications: readonly Resource<ApplicationConfig>[];
}

/** For documents of the API and the state folder: macros are not expanded, because clients must not read the environment. */
export interface ReadOptions {
  /** Where relative paths start; default: they stay as written. */
  readonly directory?: string;
}

/** Reads a virtual host. Throws `ConfigError`. */
export function readVirtualHost(json: unknown, options: ReadOptions = {}): VirtualHostResource {
  const host = withApplications(read<VirtualHostConfig>(VirtualHostSchema, json, LABEL, options));
  for (const { typed } of host.applications) refuseTemplate(typed);
  return host;
}

/** The same in steps of one application each, if there are many. */
export function* virtualHostSteps(json: unknown, options: ReadOptions = {}): Generator<void, VirtualHostResource> {
  const given = typeof json === 'object' && json !== null && 'applications' in json ? json.applications : undefined;
  if (!Array.isArray(given) || given.length < MANY) return readVirtualHost(json, options);
  const reading = readingBy(options);
  const host = readObject(VirtualHostSchema, new JsonSource({ ...(json as object), applications: [] }, LABEL, LABEL, reading), reading);
  const applications: { readonly typed: object; readonly echo: EchoObject }[] = [];
  for (const [index, item] of given.entries()) {
    applications.push(
      readObject(ApplicationSchema, new JsonSource(item ?? {}, `${LABEL}.applications[${index}]`, LABEL, reading), reading),
    );
    yield;
  }
  const all = applications.map(({ typed }) => typed) as ApplicationConfig[];
  const isWhole = reading.errors.length === 0 && new Set(all.map(({ name }) => name)).size === all.length;
  // Read in one piece, faults have their order and their words.
  if (!isWhole || all.some(isTemplate)) return readVirtualHost(json, options);
  return withApplications({
    typed: { ...host.typed, applications: all } as VirtualHostConfig,
    echo: { ...host.echo, applications: applications.map(({ echo }) => echo) },
  });
}

/** Reads an application, without filling in what `applicationDefaults` does. Throws `ConfigError`. */
export function readApplication(json: unknown, options: ReadOptions = {}): Resource<ApplicationConfig> {
  const application = read<ApplicationConfig>(ApplicationSchema, json, 'application', options);
  refuseTemplate(application.typed);
  return withoutKeys(application);
}

/** The API shows and saves echoes, so they contain the hashes of keys instead of the keys. */
function withoutKeys({ typed, echo }: Resource<ApplicationConfig>): Resource<ApplicationConfig> {
  const kept = KEY_LISTS.flatMap((list) => (typed[list] === undefined ? [] : [[list, typed[list].map((key) => ({ ...key }))]]));
  return kept.length === 0 ? { typed, echo } : { typed, echo: { ...echo, ...(Object.fromEntries(kept) as EchoObject) } };
}

function isTemplate({ name }: ApplicationConfig): boolean {
  return name === '*';
}

function refuseTemplate(application: ApplicationConfig): void {
  if (!isTemplate(application)) return;
  throw new ConfigError('application.name must not be "*": templates can only be declared in the configuration file', {
    path: 'application.name',
  });
}

/** Reads an output profile. Throws `ConfigError`. */
export function readOutputProfile(json: unknown, options: ReadOptions = {}): Resource<OutputProfileConfig> {
  return read<OutputProfileConfig>(OutputProfileSchema, json, 'outputProfile', options);
}

/** Reads the output profiles of an application from a control server's response, with their common settings. Throws `ConfigError`. */
export function readOutputProfiles(json: unknown, options: ReadOptions = {}): Resource<OutputProfilesConfig> {
  return read<OutputProfilesConfig>(OutputProfilesSchema, json, 'outputProfiles', options);
}

/** Separates the echoes of the applications from that of their virtual host. */
export function withApplications(host: Resource<VirtualHostConfig>): VirtualHostResource {
  const { applications: echoes = [], ...echo } = host.echo;
  const applications = host.typed.applications.map((typed, index) =>
    withoutKeys({ typed, echo: ((echoes as Echo[])[index] ?? {}) as EchoObject }),
  );
  return { typed: host.typed, echo, applications };
}

function read<T>(schema: TSchema, json: unknown, label: string, options: ReadOptions): Resource<T> {
  const reading = readingBy(options);
  const root = typeof json === 'object' && json !== null && !Array.isArray(json) ? json : {};
  const { typed, echo } = readObject(schema, new JsonSource(root, label, label, reading), reading);
  const [first] = reading.errors;
  if (first !== undefined) throw first;
  return { typed: typed as T, echo };
}

function readingBy({ directory }: ReadOptions): Reading {
  return { errors: [], warnings: [], macros: null, ...(directory !== undefined && { directory }) };
}

const DEFAULT_PROVIDERS = { ovt: {}, rtmp: {}, rtspPull: {}, srt: {}, webrtc: {} };
const DEFAULT_PUBLISHERS = { llhls: {}, ovt: {}, webrtc: {} };

function defaultAudio(codec: string) {
  return { name: codec, codec, bitrate: 128_000, samplerate: 48_000, channel: 2, bypassIfMatch: { codec: 'eq' } };
}

function defaultOutputProfiles() {
  const encodes = { videos: [{ name: 'bypass_video', bypass: true }], audios: [defaultAudio('opus'), defaultAudio('aac')] };
  return { outputProfile: [{ name: 'default', outputStreamName: '${OriginStreamName}', encodes }] };
}

/** Adds the defaults of an application created through the API; `null` means explicitly none. */
export function applicationDefaults(json: unknown): unknown {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return json;
  return {
    providers: structuredClone(DEFAULT_PROVIDERS),
    publishers: structuredClone(DEFAULT_PUBLISHERS),
    outputProfiles: defaultOutputProfiles(),
    ...json,
  };
}
