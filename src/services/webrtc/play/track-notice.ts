/** A track in the playlist notification for players: as in the API, with numbers for bit rates. */
import type { TrackFigures } from '../../../core/publishing.ts';
import type { WebrtcTrack } from './codec-plan.ts';

/** `figures`: measured values of the track. */
export function trackNotice(track: WebrtcTrack, figures: TrackFigures): object {
  const { id, bypass, codec, bitrateConf } = track;
  const kind = track.type === 'video' ? 'Video' : 'Audio';
  const common = { id, name: track.variantName === '' ? kind : track.variantName, type: kind };
  const { bitrateAvg, bitrateLatest } = figures;
  const coded = { bypass, codec, bitrate: configuredOr(bitrateAvg, bitrateConf), bitrateConf, bitrateAvg, bitrateLatest };
  if (track.type === 'audio') return { ...common, audio: { ...coded, samplerate: track.sampleRate, channel: track.channels } };
  const { width, height, framerateConf, keyFrameIntervalConf = 0 } = track;
  const { framerateAvg, framerateLatest, keyFrameIntervalAvg, keyFrameIntervalLatest, deltaFramesSinceLastKeyFrame, hasBframes } = figures;
  const video = {
    ...coded,
    width,
    height,
    maxWidth: Math.max(figures.maxWidth, width),
    maxHeight: Math.max(figures.maxHeight, height),
    framerate: configuredOr(framerateAvg, framerateConf),
    framerateConf,
    framerateAvg,
    framerateLatest,
    keyFrameInterval: configuredOr(keyFrameIntervalAvg, keyFrameIntervalConf),
    keyFrameIntervalConf,
    keyFrameIntervalAvg,
    keyFrameIntervalLatest,
    deltaFramesSinceLastKeyFrame,
    hasBframes,
  };
  return { ...common, video };
}

function configuredOr(measured: number, configured: number): number {
  return configured > 0 ? configured : measured;
}
