/** Describes an elementary stream of a transport stream to the core. */
import { describeAudio, describeVideo } from '../codecs/describe.ts';
import type { StreamDescription, StreamKind } from '../containers/mpegts/stream-kind.ts';
import type { SourceTrack } from '../core/ingest.ts';
import { AudioCodec, BitstreamFormat } from '../media/codec.ts';
import { MPEG_90K } from '../media/timebase.ts';

/** Elementary streams that become tracks. */
export type ReadableKind = Exclude<StreamKind, { type: 'unsupported' | 'splices' }>;

/** An entry of `AudioMap`. */
export interface AudioMapEntry {
  readonly name: string;
  readonly language?: string | undefined;
  readonly characteristics?: string | undefined;
}

/** The track of a stream; `config` is from its reader. Throws `ProtocolError` if it is unintelligible. */
export function transportTrack(
  { pid, language }: StreamDescription,
  kind: ReadableKind,
  { config, label }: { readonly config: Uint8Array | null; readonly label: AudioMapEntry | null },
): SourceTrack {
  const base = { id: pid, timebase: MPEG_90K, bitrateConf: 0 };
  if (kind.type === 'data') return { ...base, type: 'data' };
  if (kind.type === 'video') {
    const described = config === null ? null : describeVideo(kind.codec, config);
    return {
      ...base,
      type: 'video',
      codec: kind.codec,
      format: BitstreamFormat.LENGTH_PREFIXED,
      config,
      framerateConf: 0,
      width: described?.width ?? 0,
      height: described?.height ?? 0,
    };
  }
  const described = config === null ? null : describeAudio(kind.codec, config);
  const spoken = label?.language ?? language;
  return {
    ...base,
    type: 'audio',
    codec: kind.codec,
    format: kind.codec === AudioCodec.AAC ? BitstreamFormat.AAC_RAW : BitstreamFormat.RAW,
    config,
    sampleRate: described?.sampleRate ?? 0,
    channels: described?.channels ?? 0,
    ...(label !== null && { publicName: label.name }),
    ...(spoken !== '' && { language: spoken }),
    ...(label?.characteristics !== undefined && { characteristics: label.characteristics }),
  };
}
