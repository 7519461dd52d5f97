/** Selects the tracks of a stream that a push task sends. */
import { fourCcOf } from '../../containers/flv/fourcc.ts';
import { canCarry } from '../../containers/mpegts/stream-type.ts';
import { missingKind } from '../../core/tasks/missing-kind.ts';
import { AudioCodec, VideoCodec } from '../../media/codec.ts';
import { type AudioTrack, isMediaTrack, isVideoTrack, type Track, type VideoTrack } from '../../media/track.ts';
import { PushFailure } from './push-failure.ts';
import { PushProtocol, type PushRequest } from './push-request.ts';

const CONTAINERS: Readonly<Record<PushProtocol, string>> = { rtmp: 'RTMP', srt: 'MPEG-TS', mpegts: 'MPEG-TS' };

type Wanted = Pick<PushRequest, 'protocol' | 'trackIds' | 'variantNames'>;

/** The tracks to send, in order of the stream. Throws `PushFailure` that names unsuitable tracks. */
export function pushedTracks(wanted: Wanted, tracks: readonly Track[]): readonly Track[] {
  const everything = wanted.trackIds.length === 0 && wanted.variantNames.length === 0;
  const chosen = everything ? tracks : chooseNamed(wanted, tracks);
  const selected = wanted.protocol === PushProtocol.RTMP ? forRtmp(chosen, everything) : forTransportStream(chosen, everything);
  if (!selected.some(isMediaTrack)) {
    throw new PushFailure('unsuitable', `${wanted.protocol} can carry no track of the stream (${labels(tracks)})`);
  }
  const missing = missingKind(chosen, selected);
  if (missing.length > 0) throw new PushFailure('unsuitable', `${CONTAINERS[wanted.protocol]} cannot carry ${labels(missing)}`);
  return selected;
}

/** Tracks left out because of their codec, unless they were named, as a text; empty for none. */
export function leftOut({ protocol, trackIds, variantNames }: Wanted, tracks: readonly Track[]): string {
  if (protocol === PushProtocol.RTMP || trackIds.length + variantNames.length > 0) return '';
  const left = tracks.filter((track) => (track.type === 'audio' || isVideoTrack(track)) && !canCarry(track));
  return left.length === 0 ? '' : labels(left);
}

/** The FourCC with which Enhanced RTMP carries a track; null if plain RTMP carries it. */
export function enhancedFourCc(track: VideoTrack | AudioTrack): string | null {
  return isPlain(track) ? null : fourCcOf(track.codec);
}

/** Data tracks are sent with any named tracks. */
function chooseNamed({ trackIds, variantNames }: Wanted, tracks: readonly Track[]): readonly Track[] {
  const missing = [
    ...variantNames.filter((name) => !tracks.some((track) => isMediaTrack(track) && track.variantName === name)),
    ...trackIds.filter((id) => !tracks.some((track) => track.id === id)).map((id) => `id ${id}`),
  ];
  if (missing.length > 0) throw new PushFailure('unsuitable', `the stream has no track ${missing.join(', ')} (${labels(tracks)})`);
  return tracks.filter((track) => track.type === 'data' || trackIds.includes(track.id) || variantNames.includes(track.variantName));
}

/** One video and one audio track: the named ones, or the first by id that plain RTMP carries, or the first that Enhanced RTMP does. */
function forRtmp(chosen: readonly Track[], everything: boolean): readonly Track[] {
  const media = chosen.filter((track) => isMediaTrack(track)).sort((a, b) => a.id - b.id);
  if (!everything) requireCarried(CONTAINERS.rtmp, media, (track) => fourCcOf(track.codec) !== null);
  const videos = media.filter(isVideoTrack).filter(({ codec }) => fourCcOf(codec) !== null);
  const audios = media.filter((track) => track.type === 'audio').filter(({ codec }) => fourCcOf(codec) !== null);
  for (const [kind, candidates] of [
    ['video', videos],
    ['audio', audios],
  ] as const) {
    if (!everything && candidates.length > 1) {
      throw new PushFailure('unsuitable', `RTMP carries one ${kind} track, but ${candidates.length} are selected (${labels(candidates)})`);
    }
  }
  const first = <T extends VideoTrack | AudioTrack>(candidates: readonly T[]): T | undefined => candidates.find(isPlain) ?? candidates[0];
  return [first(videos), first(audios)].filter((track) => track !== undefined);
}

function forTransportStream(chosen: readonly Track[], everything: boolean): readonly Track[] {
  if (!everything)
    requireCarried(
      CONTAINERS.mpegts,
      chosen.filter((track) => isMediaTrack(track)),
      canCarry,
    );
  return chosen.filter(canCarry);
}

/** A track requested by name must not be left out silently. */
function requireCarried(
  container: string,
  tracks: readonly (VideoTrack | AudioTrack)[],
  carries: (track: VideoTrack | AudioTrack) => boolean,
): void {
  const refused = tracks.filter((track) => !carries(track));
  if (refused.length > 0) throw new PushFailure('unsuitable', `${container} cannot carry ${labels(refused)}`);
}

function isPlain(track: VideoTrack | AudioTrack): boolean {
  return track.codec === VideoCodec.H264 || track.codec === AudioCodec.AAC;
}

function labels(tracks: readonly Track[]): string {
  const media = tracks.filter((track) => isMediaTrack(track));
  if (media.length === 0) return 'no audio, no video';
  return media.map(({ id, codec, variantName }) => `track ${id}${variantName === '' ? '' : ` '${variantName}'`}: ${codec}`).join(', ');
}
