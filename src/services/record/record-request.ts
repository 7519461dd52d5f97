/** The request of a recording, from the API, a map file or the state folder. */
import { storedTaskRequest, type TaskRequest } from '../../core/tasks/task-request.ts';
import { DailySchedule } from './split-schedule.ts';

/** Timestamps at the boundary between two files. */
export const SegmentationRule = {
  /** Timestamps go on from file to file. */
  CONTINUITY: 'continuity',
  /** Every file begins at 0. */
  DISCONTINUITY: 'discontinuity',
} as const;
/** Any of these words. */
export type SegmentationRule = (typeof SegmentationRule)[keyof typeof SegmentationRule];

/** Without a selection all tracks are recorded. */
export interface RecordRequest extends TaskRequest {
  /** Length of a file, ms; 0 for no limit. */
  readonly interval: number;
  /** `<second> <minute> <hour>`; empty for none. */
  readonly schedule: string;
  readonly segmentationRule: SegmentationRule;
  /** Path templates; empty: those of the publisher. */
  readonly filePath: string;
  readonly infoPath: string;
  readonly metadata: string;
}

/** The rule that `text` names; the default for anything else. */
export function segmentationRuleOf(text: unknown): SegmentationRule {
  return text === SegmentationRule.CONTINUITY ? SegmentationRule.CONTINUITY : SegmentationRule.DISCONTINUITY;
}

/** A request that the state folder holds, or null. */
export function storedRequest(value: unknown): RecordRequest | null {
  if (typeof value !== 'object' || value === null) return null;
  const stored = value as Record<string, unknown>;
  const common = storedTaskRequest(stored);
  const { interval, schedule, segmentationRule, filePath, infoPath, metadata } = stored;
  if (common === null) return null;
  if (typeof interval !== 'number' || typeof schedule !== 'string') return null;
  if (schedule !== '' && DailySchedule.parse(schedule) === null) return null;
  if (typeof filePath !== 'string' || typeof infoPath !== 'string' || typeof metadata !== 'string') return null;
  return { ...common, interval, schedule, filePath, infoPath, metadata, segmentationRule: segmentationRuleOf(segmentationRule) };
}
