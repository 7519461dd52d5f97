/** Scheduled channels as the API takes and shows them. */
import { atOnce } from '../../util/in-slices.ts';
import {
  type AudioMapItem,
  type ChannelSettings,
  checkedUrl,
  DEFAULT_SETTINGS,
  durationOf,
  inOrder,
  type Program,
  refuseManyZones,
  type ScheduleDefinition,
  type ScheduleItem,
  ScheduleProblem,
  UNLIMITED,
  withinLimits,
} from './schedule-definition.ts';
import { parseScheduled } from './schedule-time.ts';

type Members = Readonly<Record<string, unknown>>;

/** Longer than any film, and far from where sums of milliseconds lose their digits. */
const MAX_MS = 1000 * 24 * 3_600_000;

/** The channel that a request describes. Throws `ScheduleProblem`. */
export function definitionFromJson(body: Members): ScheduleDefinition {
  return atOnce(definitionSteps(body));
}

/** The same in steps of one item each. */
export function* definitionSteps(body: Members): Generator<void, ScheduleDefinition> {
  const stream = memberOf(body, 'stream');
  if (!isObject(stream)) throw new ScheduleProblem('Failed to find Stream object');
  const name = memberOf(stream, 'name');
  if (typeof name !== 'string') throw new ScheduleProblem('Failed to find Stream.Name object');
  refuseMisspelt(body, ['stream', 'fallbackProgram', 'programs'], '');
  return withinLimits({ stream: settingsFrom(stream, name), ...(yield* changesFrom(body)) });
}

/**
 * The changes that a request makes to a channel, in steps of one item each: lists are replaced as a whole. Throws `ScheduleProblem`.
 */
export function* changeSteps(definition: ScheduleDefinition, body: Members): Generator<void, ScheduleDefinition> {
  refuseMisspelt(body, ['stream', 'fallbackProgram', 'programs'], '');
  const changes = yield* changesFrom(body);
  return withinLimits({
    stream: definition.stream,
    fallback: given(body, 'fallbackProgram') ? changes.fallback : definition.fallback,
    programs: given(body, 'programs') ? changes.programs : definition.programs,
  });
}

/** The members of a channel that are as they were given. */
export function definitionToJson({ stream, fallback, programs }: ScheduleDefinition): object {
  return {
    stream: { ...stream, audioMap: orNull(stream.audioMap) },
    ...(fallback.length > 0 && {
      fallbackProgram: { name: 'fallback', scheduled: '1970-01-01T00:00:00Z', repeat: true, items: fallback.map(itemToJson) },
    }),
    ...(programs.length > 0 && {
      programs: programs.map(({ name, scheduled, repeat, items }) => ({ name, scheduled, repeat, items: orNull(items.map(itemToJson)) })),
    }),
  };
}

/** The reference server has no `fallbackOnErr` here: shown if it is not the default. */
function itemToJson({ url, start, duration, fallbackOnErr }: ScheduleItem): object {
  return { url, start, duration, ...(!fallbackOnErr && { fallbackOnErr }) };
}

function* changesFrom(body: Members): Generator<void, Pick<ScheduleDefinition, 'fallback' | 'programs'>> {
  const fallback = memberOf(body, 'fallbackProgram');
  if (fallback !== undefined && !isObject(fallback)) throw new ScheduleProblem('FallbackProgram must be an object');
  if (fallback !== undefined) refuseMisspelt(fallback, ['name', 'scheduled', 'repeat', 'items'], 'fallbackProgram.');
  const programs = memberOf(body, 'programs');
  if (programs !== undefined && !Array.isArray(programs)) throw new ScheduleProblem('programs must be an array');
  refuseManyZones((programs ?? []).map((program) => (isObject(program) ? memberOf(program, 'scheduled') : undefined)));
  const items = fallback === undefined ? [] : yield* itemsFrom(fallback, 'fallbackProgram.');
  const read: Program[] = [];
  for (const [index, program] of (programs ?? []).entries()) read.push(yield* programSteps(program, `programs[${index}].`));
  return { fallback: items, programs: inOrder(read) };
}

function settingsFrom(stream: Members, name: string): ChannelSettings {
  refuseMisspelt(stream, ['name', ...Object.keys(DEFAULT_SETTINGS)], 'stream.');
  const audioMap = memberOf(stream, 'audioMap') ?? [];
  if (!Array.isArray(audioMap)) throw new ScheduleProblem('audioMap must be an array');
  const defaults = DEFAULT_SETTINGS;
  return {
    name,
    bypassTranscoder: booleanIn(stream, 'bypassTranscoder', 'stream.', defaults.bypassTranscoder),
    videoTrack: booleanIn(stream, 'videoTrack', 'stream.', defaults.videoTrack),
    audioTrack: booleanIn(stream, 'audioTrack', 'stream.', defaults.audioTrack),
    audioMap: audioMap.map(audioFrom),
    errorToleranceDurationMs: integerIn(stream, 'errorToleranceDurationMs', 'stream.', {
      least: 0,
      otherwise: defaults.errorToleranceDurationMs,
    }),
  };
}

function audioFrom(audio: unknown, index: number): AudioMapItem {
  const path = `stream.audioMap[${index}].`;
  if (!isObject(audio)) throw invalid(path.slice(0, -1), 'an object');
  refuseMisspelt(audio, ['name', 'language', 'characteristics'], path);
  return {
    name: textIn(audio, 'name', path),
    language: textIn(audio, 'language', path),
    characteristics: textIn(audio, 'characteristics', path),
  };
}

/** Parses one program. `path` is the prefix of member names in errors. Throws `ScheduleProblem`. */
export function programFrom(program: unknown, path: string): Program {
  return atOnce(programSteps(program, path));
}

function* programSteps(program: unknown, path: string): Generator<void, Program> {
  if (!isObject(program)) throw invalid(path.slice(0, -1), 'an object');
  refuseMisspelt(program, ['name', 'scheduled', 'repeat', 'items'], path);
  const scheduled = memberOf(program, 'scheduled');
  if (typeof scheduled !== 'string') throw new ScheduleProblem('Failed to find scheduled object, scheduled is required');
  const startsAt = parseScheduled(scheduled);
  if (Number.isNaN(startsAt)) throw new ScheduleProblem('Failed to parse scheduled attribute: Invalid ISO 8601 string');
  yield;
  return {
    ...{ name: textIn(program, 'name', path), scheduled: scheduled.trim(), startsAt },
    ...{ repeat: booleanIn(program, 'repeat', path, false), items: yield* itemsFrom(program, path) },
  };
}

function* itemsFrom(owner: Members, path: string): Generator<void, ScheduleItem[]> {
  const items = memberOf(owner, 'items');
  if (items === undefined) return [];
  if (!Array.isArray(items)) throw new ScheduleProblem('items must be an array');
  const read: ScheduleItem[] = [];
  for (const [index, item] of items.entries()) {
    read.push(itemFrom(item, `${path}items[${index}].`));
    yield;
  }
  return read;
}

/** One item, as `programFrom`. */
export function itemFrom(item: unknown, path: string): ScheduleItem {
  if (!isObject(item)) throw invalid(path.slice(0, -1), 'an object');
  refuseMisspelt(item, ['url', 'start', 'duration', 'fallbackOnErr'], path);
  const url = memberOf(item, 'url');
  if (typeof url !== 'string') throw new ScheduleProblem('Failed to find url object, url is required');
  return {
    url: checkedUrl(url.trim()),
    start: integerIn(item, 'start', path, { least: 0, otherwise: 0 }),
    duration: durationOf(integerIn(item, 'duration', path, { least: UNLIMITED, otherwise: UNLIMITED })),
    fallbackOnErr: booleanIn(item, 'fallbackOnErr', path, true),
  };
}

/** Trimmed; empty for none. */
function textIn(owner: Members, name: string, path: string): string {
  const value = memberOf(owner, name) ?? '';
  if (typeof value !== 'string') throw invalid(path + name, 'a text');
  return value.trim();
}

function booleanIn(owner: Members, name: string, path: string, otherwise: boolean): boolean {
  const value = memberOf(owner, name) ?? otherwise;
  if (typeof value !== 'boolean') throw invalid(path + name, 'true or false');
  return value;
}

function integerIn(
  owner: Members,
  name: string,
  path: string,
  { least, otherwise }: { readonly least: number; readonly otherwise: number },
): number {
  const value = memberOf(owner, name) ?? otherwise;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > MAX_MS) {
    throw invalid(path + name, `a whole number of milliseconds from ${least} to ${MAX_MS}`);
  }
  return value;
}

function invalid(name: string, what: string): ScheduleProblem {
  return new ScheduleProblem(`Invalid [${name}] parameter: it must be ${what}`);
}

/** A typing error must not start something else. */
function refuseMisspelt(owner: Members, known: readonly string[], path: string): void {
  for (const name of Object.keys(owner)) {
    if (known.includes(name)) continue;
    const meant = known.find((candidate) => candidate.toLowerCase() === name.toLowerCase());
    if (meant !== undefined) {
      throw new ScheduleProblem(`Unknown parameter [${path}${name}]: did you mean [${path}${meant}]?`);
    }
  }
}

/** Null counts as absent. */
function memberOf(owner: Members, name: string): unknown {
  return Object.hasOwn(owner, name) ? (owner[name] ?? undefined) : undefined;
}

function given(body: Members, name: string): boolean {
  return memberOf(body, name) !== undefined;
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function orNull<T>(list: readonly T[]): readonly T[] | null {
  return list.length === 0 ? null : list;
}
