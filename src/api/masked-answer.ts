/** Answers for those who may only read. */
import { maskedJson } from '../util/masked-json.ts';
import type { Answer } from './envelope.ts';

/** `answer` without secrets; no route can forget it. What is no JSON stays as it is. */
export function maskedAnswer(answer: Answer): Answer {
  return answer.type === undefined ? { ...answer, body: maskedJson(answer.body) } : answer;
}
