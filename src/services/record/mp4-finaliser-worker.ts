/** The thread that finishes recordings: see `finalise.ts`. */
import { answerWork } from '../../util/work-answer.ts';
import { finaliseMp4 } from './mp4-finaliser.ts';

answerWork(finaliseMp4);
