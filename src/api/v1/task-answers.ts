/** The common part of the routes of recordings and pushes. */
import { MAX_TASKS, TaskRefused } from '../../core/tasks/task-registry.ts';
import type { TaskRequest } from '../../core/tasks/task-request.ts';
import { ApiError, type ErrorCode, notSaved } from '../errors.ts';
import { itemsIn, memberOf, textIn } from '../json/json-value.ts';

/** Errors of one kind of task. */
export interface TaskErrors {
  readonly exists: ErrorCode;
  readonly limit: ErrorCode;
  readonly notSaved: ErrorCode;
}

/** Awaits a change of the task `id` and throws the API error for its refusal. */
export async function carriedOut<T>(change: Promise<T>, id: string, errors: TaskErrors): Promise<T> {
  try {
    return await change;
  } catch (error) {
    if (!(error instanceof TaskRefused)) throw error;
    switch (error.code) {
      case 'duplicate':
        throw new ApiError(errors.exists);
      case 'too-many':
        throw new ApiError(errors.limit, String(MAX_TASKS));
      case 'not-durable':
        throw notSaved(new ApiError(errors.notSaved, id), error.cause);
    }
  }
}

/** The stream, tracks and id in a body. Members of a wrong type count as absent, as in the reference server. */
export function taskRequestIn(body: unknown): TaskRequest {
  const stream = memberOf(body, 'stream');
  return {
    id: textIn(body, 'id'),
    streamName: textIn(stream, 'name'),
    trackIds: itemsIn(stream, 'trackIds', 'tracks').filter((item): item is number => Number.isSafeInteger(item)),
    variantNames: itemsIn(stream, 'variantNames').filter((item): item is string => typeof item === 'string'),
    isConfig: false,
  };
}

/** The names of empty members, each after a blank, as in the messages. */
export function missingIn(members: Readonly<Record<string, string>>): string {
  return Object.entries(members)
    .filter(([, text]) => text === '')
    .map(([name]) => ` ${name}`)
    .join('');
}
