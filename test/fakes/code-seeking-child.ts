/** A transcoder process that tells, as the version of its library, where it looks for compiled code. */
import { getCompileCacheDir } from 'node:module';
import { FrameWriter } from '../../src/transcoder/frame-writer.ts';
import { live } from '../../src/transcoder/process/child-life.ts';
import { FrameType } from '../../src/transcoder/process-frames.ts';

live((socket) => ({
  start() {
    new FrameWriter(socket).writeJson(
      { type: FrameType.HELLO },
      { version: getCompileCacheDir() ?? 'nowhere', encoders: [], decoders: [] },
    );
  },
  receive() {},
}));
