/** A file process under the control of a malicious file: it sends without end and without waiting. */
import { FrameWriter } from '../../src/transcoder/frame-writer.ts';
import { live } from '../../src/transcoder/process/child-life.ts';
import { FrameType } from '../../src/transcoder/process-frames.ts';

const NOTHING = { flags: 0, job: 0, id: 0, pts: 0, dts: 0, duration: 0 };

live((socket) => {
  const writer = new FrameWriter(socket);
  const track = {
    ...{ id: 0, type: 'audio', codec: 'MP3', format: 'raw', timebase: { num: 1, den: 1000 }, config: null },
    ...{ bitrateConf: 0, sampleRate: 48_000, channels: 2 },
  };
  const flood = (): void => {
    for (let count = 0; count < 100; count += 1) writer.write({ ...NOTHING, type: FrameType.PACKET }, new Uint8Array(1000));
  };
  return {
    start() {
      writer.writeJson({ type: FrameType.HELLO }, { version: 'none', encoders: [], decoders: [] });
      const file = { container: 'flood', start: 0, length: null, tracks: [track], changed: [], omitted: [] };
      writer.writeJson({ type: FrameType.FILE }, file);
      setInterval(flood, 1);
    },
    receive() {},
  };
});
