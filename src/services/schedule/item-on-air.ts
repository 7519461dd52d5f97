import type { ScheduleItem } from './schedule-definition.ts';

/** An item of a program that is on air. */
export interface ItemOnAir {
  readonly item: ScheduleItem;
  /** Of its program, ms since the epoch. */
  readonly programStartsAt: number;
  /** Milliseconds into the item. */
  readonly position: number;
}
