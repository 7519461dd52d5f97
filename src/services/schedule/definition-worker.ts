/** The thread that reads large schedule files: see `definition-thread.ts`. */
import { answerWork } from '../../util/work-answer.ts';
import { parseScheduleFile } from './definition-file.ts';
import type { ReadSchedule, ScheduleFile, ScheduleRecord } from './definition-thread.ts';

/** Records of one list: they are read in less than a millisecond. */
const AT_ONCE = 500;

answerWork(({ text, name, file }: ScheduleFile): ReadSchedule => {
  const { stream, fallback, programs } = parseScheduleFile(text, name, file);
  const records: ScheduleRecord[] = [...fallback];
  for (const program of programs) records.push({ ...program, items: [] }, ...program.items);
  const lists: string[] = [];
  for (let at = 0; at < records.length; at += AT_ONCE) lists.push(JSON.stringify(records.slice(at, at + AT_ONCE)));
  return { stream, lists };
});
