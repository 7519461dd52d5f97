/** The thread that reads large schedule files: see `definition-thread.ts`. */
import { parentPort } from 'node:worker_threads';
import { messageOf } from '../../util/message-of.ts';
import type { WorkAnswer } from '../../util/work-thread.ts';
import { parseScheduleFile } from './definition-file.ts';
import type { ScheduleFile } from './definition-thread.ts';

parentPort?.on('message', (source: ScheduleFile) => parentPort?.postMessage(answerFor(source)));

function answerFor({ text, name, file }: ScheduleFile): WorkAnswer<string> {
  try {
    return { result: JSON.stringify(parseScheduleFile(text, name, file)) };
  } catch (error) {
    return { refused: messageOf(error) };
  }
}
