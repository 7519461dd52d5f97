/** Selects the tracks of a recording. */

import { missingKind } from '../../core/tasks/missing-kind.ts';
import { isMediaTrack, type Track } from '../../media/track.ts';
import type { RecordContainerName } from './record-container.ts';
import { canRecord } from './record-file.ts';
import type { RecordRequest } from './record-request.ts';

/** The result of a selection, for one stream and one container. */
export interface RecordedTracks {
  readonly recorded: readonly Track[];
  /** Unnamed tracks that the container cannot hold, as a text; empty for none. */
  readonly left: string;
  /** Names and ids that were asked for and that no track has, as a text; empty for none. */
  readonly missing: string;
}

/** Throws an `Error` that names a requested track that does not fit, or if no video or audio would be left. */
export function recordedTracks(
  { trackIds, variantNames }: Pick<RecordRequest, 'trackIds' | 'variantNames'>,
  container: RecordContainerName,
  tracks: readonly Track[],
): RecordedTracks {
  const everything = trackIds.length === 0 && variantNames.length === 0;
  const chosen = everything ? tracks : tracks.filter(({ id, variantName }) => trackIds.includes(id) || variantNames.includes(variantName));
  if (chosen.length === 0) throw new Error('no track has the ids or names that were asked for');
  const recorded = chosen.filter((track) => canRecord(container, track));
  const refused = chosen.filter((track) => isMediaTrack(track)).filter((track) => !recorded.includes(track));
  const left = refused.map(({ publicName, codec }) => `${publicName} (${codec})`).join(', ');
  if (recorded.length === 0 && left === '') throw new Error('no track has audio or video');
  const refusal = `${container.toUpperCase()} cannot hold ${left}`;
  if (!everything && left !== '') throw new Error(refusal);
  if (recorded.length === 0) throw new Error(`no track fits into ${container.toUpperCase()}: it cannot hold ${left}`);
  if (missingKind(chosen, recorded).length > 0) throw new Error(refusal);
  const missing = [
    ...variantNames.filter((name) => !chosen.some(({ variantName }) => variantName === name)),
    ...trackIds.filter((wanted) => !chosen.some(({ id }) => id === wanted)).map((id) => `id ${id}`),
  ];
  return { recorded, left, missing: missing.join(', ') };
}
