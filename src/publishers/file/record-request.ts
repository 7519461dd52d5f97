/** What a recording is asked to do, as the API, a map file or the state folder say it. */
import { DailySchedule } from './split-schedule.ts';

export const SegmentationRule = {
  /** Timestamps go on from file to file. */
  CONTINUITY: 'continuity',
  /** Every file begins at 0. */
  DISCONTINUITY: 'discontinuity',
} as const;
export type SegmentationRule = (typeof SegmentationRule)[keyof typeof SegmentationRule];

export interface RecordRequest {
  readonly id: string;
  /** Name of the outbound stream. */
  readonly streamName: string;
  /** Both select tracks; when both are empty, all are recorded. */
  readonly trackIds: readonly number[];
  readonly variantNames: readonly string[];
  /** Length of a file, ms; 0 for no limit. */
  readonly interval: number;
  /** `<second> <minute> <hour>`; empty for none. */
  readonly schedule: string;
  readonly segmentationRule: SegmentationRule;
  /** Path templates; empty for those of the publisher. */
  readonly filePath: string;
  readonly infoPath: string;
  readonly metadata: string;
  /** Made by a map file. */
  readonly isConfig: boolean;
}

/** The rule that `text` names; the default for anything else. */
export function segmentationRuleOf(text: unknown): SegmentationRule {
  return text === SegmentationRule.CONTINUITY ? SegmentationRule.CONTINUITY : SegmentationRule.DISCONTINUITY;
}

/** A request that the state folder holds, or null. */
export function storedRequest(value: unknown): RecordRequest | null {
  if (typeof value !== 'object' || value === null) return null;
  const { id, streamName, trackIds, variantNames, interval, schedule, segmentationRule, filePath, infoPath, metadata } = value as Record<
    string,
    unknown
  >;
  if (typeof id !== 'string' || typeof streamName !== 'string' || id === '' || streamName === '') return null;
  if (!Array.isArray(trackIds) || !trackIds.every((trackId) => Number.isInteger(trackId))) return null;
  if (!Array.isArray(variantNames) || !variantNames.every((name) => typeof name === 'string')) return null;
  if (typeof interval !== 'number' || typeof schedule !== 'string') return null;
  if (schedule !== '' && DailySchedule.parse(schedule) === null) return null;
  if (typeof filePath !== 'string' || typeof infoPath !== 'string' || typeof metadata !== 'string') return null;
  return {
    ...{ id, streamName, trackIds, variantNames, interval, schedule, filePath, infoPath, metadata },
    segmentationRule: segmentationRuleOf(segmentationRule),
    isConfig: false,
  };
}
