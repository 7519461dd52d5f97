/** Sampling frequencies and channel configurations of AAC, ISO/IEC 14496-3 §1.6.3. */

/** Hz by `samplingFrequencyIndex`. */
const SAMPLING_FREQUENCIES: readonly number[] = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
];

/** `samplingFrequencyIndex` of a frequency that follows in 24 bits. */
export const ESCAPE_FREQUENCY_INDEX = 15;

/** Channels by `channelConfiguration`; 0: a program config element lists them. */
const CHANNELS: readonly number[] = [0, 1, 2, 3, 4, 5, 6, 8, 0, 0, 0, 7, 8, 24, 8];

/** Hz of an index; undefined for reserved indices and the escape value. */
export function frequencyOfIndex(index: number): number | undefined {
  return SAMPLING_FREQUENCIES[index];
}

/** Index of a frequency; -1 if it has none and must be written behind the escape value. */
export function indexOfFrequency(hertz: number): number {
  return SAMPLING_FREQUENCIES.indexOf(hertz);
}

/** Index whose tables a decoder uses for a frequency (§4.5.1.1): the nearest one in the standard's bands. */
export function nearestFrequencyIndex(hertz: number): number {
  const exact = indexOfFrequency(hertz);
  if (exact >= 0) return exact;
  let best = 0;
  SAMPLING_FREQUENCIES.forEach((candidate, index) => {
    if (Math.abs(candidate - hertz) < Math.abs((SAMPLING_FREQUENCIES[best] ?? 0) - hertz)) best = index;
  });
  return best;
}

/** Channels of a configuration; 0 if a program config element lists them. */
export function channelsOfConfiguration(configuration: number): number {
  return CHANNELS[configuration] ?? 0;
}
