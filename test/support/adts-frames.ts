/** The ADTS frames of a whole file. The server itself reads one at a time. */
import { type AdtsFrame, parseAdtsHeader } from '../../src/codecs/aac/adts.ts';
import { ProtocolError } from '../../src/util/protocol-error.ts';

/** The frames of `data` in order. Throws `ADTS` for a broken or incomplete frame. */
export function* adtsFrames(data: Uint8Array): Generator<AdtsFrame> {
  let offset = 0;
  while (offset < data.length) {
    const frame = parseAdtsHeader(data, offset);
    if (frame.frameLength > data.length - offset) {
      throw new ProtocolError('ADTS', `frame of ${frame.frameLength} bytes, ${data.length - offset} left`, offset);
    }
    yield frame;
    offset += frame.frameLength;
  }
}
