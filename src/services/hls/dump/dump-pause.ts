/** What is told of a dump while the disk refuses its files. */
import type { Conditions } from '../../../util/conditions.ts';
import { diskFault } from '../../../util/disk-fault.ts';
import type { Logger } from '../../../util/logger.ts';

/** The dump to a folder, which it has for itself. */
export interface PausedDump {
  /** Absolute. */
  readonly folder: string;
  readonly conditions: Conditions;
  readonly logger: Logger;
}

/** Key of the condition. */
export function dumpCondition(folder: string): string {
  return `dump ${folder}`;
}

/** The disk refuses files: segments are missing from now on. */
export function tellPause({ folder, conditions, logger }: PausedDump, error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  logger.error({ err: error, folder }, `dump misses segments until the disk takes files again: ${message}`);
  conditions.raise(dumpCondition(folder), `a dump misses segments: ${diskFault(error) ?? 'its files cannot be written'}`);
}

/** It takes them again. */
export function tellResumption({ folder, conditions, logger }: PausedDump): void {
  logger.info({ folder }, 'dump goes on: the disk takes files again');
  conditions.clear(dumpCondition(folder));
}
