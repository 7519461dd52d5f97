import type { OutputProfileConfig, OutputProfilesConfig } from '../config/index.ts';
import type { OverlayRule } from './overlay-files.ts';
import type { DecodeSettings } from './transcode-job.ts';

/** The outputs of a stream: its output profiles, and how it is decoded for them. */
export interface OutputPlan {
  readonly profiles: readonly OutputProfileConfig[];
  readonly decodes: DecodeSettings;
  /** Images over the frames of encodes; none when absent. */
  readonly overlays?: readonly OverlayRule[];
}

/** Default of `Decodes`. */
const DEFAULT_DECODES = { threadCount: 2, onlyKeyframes: false };
const NO_HARDWARE = { enable: false, modules: '' };

/** The plan of output profiles, for streams without advice. */
export function planOf(outputProfiles: OutputProfilesConfig | undefined): OutputPlan {
  const { encoder, decoder } = outputProfiles?.hwaccels ?? {};
  const either = { ...NO_HARDWARE, enable: outputProfiles?.hardwareAcceleration === true };
  const decodes = { ...(outputProfiles?.decodes ?? DEFAULT_DECODES), hardware: encoder ?? either, hardwareDecoding: decoder ?? either };
  return { profiles: outputProfiles?.outputProfile ?? [], decodes };
}
