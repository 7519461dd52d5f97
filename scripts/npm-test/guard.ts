/** A child program that is killed, with all its descendants, when it takes too long. */
import { spawn } from 'node:child_process';

/** Settings of a child. */
export interface GuardOptions {
  readonly cwd: string;
  readonly deadlineMs: number;
  /** Time between SIGTERM and SIGKILL; default: 10,000. */
  readonly graceMs?: number;
  /** Added to the present environment. */
  readonly variables?: NodeJS.ProcessEnv;
}

/**
 * Runs a Node program with our output, in its own process group. The rest of the group is ended with it, because servers and encoders of an
 * aborted run would slow down the next run. Signals that we receive end the group, too.
 * @returns its exit code, -1 if it was killed for taking too long
 */
export function runGuarded(args: readonly string[], options: GuardOptions): Promise<number> {
  const { cwd, deadlineMs, graceMs = 10_000, variables } = options;
  return new Promise((resolve, reject) => {
    const env = { ...process.env, ...variables };
    const child = spawn(process.execPath, args, { cwd, env, stdio: ['ignore', 'inherit', 'inherit'], detached: true });
    const killGroup = (signal: NodeJS.Signals): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, signal);
      } catch {
        // No process is left.
      }
    };
    let late = false;
    const soft = setTimeout(() => {
      late = true;
      console.log(`not done after ${Math.round(deadlineMs / 1000)} s: ending it`);
      child.kill('SIGTERM');
    }, deadlineMs);
    const hard = setTimeout(() => killGroup('SIGKILL'), deadlineMs + graceMs);
    const interrupted = (signal: NodeJS.Signals): void => {
      killGroup(signal);
      process.exit(1);
    };
    process.on('SIGINT', interrupted).on('SIGTERM', interrupted);
    const stop = (): void => {
      clearTimeout(soft);
      clearTimeout(hard);
      process.off('SIGINT', interrupted).off('SIGTERM', interrupted);
    };
    child.once('error', (error) => {
      stop();
      reject(error);
    });
    // Not `close`: a descendant may hold our output open.
    child.once('exit', (code) => {
      stop();
      killGroup('SIGKILL');
      resolve(late ? -1 : (code ?? -1));
    });
  });
}
