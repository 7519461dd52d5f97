/** The common part of requests for recordings and pushes. */

/** Ids are the client's and unique in the application. */
export interface TaskRequest {
  readonly id: string;
  /** Name of the outbound stream. */
  readonly streamName: string;
  /** Both select tracks; an empty selection means what the kind of task says. */
  readonly trackIds: readonly number[];
  readonly variantNames: readonly string[];
  /** Made by a map file: such a task is gone with its stream. */
  readonly isConfig: boolean;
}

/** The common part of a request that the state folder holds; null when it is none. */
export function storedTaskRequest(value: Readonly<Record<string, unknown>>): TaskRequest | null {
  const { id, streamName, trackIds, variantNames } = value;
  if (typeof id !== 'string' || typeof streamName !== 'string' || id === '' || streamName === '') return null;
  if (!Array.isArray(trackIds) || !trackIds.every((trackId) => Number.isInteger(trackId))) return null;
  if (!Array.isArray(variantNames) || !variantNames.every((name) => typeof name === 'string')) return null;
  return { id, streamName, trackIds, variantNames, isConfig: false };
}
