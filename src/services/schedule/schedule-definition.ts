/** The definition of a scheduled channel: its identity and its programs. */
import { schemeOf } from '../../core/pull.ts';
import { streamOfUrl } from '../../core/stream-address.ts';
import { refuseStrange } from '../../util/allowed-folders.ts';
import { messageOf } from '../../util/message-of.ts';
import { zoneOf } from './schedule-time.ts';

/** One audio track of a channel. */
export interface AudioMapItem {
  readonly name: string;
  /** RFC 5646. */
  readonly language: string;
  readonly characteristics: string;
}

/** The part of a channel that stays fixed while it runs. */
export interface ChannelSettings {
  readonly name: string;
  /** Output profiles are not applied. */
  readonly bypassTranscoder: boolean;
  /** An item without such a track is an error. */
  readonly videoTrack: boolean;
  readonly audioTrack: boolean;
  /** Empty: one audio track. */
  readonly audioMap: readonly AudioMapItem[];
  /** How long the packets of a live item may stay away, ms. */
  readonly errorToleranceDurationMs: number;
}

/** One item to play. All times in milliseconds. */
export interface ScheduleItem {
  /** `file://<path below the media folder>` or `stream://<vhost>/<app>/<stream>`. */
  readonly url: string;
  /** Where in the file it begins. */
  readonly start: number;
  /** -1: to the end of the file, or as long as the live stream may be. */
  readonly duration: number;
  /** Consequence of a failure: true for the fallback program, false for the next item. */
  readonly fallbackOnErr: boolean;
}

/** An item of a program that is on air. */
export interface ItemOnAir {
  readonly item: ScheduleItem;
  /** Start of its program, ms since the epoch. */
  readonly programStartsAt: number;
  /** Milliseconds into the item. */
  readonly position: number;
}

/** Items that begin at a moment, and end where the next program begins. */
export interface Program {
  readonly name: string;
  /** As it was written. */
  readonly scheduled: string;
  /** The same, ms since the epoch. */
  readonly startsAt: number;
  /** The items come again and again. */
  readonly repeat: boolean;
  readonly items: readonly ScheduleItem[];
}

/** A whole channel. */
export interface ScheduleDefinition {
  readonly stream: ChannelSettings;
  /** Plays when nothing is scheduled or an item fails. */
  readonly fallback: readonly ScheduleItem[];
  /** In the order of their beginnings. */
  readonly programs: readonly Program[];
}

/** Default values of members. */
export const DEFAULT_SETTINGS: Omit<ChannelSettings, 'name'> = {
  bypassTranscoder: false,
  videoTrack: true,
  audioTrack: true,
  audioMap: [],
  errorToleranceDurationMs: 500,
};

/** To the end of the file, or of the program. */
export const UNLIMITED = -1;
/** A shorter item would not be seen. */
const MIN_ITEM_MS = 1000;

/** Each is encoded, packaged and listed all the time. */
const MAX_AUDIO_TRACKS = 16;
/** A schedule is read, compared and written in one piece, while everything else waits. */
const MAX_PROGRAMS = 5000;
const MAX_ITEMS = 10_000;
/** Facts about a time zone are expensive to find. */
const MAX_ZONES = 50;
/** Limits of a file: the maximum of its programs and items, and some room for the rest. */
export const SCHEDULE_FILE_LIMITS = {
  tags: 2 * (MAX_PROGRAMS + MAX_ITEMS) + 1000,
  attributes: 3 * MAX_PROGRAMS + 4 * MAX_ITEMS + 1000,
} as const;

/** A schedule that cannot be used; `message` says why, in the words of the API. */
export class ScheduleProblem extends Error {
  override readonly name = 'ScheduleProblem';
}

/** Whether an item is a running stream. */
export function isLive({ url }: Pick<ScheduleItem, 'url'>): boolean {
  return schemeOf(url) === 'stream';
}

/** The path of a file item below the media folder. */
function pathOf(url: string): string {
  return decoded(url.slice('file://'.length));
}

/** The same with its scheme in small letters. Throws `ScheduleProblem` for a URL that cannot be played, wherever it leads. */
export function checkedUrl(given: string): string {
  const scheme = schemeOf(given);
  const url = scheme + given.slice(scheme.length);
  if (scheme === 'stream' && streamOfUrl(url) !== null) return url;
  const path = scheme === 'file' ? pathOf(url) : '';
  if (path === '') {
    const what = scheme === 'stream' ? ', and a stream is stream://<vhost>/<app>/<stream>' : '';
    throw new ScheduleProblem(`Failed to parse url attribute, url must be file:// or stream://${what}`);
  }
  try {
    refuseStrange(path);
    return url;
  } catch (error) {
    throw new ScheduleProblem(`Failed to parse url attribute, ${messageOf(error)}`);
  }
}

/** The same definition. Throws `ScheduleProblem` where it has more than a channel can have. */
export function withinLimits(definition: ScheduleDefinition): ScheduleDefinition {
  const { stream, fallback, programs } = definition;
  refuseMore('stream.audioMap', stream.audioMap.length, MAX_AUDIO_TRACKS);
  refuseMore('programs', programs.length, MAX_PROGRAMS);
  const items = programs.reduce((sum, program) => sum + program.items.length, fallback.length);
  if (items > MAX_ITEMS) throw new ScheduleProblem(`there are ${items} items in all programs, at most ${MAX_ITEMS} are taken`);
  return definition;
}

/** Throws `ScheduleProblem` where programs, as they were written, are scheduled by the clocks of too many places. */
export function refuseManyZones(scheduled: Iterable<unknown>): void {
  const zones = new Set<string>();
  for (const text of scheduled) {
    const zone = typeof text === 'string' ? zoneOf(text) : null;
    if (zone === null || zones.has(zone)) continue;
    zones.add(zone);
    if (zones.size > MAX_ZONES) throw new ScheduleProblem(`programs are scheduled in more than ${MAX_ZONES} time zones`);
  }
}

function refuseMore(name: string, count: number, most: number): void {
  if (count > most) throw new ScheduleProblem(`Invalid [${name}] parameter: it has ${count} entries, at most ${most} are taken`);
}

/** A duration within the limits of an item; a shorter one is lengthened. */
export function durationOf(milliseconds: number): number {
  return milliseconds < 0 ? UNLIMITED : Math.max(MIN_ITEM_MS, milliseconds);
}

/** The programs sorted by start; programs with equal starts keep their order. */
export function inOrder(programs: readonly Program[]): Program[] {
  return programs.toSorted((a, b) => a.startsAt - b.startsAt);
}

/** The end of each program: the beginning of the next, Infinity for the last. */
export function endOf(programs: readonly Program[], index: number): number {
  return programs[index + 1]?.startsAt ?? Number.POSITIVE_INFINITY;
}

/** Without programs that are over at `now`. */
export function withoutPast(definition: ScheduleDefinition, now: number): ScheduleDefinition {
  const { programs } = definition;
  return { ...definition, programs: programs.filter((_program, index) => endOf(programs, index) > now) };
}

/** Names of files may hold a percent sign of their own. */
function decoded(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
