/** A scheduled channel as the API shows it. */
import { formatTimestamp } from '../../util/timestamp.ts';
import { definitionToJson } from './definition-json.ts';
import { endOf, type ItemOnAir, type ScheduleDefinition } from './schedule-definition.ts';
import type { ScheduledChannel } from './scheduled-channel.ts';

/** The end of an endless program: the last moment that the reference server can name, ms since the epoch. */
const NEVER = 9_223_372_036_854;

/** The definition of a channel, with its item on air at `now`; `channel` is undefined while the channel does not play. */
export function scheduledChannelInformation(
  definition: ScheduleDefinition,
  channel: Pick<ScheduledChannel, 'settings' | 'onAir'> | undefined,
  now: number,
): object {
  const stream = channel?.settings ?? definition.stream;
  return { ...definitionToJson({ ...definition, stream }), currentProgram: currentProgram(definition, channel?.onAir ?? null, now) };
}

function currentProgram({ programs }: ScheduleDefinition, onAir: ItemOnAir | null, now: number): object {
  const index = programs.findLastIndex(({ startsAt }) => startsAt <= now);
  const program = programs[index];
  if (program === undefined) return { state: 'offair' };
  const end = endOf(programs, index);
  const { name, repeat, startsAt } = program;
  const shown = {
    ...{ name, repeat, scheduled: formatTimestamp(startsAt) },
    ...{ end: formatTimestamp(Math.min(end, NEVER)), duration: Number.isFinite(end) ? end - startsAt : -1 },
  };
  if (onAir?.programStartsAt !== startsAt) return { ...shown, state: 'offair' };
  const { item, position } = onAir;
  const { url, start, duration } = item;
  return { ...shown, state: 'onair', currentItem: { url, start, duration, currentPosition: position } };
}
