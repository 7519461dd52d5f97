/** The common part of requests for recordings and pushes. */

/** Ids are the client's and unique in the application. */
export interface TaskRequest {
  readonly id: string;
  /** Name of the outbound stream. */
  readonly streamName: string;
  /** Both select tracks; the kind of task defines the meaning of an empty selection. */
  readonly trackIds: readonly number[];
  readonly variantNames: readonly string[];
  /** Made by a map file: the task ends with its stream. */
  readonly isConfig: boolean;
}

/** The common part of a request from the state folder; null when it is invalid. */
export function storedTaskRequest(value: Readonly<Record<string, unknown>>): TaskRequest | null {
  const { id, streamName, trackIds, variantNames } = value;
  if (typeof id !== 'string' || typeof streamName !== 'string' || id === '' || streamName === '') return null;
  if (!Array.isArray(trackIds) || !trackIds.every((trackId) => Number.isInteger(trackId))) return null;
  if (!Array.isArray(variantNames) || !variantNames.every((name) => typeof name === 'string')) return null;
  return { id, streamName, trackIds, variantNames, isConfig: false };
}
