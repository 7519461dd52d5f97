/** ffmpeg that sends a moving test pattern over SRT in a transport stream. */
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { Child } from './child.ts';

/** Starts at once; the caller ends it. */
export function encodeSrt(url: string): Child {
  const input = ['-re', '-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=30'];
  const codec = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '30', '-pix_fmt', 'yuv420p'];
  return new Child(requireProgram('ffmpeg'), ['-v', 'warning', '-nostdin', ...input, ...codec, '-f', 'mpegts', url]);
}
