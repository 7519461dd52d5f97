import type { AudioCodec, VideoCodec } from '../../media/codec.ts';
import {
  type CodecModule,
  chooseEncoders,
  type EncoderCandidate,
  type EncoderChoice,
  type EncoderEntry,
  encodeCodec,
} from '../encoder-catalogue.ts';
import type { Encoder } from './engine/encoder.ts';
import { EngineError } from './engine/library.ts';
import type { PipelineTools } from './pipeline.ts';

/** An encoder at work and its entry in the catalogue. */
export interface OpenEncoder {
  readonly encoder: Encoder;
  readonly entry: EncoderEntry;
}

/** No encoder could be opened. */
export class NoEncoder extends EngineError {
  /** Module of the last attempt; null: there is none for the codec. */
  readonly module: CodecModule | null;

  constructor(message: string, module: CodecModule | null) {
    super(message);
    this.module = module;
  }
}

/** Encoder settings of an encode. */
export interface EncoderWish {
  readonly name: string;
  readonly codec?: string | undefined;
  readonly modules?: string | undefined;
}

/** The codec that an encode names and the encoders to try for it, a named one first; null for an unknown codec. */
export function wantedEncoders(
  { hardware, working }: Pick<PipelineTools, 'hardware' | 'working'>,
  { codec = '', modules = '' }: EncoderWish,
): (EncoderChoice & { readonly codec: VideoCodec | AudioCodec }) | null {
  const wanted = encodeCodec(codec);
  if (wanted === null) return null;
  const named = [wanted.module, modules].filter((text) => text !== '').join(',');
  return { codec: wanted.codec, ...chooseEncoders(wanted.codec, { modules: named, hardware }, working) };
}

/**
 * Opens the first encoder that takes the parameters, counted in the census. Named modules that are missing and encoders that fail
 * are reported once each. Throws NoEncoder when none is left.
 */
export function openEncoder(tools: PipelineTools, encode: EncoderWish, open: (entry: EncoderCandidate) => Encoder): OpenEncoder {
  const wanted = wantedEncoders(tools, encode);
  if (wanted === null) throw new NoEncoder(`unknown codec '${encode.codec ?? ''}'`, null);
  const { candidates, unavailable } = wanted;
  const reasons: string[] = [];
  for (const entry of candidates) {
    try {
      const encoder = open(entry);
      tools.census.encoder(encoder.name, 1);
      if (unavailable.length > 0 || reasons.length > 0) {
        const missing = unavailable.map((module) => `module '${module}' is not available`);
        tools.sink.notice('warn', `encode '${encode.name}' falls back to ${entry.name}: ${[...missing, ...reasons].join('; ')}`);
      }
      return { encoder, entry };
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      reasons.push(error.message);
    }
  }
  throw new NoEncoder(reasons.length > 0 ? reasons.join('; ') : `no encoder for ${wanted.codec}`, candidates.at(-1)?.module ?? null);
}

/** Closes what `openEncoder` opened and takes it out of the census. Call it once. */
export function closeEncoder(tools: PipelineTools, open: OpenEncoder): void {
  open.encoder.close();
  tools.census.encoder(open.encoder.name, -1);
}
