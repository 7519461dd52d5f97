import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { StartProblem } from '../core/port-openings.ts';
import { loadAddon } from '../native/addon.ts';
import { ConfigProblem, MillraceServer, type ReloadOutcome } from '../server.ts';
import { StateFolderProblem } from '../state/state-lock.ts';
import { counted } from '../util/counted.ts';
import { createLogger } from '../util/create-logger.ts';
import { messageOf } from '../util/message-of.ts';
import { type CommandLine, ExitCode } from './command-line.js';
import type { ProcessSignals } from './process-signals.ts';
import { ServiceManager } from './service-manager.ts';
import { YoungHeap } from './young-heap.ts';

/** Limit of a stop, ms. The process is to end within 5 s, and first writes its compiled code. */
const STOP_DEADLINE_MS = 3900;
/** Time after which memory that only the start used is returned to the system, ms. */
const SETTLED_MS = 1500;
/**
 * The heap may double between two full collections. By default V8 lets a steady heap like this one grow by 8 MiB only: media fills it
 * several times a second, and every full collection marks everything. Now a full collection begins when 70 % of the growth is used, at once
 * from 85 %; until then young-generation collections are enough.
 */
const HEAP_FLAGS = ['--heap-growing-percent=100', '--incremental-marking-soft-trigger=70', '--incremental-marking-hard-trigger=85'];
/**
 * Optimise functions after 2000 calls instead of 400. A process with one stream calls hundreds of functions a few hundred times in its
 * first seconds, and compiling all of them costs more than it saves; a function called for each packet still reaches 2000 within half a
 * minute.
 */
const COMPILER_FLAGS = ['--invocation-count-for-maglev=2000'];

/** Minimum of the semi-spaces of threads that start later, MB: `YoungHeap` of the main thread also ends the growth of theirs. */
const THREAD_FLAGS = ['--min-semi-space-size=4'];

/**
 * Ends the process by SIGKILL from a worker thread. A normal exit first writes the compile cache, which takes a second after the first
 * start; so does a signal from the thread that compiled. A thread that compiled nothing can send the signal at once.
 */
function killAtOnce(): void {
  new Worker("process.kill(process.pid, 'SIGKILL')", { eval: true, execArgv: [], env: {} });
}

/** Text of `systemctl status` after a reload. */
function statusOf(outcome: ReloadOutcome): string {
  if (outcome.kind === 'refused') return `running; the configuration was not reloaded: ${outcome.reason}`;
  const late = outcome.changes.filter(({ effect }) => effect === 'restart').length;
  return `running; ${counted(outcome.changes.length, 'change')} reloaded${late === 0 ? '' : `, ${late} of them only with a restart`}`;
}

/** Starts the server and resolves with the exit code after it has stopped. */
export async function serve(line: CommandLine, signals: ProcessSignals): Promise<number> {
  // Ignored: the banner has no reader, or the disk is full.
  process.stdout.on('error', () => {});
  const logger = await createLogger({ format: line.logFormat, level: line.logLevel ?? 'info' });
  const manager = new ServiceManager({ logger, environment: process.env });
  const over = Promise.withResolvers<number>();
  let server: MillraceServer | null = null;
  let stopping = false;
  let grace: PromiseWithResolvers<void> | null = null;
  let hungUp = false;
  let exitCode: number = ExitCode.CLEAN;

  const stop = async (why: string): Promise<void> => {
    stopping = true;
    manager.stopping();
    logger.info({}, `stopping: ${why}`);
    const deadline = setTimeout(() => {
      logger.warn({ seconds: STOP_DEADLINE_MS / 1000 }, 'the stop took too long: the process exits');
      process.exit(ExitCode.FAILURE);
    }, STOP_DEADLINE_MS);
    await server?.stop();
    // From here on the deadline ends only a start under way, or anything else that keeps the process alive.
    deadline.unref();
    manager.close();
    logger.info({}, 'stopped');
    over.resolve(exitCode);
  };
  /** Waits for the present clients to leave, for at most the configured time; another signal ends the wait. */
  const empty = async (): Promise<void> => {
    const limit = server?.gracePeriodMs ?? 0;
    if (server === null || limit === 0) return;
    grace = Promise.withResolvers<void>();
    const timer = setTimeout(grace.resolve, limit);
    manager.status('draining');
    logger.info({ graceMs: limit }, `SIGTERM: the server stops when all clients have left, after ${limit} ms at the latest`);
    await server.empty(grace.promise);
    clearTimeout(timer);
    grace = null;
  };
  signals.follow({
    stop: (signal) => {
      if (!stopping) void (signal === 'SIGTERM' ? empty() : Promise.resolve()).then(() => stop(signal));
    },
    force: () => {
      if (grace !== null) {
        grace.resolve();
        return;
      }
      logger.close();
      killAtOnce();
    },
    reload: () => {
      // A start under way may have read the file before it changed.
      if (server === null) hungUp = true;
      else void server.reload();
    },
    say: (sentence) => logger.info({}, sentence),
  });
  process.on('uncaughtException', (error) => {
    logger.error({ err: error }, `internal error, the server stops: ${error.message}`);
    exitCode = ExitCode.FAILURE;
    // A stop under way continues: it is finishing files.
    if (!stopping) void stop('internal error');
  });

  manager.status('starting');
  try {
    server = await MillraceServer.start({
      configFile: line.config,
      stateFolder: line.state,
      forgetApiState: line.forgetApiState,
      logger,
      keepLogLevel: line.logLevel !== undefined,
      // The journal, or the log of a container, has readers other than the user who starts the server.
      showToken: process.stdout.isTTY,
      watchConfig: line.watchConfig,
      reloads: { begun: () => manager.reloading(), over: (outcome) => manager.ready(statusOf(outcome)) },
    });
  } catch (error) {
    if (error instanceof ConfigProblem) {
      process.stderr.write(`${error.message}\n`);
      return ExitCode.USAGE;
    }
    const message = `could not start: ${messageOf(error)}`;
    const isKnown = error instanceof StartProblem || error instanceof StateFolderProblem;
    logger.error(isKnown ? {} : { err: error }, message);
    return ExitCode.FAILURE;
  }
  // Only now, because the modules of Node.js were compiled under the flags of its build.
  for (const flag of [...HEAP_FLAGS, ...COMPILER_FLAGS, ...THREAD_FLAGS]) setFlagsFromString(flag);
  const youngHeap = new YoungHeap();
  if (stopping) await server.stop();
  else {
    process.stdout.write(server.banner);
    manager.ready('running');
    setTimeout(() => loadAddon().addon?.trimMemory(), SETTLED_MS).unref();
    if (hungUp) void server.reload();
  }
  const code = await over.promise;
  youngHeap.close();
  await logger.flush();
  return code;
}
