/** program_config_element, ISO/IEC 14496-3 §4.4.1.1. */
import type { BitReader } from '../../util/bit-reader.ts';

/** Reads the element to its end and counts the channels it lists. */
export function readProgramConfigChannels(reader: BitReader): number {
  reader.skip(10); // element_instance_tag, object_type, sampling_frequency_index
  const front = reader.bits(4);
  const side = reader.bits(4);
  const back = reader.bits(4);
  const lfe = reader.bits(2);
  const data = reader.bits(3);
  const coupling = reader.bits(4);
  if (reader.flag()) reader.skip(4); // mono mixdown
  if (reader.flag()) reader.skip(4); // stereo mixdown
  if (reader.flag()) reader.skip(3); // matrix mixdown
  let channels = lfe;
  for (let i = 0; i < front + side + back; i++) {
    channels += reader.flag() ? 2 : 1; // a channel pair or a single one
    reader.skip(4);
  }
  reader.skip(4 * lfe + 4 * data + 5 * coupling);
  reader.align();
  reader.skip(8 * reader.bits(8)); // comment
  return channels;
}
