/** A slot whose jobs and processes fail inside the server: only the failing job is lost. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { audioPackets, audioTrack } from '../../test/fakes/synthetic-media.ts';
import { audioConfig } from '../../test/fakes/transcode-run.ts';
import { QueueRegistry } from '../core/queue-registry.ts';
import { LabelSlots } from '../util/label-slots.ts';
import { MetricsPage } from '../util/metrics.ts';
import type { HelloMessage } from './messages.ts';
import { type FrameHeader, FrameType } from './process-frames.ts';
import { ProcessSlot, type ProcessSlotOptions } from './process-slot.ts';
import type { SupervisedJob } from './supervised-job.ts';
import { TranscoderSupervisor } from './supervisor.ts';
import type { ProcessOwner } from './transcoder-process.ts';

const { processes, spawning } = vi.hoisted(() => ({
  processes: [] as { readonly owner: ProcessOwner; readonly killed: string[]; readonly sent: number[][]; silentRounds: number }[],
  spawning: { fails: 0 },
}));

vi.mock('./transcoder-process.ts', async (importOriginal) => ({
  ...(await importOriginal<object>()),
  TranscoderProcess: class {
    readonly pid = 1;
    readonly greeted = true;
    /** Types and jobs of the frames. */
    readonly sent: number[][] = [];
    readonly writer = {
      write: ({ type, job }: FrameHeader) => this.sent.push([type, job]),
      writeJson: ({ type, job }: FrameHeader) => this.sent.push([type, job]),
    };
    readonly killed: string[] = [];
    silentRounds = 0;
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
  stuckRounds = 0;

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

  look(): number {
    return this.stuckRounds;
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
    ...{ process: {} as never, clock, logger, onHello: () => undefined, onSuspects: () => undefined },
    ...{ onStuck: () => false, onEmpty: () => undefined },
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
  const [broken, sound] = withJobs(opened(), { look: fail });
  vi.advanceTimersByTime(1000);
  expect(told()).toEqual(['the watch over transcode jobs failed inside the server']);
  broken.look = () => 0;
  sound.stuckRounds = 60;
  vi.advanceTimersByTime(1000);
  expect(processes[0]!.killed).toEqual(['it took no packet for 60 s']);
});

const warned = (): string[] => logger.lines.filter(({ level }) => level === 'warn').map(({ message }) => message);

function rounds(count: number): void {
  vi.advanceTimersByTime(count * 1000);
}

test('a process that does not end a job keeps its others, takes no new ones and is killed after the last', () => {
  const onHung = vi.fn();
  const made = opened({ onHung });
  const [first, second] = withJobs(made);
  const [{ owner, killed }] = processes as [(typeof processes)[0]];
  made.remove(first as unknown as SupervisedJob);
  rounds(5);
  expect([made.fits(0.1, 8), onHung.mock.calls.length]).toEqual([true, 0]);
  rounds(60);
  frame(owner, FrameType.PACKET, 2, 'x');
  expect([second.calls, killed, made.fits(0.1, 8), onHung.mock.calls.length]).toEqual([['start', 'frame'], [], false, 1]);
  expect(warned()).toEqual([
    'transcoder process 1 did not end a job within 5 s: it keeps 1 other job, takes no new ones and is ended after them',
  ]);
  made.remove(second as unknown as SupervisedJob);
  expect(killed).toEqual(['the job with which it hung was its last one']);
});

test('a process that ends a job late takes new ones again', () => {
  const made = opened();
  const [first] = withJobs(made);
  made.remove(first as unknown as SupervisedJob);
  rounds(10);
  expect(made.fits(0.1, 8)).toBe(false);
  frame(processes[0]!.owner, FrameType.CLOSED, 1, '');
  expect([made.fits(0.1, 8), processes[0]!.killed]).toEqual([true, []]);
});

test('a job with which its process hangs continues elsewhere, and the other keeps the process', () => {
  const onStuck = vi.fn(() => true);
  const made = opened({ onStuck });
  const [stuck, other] = withJobs(made);
  const [{ owner, killed, sent }] = processes as [(typeof processes)[0]];
  stuck.stuckRounds = 11;
  rounds(1);
  expect([stuck.calls.at(-1), onStuck.mock.calls, sent.at(-1)]).toEqual(['restart', [[stuck]], [FrameType.CLOSE, 1]]);
  for (const job of [1, 2]) frame(owner, FrameType.PACKET, job, 'x');
  expect([stuck.calls, other.calls, killed]).toEqual([['restart'], ['start', 'frame'], []]);
  expect(made.fits(0.1, 8)).toBe(false);
  expect(warned()).toEqual([
    'transcoder process 1 took no packet of a job for 10 s: it keeps 1 other job, takes no new ones and is ended after them',
  ]);
});

test.each([
  ['has sent nothing at all', 1, 6],
  ['takes packets of no job', 2, 0],
])('a process that hangs with a job and %s is killed', (_what, count, silentRounds) => {
  const onStuck = vi.fn(() => true);
  for (const job of withJobs(opened({ onStuck })).slice(0, count)) job.stuckRounds = 11;
  processes[0]!.silentRounds = silentRounds;
  rounds(1);
  expect([processes[0]!.killed, onStuck.mock.calls.length]).toEqual([['it took no packet for 11 s'], 0]);
});

test('a job with which its process hangs gets one of its own', async () => {
  const queues = new QueueRegistry(clock);
  const supervisor = new TranscoderSupervisor({ clock, logger, queues, maxProcesses: 2 });
  const track = audioTrack();
  const encode = { id: 10, sourceId: track.id, type: 'audio', encode: audioConfig() } as const;
  const listener = { onTrack: () => undefined, onPacket: () => undefined, onEncodeFailed: () => undefined };
  const open = (stream: string) =>
    supervisor.open({ vhost: 'default', app: 'app', stream, encodes: [encode], decoderThreads: 1, onlyKeyframes: false }, listener);
  const sessions = ['a', 'b'].map(open);
  expect(processes).toHaveLength(1);
  processes[0]!.owner.onHello({} as HelloMessage);
  const [packet] = audioPackets(track, 1);
  for (let round = 0; round < 12; round += 1) {
    for (const session of sessions) session.push(packet!);
    processes[0]!.owner.onFrame({ type: FrameType.TAKEN, flags: 0, job: 2, id: track.id, pts: 0, dts: 0, duration: 1 }, Buffer.alloc(0));
    rounds(1);
  }
  expect(processes.map(({ killed }) => killed)).toEqual([[], []]);
  processes[1]!.owner.onHello({} as HelloMessage);
  expect(processes[1]!.sent.filter(([type]) => type === FrameType.OPEN)).toEqual([[FrameType.OPEN, 1]]);
  const page = new MetricsPage({ streams: new LabelSlots(1), applications: new LabelSlots(1) });
  void supervisor.metrics.collect(page);
  expect(page.text('prometheus')).toContain('\nmillrace_transcoder_jobs_hung_total 1\n');
  await supervisor.close();
});
