/** `millrace ctl` in this process. */
import { text } from 'node:stream/consumers';
import { runCtl } from '../ctl/run.ts';

/** Runs the command with the arguments after its name; resolves with the exit code. */
export function ctl(args: readonly string[]): Promise<number> {
  // The reader has closed the pipe, as `head` does.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  return runCtl(args, {
    env: process.env,
    out: (written) => void process.stdout.write(written),
    err: (written) => void process.stderr.write(written),
    input: () => text(process.stdin),
  });
}
