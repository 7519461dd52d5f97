/** Reads schedule files: large ones in a thread of their own, because reading takes 0.3 ms for each thousand characters. */
import { entryFile } from '../../util/entry-file.ts';
import { inSlices } from '../../util/in-slices.ts';
import type { Logger } from '../../util/logger.ts';
import { WorkThread, workOrHere } from '../../util/work-thread.ts';
import { parseScheduleFile } from './definition-file.ts';
import type { ChannelSettings, Program, ScheduleDefinition, ScheduleItem } from './schedule-definition.ts';

/** Characters. A shorter file is read faster than it crosses to a thread and back. */
const LARGE = 32 * 1024;
/** The largest file takes half a second, on a machine that has nothing else to do. */
const DEADLINE_MS = 30_000;
const IDLE_MS = 10_000;
const ENTRY = entryFile('./definition-worker', import.meta.url);

/** A file, as the thread gets it and `parseScheduleFile` takes it. */
export interface ScheduleFile {
  readonly text: string;
  readonly name: string;
  readonly file: string;
}

/** A program without its items, which follow; the first items are those of the fallback program. */
export type ScheduleRecord = Program | ScheduleItem;

/** The definition as the thread answers with it: JSON is read faster than objects from another thread, and in pieces. */
export interface ReadSchedule {
  readonly stream: ChannelSettings;
  /** Lists of `ScheduleRecord`, each as JSON. */
  readonly lists: readonly string[];
}

/** Reads schedule files. */
export type ReadingThread = Pick<WorkThread<ScheduleFile, ReadSchedule>, 'run'>;

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
  const read = await workOrHere(thread, source, { file: source.file, here: () => parsed(source), logger });
  return 'lists' in read ? await inSlices(definitionOf(read)) : read;
}

function* definitionOf({ stream, lists }: ReadSchedule): Generator<void, ScheduleDefinition> {
  const fallback: ScheduleItem[] = [];
  const programs: Program[] = [];
  let items = fallback;
  for (const list of lists) {
    for (const record of JSON.parse(list) as readonly ScheduleRecord[]) {
      if ('items' in record) {
        items = [];
        programs.push({ ...record, items });
      } else items.push(record);
    }
    yield;
  }
  return { stream, fallback, programs };
}

function parsed({ text, name, file }: ScheduleFile): ScheduleDefinition {
  return parseScheduleFile(text, name, file);
}
