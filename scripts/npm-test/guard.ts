/** A child program that is killed, with all its descendants, when it takes too long. */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';

/** Settings of a child. */
export interface GuardOptions {
  readonly cwd: string;
  readonly deadlineMs: number;
  /** Time between SIGTERM and SIGKILL; default: 10,000. */
  readonly graceMs?: number;
  /** Added to the present environment. */
  readonly variables?: NodeJS.ProcessEnv;
  /** Gives way to other programs. */
  readonly isPatient?: boolean;
  /** A descriptor for its output; default: ours. */
  readonly output?: number;
}

/** `nice` of a patient program: a tenth of the processor while others want it, and all that they leave. */
const PATIENCE = '10';
/** Ends what runs now: several may at once. */
const running = new Set<(signal: NodeJS.Signals) => void>();

/**
 * Runs a Node program in its own process group, with our output unless another is given. The rest of the group is ended with it, because servers and encoders of an
 * aborted run would slow down the next run. Signals that we receive end the group, too.
 * @returns its exit code, -1 if it was killed for taking too long
 */
export function runGuarded(args: readonly string[], options: GuardOptions): Promise<number> {
  const { cwd, deadlineMs, graceMs = 10_000, variables, isPatient = false, output = 'inherit' } = options;
  return new Promise((resolve, reject) => {
    const env = { ...process.env, ...variables };
    const [program = '', ...rest] = [...(isPatient ? ['nice', '-n', PATIENCE] : []), process.execPath, ...args];
    const child = spawn(program, rest, { cwd, env, stdio: ['ignore', output, output], detached: true });
    if (isPatient) yieldAsGroup(child.pid);
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
      for (const kill of running) kill(signal);
      process.exit(1);
    };
    running.add(killGroup);
    process.on('SIGINT', interrupted).on('SIGTERM', interrupted);
    const stop = (): void => {
      clearTimeout(soft);
      clearTimeout(hard);
      running.delete(killGroup);
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

/**
 * Lowers the priority of a whole session. Where Linux groups programs by session (`sched_autogroup_enabled`), `nice` works only within the
 * session, and a detached child has a session of its own.
 */
function yieldAsGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) writeFileSync(`/proc/${pid}/autogroup`, PATIENCE, { flag: 'r+' });
  } catch {
    // No such groups here: `nice` is enough.
  }
}
