/** A slot whose jobs and processes fail inside the server: only the failing job is lost. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import type { HelloMessage } from './messages.ts';
import { FrameType } from './process-frames.ts';
import { ProcessSlot, type ProcessSlotOptions } from './process-slot.ts';
import type { SupervisedJob } from './supervised-job.ts';
import type { ProcessOwner } from './transcoder-process.ts';

const { processes, spawning } = vi.hoisted(() => ({
  processes: [] as { readonly owner: ProcessOwner; readonly killed: string[] }[],
  spawning: { fails: 0 },
}));

vi.mock('./transcoder-process.ts', () => ({
  TranscoderProcess: class {
    readonly pid = 1;
    readonly greeted = true;
    readonly writer = { write: () => undefined };
    readonly killed: string[] = [];
    readonly owner: ProcessOwner;

    constructor(_options: unknown, owner: ProcessOwner) {
      this.owner = owner;
      if (spawning.fails > 0) {
        spawning.fails -= 1;
        throw new Error('spawn ENOMEM');
      }
      processes.push(this);
    }

    kill(reason: string): void {
      this.killed.push(reason);
    }
  },
}));

const FAULT = new TypeError('made up');
const fail = (): never => {
  throw FAULT;
};

class FakeJob {
  readonly id: number;
  readonly weight = 0.1;
  readonly calls: string[] = [];
  stuck = 0;

  constructor(id: number) {
    this.id = id;
  }

  start(): void {
    this.calls.push('start');
  }

  restart(): void {
    this.calls.push('restart');
  }

  fail(reason: string): void {
    this.calls.push(`fail: ${reason}`);
  }

  onFrame(): void {
    this.calls.push('frame');
  }

  showQueues(): void {
    this.calls.push('queues');
  }

  stuckFor(): number {
    return this.stuck;
  }
}

let logger: RecordingLogger;
let clock: ManualClock;
let slot: ProcessSlot | null;

beforeEach(() => {
  vi.useFakeTimers();
  logger = new RecordingLogger();
  clock = new ManualClock();
  processes.length = 0;
  spawning.fails = 0;
  slot = null;
});

afterEach(() => {
  slot?.close();
  vi.useRealTimers();
});

function opened(options: Partial<ProcessSlotOptions> = {}): ProcessSlot {
  slot = new ProcessSlot({
    ...{ process: {} as never, clock, logger, onHello: () => undefined, onSuspects: () => undefined, onEmpty: () => undefined },
    ...options,
  });
  return slot;
}

function withJobs(into: ProcessSlot, broken: Partial<FakeJob> = {}): readonly [broken: FakeJob, sound: FakeJob] {
  const jobs = [Object.assign(new FakeJob(1), broken), new FakeJob(2)] as const;
  for (const job of jobs) into.add(job as unknown as SupervisedJob);
  return jobs;
}

const told = (): string[] => logger.lines.filter(({ level }) => level === 'error').map(({ message }) => message);

test.each([
  ['begin', 'start', (owner: ProcessOwner) => owner.onHello({} as HelloMessage), 'start'],
  ['begin again', 'restart', (owner: ProcessOwner) => owner.onExit('SIGKILL'), 'restart'],
  ['take what was made for it', 'onFrame', (owner: ProcessOwner) => frame(owner, FrameType.PACKET, 1, 'x'), 'frame'],
  ['show its queues', 'showQueues', (owner: ProcessOwner) => frame(owner, FrameType.STATUS, 0, '{"queues":[]}'), 'queues'],
] as const)('a job whose call to %s throws fails, and the other job continues', (_what, method, act, call) => {
  const [broken, sound] = withJobs(opened(), { [method]: fail });
  const { owner, killed } = processes[0]!;
  sound.calls.length = 0;
  act(owner);
  if (method === 'onFrame') frame(owner, FrameType.PACKET, 2, 'x');
  expect(broken.calls).toContain('fail: internal error');
  expect([sound.calls, killed]).toEqual([[call], []]);
  expect(told()).toContain('a transcode job failed inside the server');
});

function frame(owner: ProcessOwner, type: number, job: number, payload: string): void {
  owner.onFrame({ type, flags: 0, job, id: 0, pts: 0, dts: 0, duration: 0 } as never, Buffer.from(payload));
}

test('a process that cannot be started is retried, and its jobs fail after some attempts', () => {
  spawning.fails = 2;
  const [, sound] = withJobs(opened());
  expect(processes).toHaveLength(0);
  vi.advanceTimersByTime(1000);
  expect(processes).toHaveLength(1);
  processes[0]!.owner.onHello({} as HelloMessage);
  expect(sound.calls.at(-1)).toBe('start');
  spawning.fails = 100;
  slot?.close();
  const job = new FakeJob(1);
  opened().add(job as unknown as SupervisedJob);
  vi.advanceTimersByTime(60_000);
  expect(job.calls).toContain('fail: no transcoder process comes up: it could not be started: spawn ENOMEM');
});

test('an exception of the owner at the end of a process is logged', () => {
  withJobs(opened({ onSuspects: fail }));
  for (let n = 0; n < 2; n += 1) processes.at(-1)!.owner.onExit('SIGKILL');
  expect(told()).toEqual(['the end of a transcoder process failed inside the server']);
});

test('a periodic check that throws is repeated', () => {
  const [broken, sound] = withJobs(opened(), { stuckFor: fail });
  vi.advanceTimersByTime(1000);
  expect(told()).toEqual(['the watch over transcode jobs failed inside the server']);
  broken.stuckFor = () => 0;
  sound.stuck = 60_000;
  vi.advanceTimersByTime(1000);
  expect(processes[0]!.killed).toEqual(['it took no packet for 60 s']);
});
