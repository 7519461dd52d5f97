/** The cost of recording per stream second: CPU and bytes, against ffmpeg that copies the same streams into files. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { requireProgram } from '../scripts/ensure-tools.ts';
import { Child } from '../test/harness/child.ts';
import { until } from '../test/harness/poll.ts';
import { startServer, type TestServer } from '../test/harness/server.ts';
import { cpuRate, median } from './lib/measure.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';
import { publishSource, SOURCE_FPS, sourceFile } from './lib/source.ts';

const STREAMS = 10;
/** Simultaneous recordings over all streams: enough to stand out from the server's other work. */
const RECORDINGS = 50;
const FORMATS = ['mp4', 'ts'] as const;
type Format = (typeof FORMATS)[number];
const TARGET = 1.2;
const WARM_UP_MS = 4000;
const FINISH_DEADLINE_MS = 30_000;
const APP = '/v1/vhosts/default/apps/app';

interface Task {
  readonly id: string;
  readonly recordTime?: number;
}

/** Cost of one way to record: CPU ms and MB per second of a stream. */
interface Cost {
  readonly cpu: number;
  readonly bytes: number;
}

class Recorder {
  readonly server: TestServer;
  readonly root: string;
  readonly #encoders: readonly Child[];

  private constructor(server: TestServer, root: string, encoders: readonly Child[]) {
    this.server = server;
    this.root = root;
    this.#encoders = encoders;
  }

  /** A server with `STREAMS` streams. */
  static async open(source: string): Promise<Recorder> {
    const root = mkdtempSync(path.join(tmpdir(), 'millrace-bench-record-'));
    const server = await startServer({ segmentDuration: 2, segmentCount: 4, withoutHls: true, recordRoot: root });
    const encoders = Array.from({ length: STREAMS }, (_, index) => publishSource(source, server.rtmp(`s${index}`)));
    const recorder = new Recorder(server, root, encoders);
    await until('all streams are there', async () => (await server.api.get<string[]>(`${APP}/streams`)).length === STREAMS);
    await delay(WARM_UP_MS);
    return recorder;
  }

  /** Starts all recordings and resolves when they have begun. */
  async record(format: Format): Promise<void> {
    for (let index = 0; index < RECORDINGS; index += 1) {
      const stream = { name: `s${index % STREAMS}` };
      const name = `r${index}.${format}`;
      await this.server.api.create(`${APP}:startRecord`, { id: name, stream, filePath: `/${name}`, infoPath: '/info.xml' });
    }
    const all = async (): Promise<boolean> => (await this.tasks()).every(({ recordTime = 0 }) => recordTime > 0);
    await until('every recording has begun', all, { deadlineMs: FINISH_DEADLINE_MS });
  }

  tasks(): Promise<Task[]> {
    return this.server.api.get<Task[]>(`${APP}:records`);
  }

  /** Ends all recordings; returns their last states once their files are finished. */
  async finish(): Promise<Task[]> {
    const ended: Task[] = [];
    for (const { id } of await this.tasks()) {
      const { body } = await this.server.api.call('POST', `${APP}:stopRecord`, { id });
      ended.push((body as { response: Task }).response);
    }
    const names = (): string[] => readdirSync(this.root).filter((name) => name.startsWith('r'));
    const done = (): boolean => names().length === ended.length && !readdirSync(this.root).some((name) => name.startsWith('tmp_'));
    await until('every file is finished', done, { deadlineMs: FINISH_DEADLINE_MS });
    return ended;
  }

  clear(): void {
    for (const name of readdirSync(this.root)) rmSync(path.join(this.root, name));
  }

  async close(): Promise<void> {
    await Promise.all(this.#encoders.map((encoder) => encoder.kill()));
    await this.server.close();
    rmSync(this.root, { recursive: true, force: true });
  }
}

/** Number of video packets in a file. */
function videoPackets(file: string): number {
  const args = ['-v', 'error', '-select_streams', 'v', '-count_packets', '-show_entries', 'stream=nb_read_packets', '-of', 'csv=p=0', file];
  return Number.parseInt(execFileSync(requireProgram('ffprobe'), args, { encoding: 'utf8' }), 10);
}

/** The cost per recording that many recordings add to a server with running streams. */
async function measureOurs(recorder: Recorder, format: Format, seconds: number): Promise<Cost & { readonly missing: number }> {
  const { server, root } = recorder;
  const before = await cpuRate(server.pid, seconds);
  await recorder.record(format);
  await delay(WARM_UP_MS);
  const during = await cpuRate(server.pid, seconds);
  const tasks = await recorder.finish();
  const after = await cpuRate(server.pid, seconds);
  if (/packets are (missing|dropped)/.test(server.log)) throw new Error('the server says that packets were dropped');
  let [media, bytes, missing] = [0, 0, 0];
  for (const { id, recordTime = 0 } of tasks) {
    const file = path.join(root, id);
    media += recordTime / 1000;
    bytes += statSync(file).size;
    // The last frame may be in progress when the answer is written.
    missing += Math.max(0, Math.floor((recordTime / 1000) * SOURCE_FPS) - 1 - videoPackets(file));
  }
  recorder.clear();
  return { cpu: (during - (before + after) / 2) / RECORDINGS, bytes: bytes / media / 2 ** 20, missing };
}

/** CPU of one program per stream that reads the source in real time and copies it into files, or discards it, ms/s. */
async function copying(source: string, filesOf: (stream: number) => readonly string[], seconds: number): Promise<number> {
  const programs = Array.from({ length: STREAMS }, (_, stream) => {
    const files = filesOf(stream);
    const outputs = files.length === 0 ? ['-c', 'copy', '-f', 'null', '-'] : files.flatMap((file) => ['-c', 'copy', file]);
    const args = ['-v', 'error', '-nostdin', '-y', '-re', '-stream_loop', '-1', '-i', source, ...outputs];
    return new Child(requireProgram('ffmpeg'), args, { name: 'ffmpeg -c copy' });
  });
  try {
    const all = programs.flatMap((_program, stream) => filesOf(stream));
    const begun = (): boolean => all.every((file) => existsSync(file) && statSync(file).size > 0);
    await until('every copy has begun', begun, { deadlineMs: FINISH_DEADLINE_MS });
    await delay(WARM_UP_MS);
    const rates = await Promise.all(programs.map(({ pid }) => cpuRate(pid, seconds)));
    await Promise.all(programs.map((program) => program.stop('SIGINT')));
    return rates.reduce((sum, rate) => sum + rate, 0);
  } finally {
    await Promise.all(programs.map((program) => program.kill()));
  }
}

/** The cost of ffmpeg for as many files; `reading`: the cost of the same programs without writing. */
async function measureFfmpeg(source: string, format: Format, seconds: number): Promise<Cost & { readonly reading: number }> {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-bench-copy-'));
  const files = Array.from({ length: RECORDINGS }, (_, index) => path.join(folder, `${index}.${format}`));
  const filesOf = (stream: number): string[] => files.filter((_file, index) => index % STREAMS === stream);
  try {
    const reading = await copying(source, () => [], seconds);
    const all = await copying(source, filesOf, seconds);
    const media = files.reduce((sum, file) => sum + videoPackets(file) / SOURCE_FPS, 0);
    const bytes = files.reduce((sum, file) => sum + statSync(file).size, 0);
    return { cpu: all / RECORDINGS, reading: reading / RECORDINGS, bytes: bytes / media / 2 ** 20 };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export async function run({ seconds, rounds }: BenchOptions): Promise<Report> {
  const source = await sourceFile();
  const recorder = await Recorder.open(source);
  const figures: Figure[] = [];
  const notes: string[] = [];
  try {
    for (const format of FORMATS) {
      const ours: (Cost & { readonly missing: number })[] = [];
      const theirs: (Cost & { readonly reading: number })[] = [];
      for (let round = 0; round < rounds; round += 1) {
        ours.push(await measureOurs(recorder, format, seconds));
        theirs.push(await measureFfmpeg(source, format, seconds));
      }
      const of = (costs: readonly Cost[], what: keyof Cost): number => median(costs.map((cost) => cost[what]));
      const common = { target: TARGET };
      figures.push(
        { name: `CPU of a recording, ${format}`, value: of(ours, 'cpu'), unit: 'ms/s', baseline: of(theirs, 'cpu'), ...common },
        {
          name: `bytes of a recording, ${format}`,
          value: of(ours, 'bytes') * 3600,
          unit: 'MB/h',
          baseline: of(theirs, 'bytes') * 3600,
          ...common,
        },
      );
      const missing = Math.max(...ours.map((cost) => cost.missing));
      figures.push({ name: `frames missing in ${RECORDINGS} recordings, ${format}`, value: missing, unit: '', target: 0 });
      const list = (values: readonly number[]): string => values.map((value) => value.toFixed(2)).join(', ');
      const ratios = ours.map(({ cpu }, round) => cpu / (theirs[round]?.cpu ?? Number.NaN));
      notes.push(
        `${format}, round by round: ${list(ours.map(({ cpu }) => cpu))} against ${list(theirs.map(({ cpu }) => cpu))} ms/s, ratios ${list(ratios)}`,
        `${format}: of that, ffmpeg into no file at all ${list(theirs.map(({ reading }) => reading))} ms/s`,
      );
    }
  } finally {
    await recorder.close();
  }
  return {
    bench: 'record',
    figures,
    notes: [
      `each stream: 720p30, 2.5 Mbit/s; ${RECORDINGS} recordings of ${STREAMS} streams: what each adds to a server that receives and packages the streams anyway`,
      `the baseline: ${STREAMS} ffmpeg -re -c copy from a file into ${RECORDINGS / STREAMS} each; reading the file is in it, and its plain MP4 is lost by a crash`,
      ...notes,
    ],
  };
}
