/** A track as the playlist notification tells players about it. */
import type { WebrtcTrack } from './codec-plan.ts';

export function trackNotice(track: WebrtcTrack): object {
  const { id, bypass, codec, bitrateConf } = track;
  const kind = track.type === 'video' ? 'Video' : 'Audio';
  const common = { id, name: track.variantName === '' ? kind : track.variantName, type: kind };
  if (track.type === 'audio') {
    return { ...common, audio: { bypass, codec, bitrate: bitrateConf, samplerate: track.sampleRate, channel: track.channels } };
  }
  const { width, height, framerateConf } = track;
  return { ...common, video: { bypass, codec, bitrate: bitrateConf, framerate: framerateConf, width, height } };
}
