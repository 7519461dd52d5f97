/** The thread that reads large schedule files: see `definition-thread.ts`. */
import { answerWork } from '../../util/work-answer.ts';
import { parseScheduleFile } from './definition-file.ts';
import type { ScheduleFile } from './definition-thread.ts';

answerWork(({ text, name, file }: ScheduleFile) => JSON.stringify(parseScheduleFile(text, name, file)));
