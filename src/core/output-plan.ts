import type { OutputProfilesConfig } from '../config/index.ts';
import type { OutputPlan } from './stream-outputs.ts';

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
