/** Reads schedule files: large ones in a thread of their own, because reading takes 0.3 ms for each thousand characters. */
import type { Logger } from '../../util/logger.ts';
import { WorkThread, WorkThreadLost } from '../../util/work-thread.ts';
import { parseScheduleFile } from './definition-file.ts';
import type { ScheduleDefinition } from './schedule-definition.ts';

/** Characters. A shorter file is read faster than it crosses to a thread and back. */
const LARGE = 32 * 1024;
/** The largest file takes half a second, on a machine that has nothing else to do. */
const DEADLINE_MS = 30_000;
const IDLE_MS = 10_000;
/** The file of the thread, also after a build. */
const ENTRY = new URL(import.meta.url.endsWith('.ts') ? './definition-worker.ts' : './definition-worker.js', import.meta.url);

/** A file, as the thread gets it and `parseScheduleFile` takes it. */
export interface ScheduleFile {
  readonly text: string;
  readonly name: string;
  readonly file: string;
}

/** The definition as JSON, whose reading takes half as long as that of an object from another thread. */
export type ReadingThread = Pick<WorkThread<ScheduleFile, string>, 'run'>;

const shared: ReadingThread = new WorkThread({ entry: ENTRY, name: 'schedules', deadline: DEADLINE_MS, idle: IDLE_MS });

/** Like `parseScheduleFile`. Rejects as well for a file that the thread has read for half a minute. `thread` is for tests. */
export function readScheduleFile(
  source: ScheduleFile,
  logger: Pick<Logger, 'warn'>,
  thread = shared,
): ScheduleDefinition | Promise<ScheduleDefinition> {
  return source.text.length < LARGE ? parsed(source) : readInThread(source, logger, thread);
}

async function readInThread(source: ScheduleFile, logger: Pick<Logger, 'warn'>, thread: ReadingThread): Promise<ScheduleDefinition> {
  try {
    return JSON.parse(await thread.run(source)) as ScheduleDefinition;
  } catch (error) {
    if (!(error instanceof WorkThreadLost)) throw error;
    logger.warn({ file: source.file, err: error }, `${error.message}: ${source.file} is read beside everything else`);
    return parsed(source);
  }
}

function parsed({ text, name, file }: ScheduleFile): ScheduleDefinition {
  return parseScheduleFile(text, name, file);
}
