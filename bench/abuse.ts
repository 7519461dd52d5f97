/**
 * The cost of hostile peers for other clients: 1 000 of each kind, one kind after the other, from a separate process. A WebRTC viewer is
 * measured before and during each attack. `ABUSE_KINDS=silent,stun` selects kinds.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { within } from '../test/harness/poll.ts';
import { freePorts } from '../test/harness/ports.ts';
import { startServer, type TestServer } from '../test/harness/server.ts';
import { HOSTILE_KINDS, type HostilePorts } from './lib/hostile-kinds.ts';
import type { HostileAnswer, HostileOrder } from './lib/hostile-load.ts';
import { LatencyProbe } from './lib/latency-probe.ts';
import { percentile } from './lib/measure.ts';
import { cpuTime, memory } from './lib/process-usage.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';

const PEERS = 1000;
/** Allowed rise of a viewer's 99th percentile of frame delay during an attack, ms. */
const TARGET_MS = 5;
const REST_MS = 1000;
const STOP_DEADLINE_MS = 15_000;
const OVERHEAD_SECONDS = 5;
const PASSPHRASE = 'correct horse battery';

/** Results of all rounds of one kind. */
interface Findings {
  readonly before: number[];
  readonly during: number[];
  missing: number;
  open: number;
  /** CPU of the server, ms per second. */
  cpu: number;
  /** Growth of the server's resident memory, MiB. */
  memory: number;
}

/** One attack of a kind. Rejects if the server dies. */
async function attack(server: TestServer, probe: LatencyProbe, kind: string, ports: HostilePorts, seconds: number, findings: Findings) {
  const before = await probe.during(seconds);
  const child = fork(fileURLToPath(new URL('./lib/hostile-load.ts', import.meta.url)));
  try {
    await once(child, 'spawn');
    const resident = memory(server.pid).resident;
    const cpu = cpuTime(server.pid);
    const startedAt = performance.now();
    child.send({ type: 'attack', kind, ports, count: PEERS } satisfies HostileOrder);
    const during = await probe.during(seconds);
    findings.cpu = Math.max(findings.cpu, (1000 * (cpuTime(server.pid) - cpu)) / (performance.now() - startedAt));
    findings.memory = Math.max(findings.memory, memory(server.pid).resident - resident);
    const stopped = once(child, 'message') as Promise<[HostileAnswer]>;
    child.send({ type: 'stop' } satisfies HostileOrder);
    const [{ open }] = await within('the hostile peers to go', STOP_DEADLINE_MS, stopped);
    findings.open = Math.max(findings.open, open);
    findings.before.push(...before.delays);
    findings.during.push(...during.delays);
    findings.missing += during.missing;
  } finally {
    child.kill('SIGKILL');
  }
  await delay(REST_MS);
}

function figureOf(kind: string, { before, during, missing, open, cpu, memory: more }: Findings): Figure {
  const [usual, under] = [percentile(before, 99), percentile(during, 99)];
  const held = `${usual.toFixed(1)} → ${under.toFixed(1)} ms; ${open} of ${PEERS} left, ${missing} frames missing`;
  return {
    name: HOSTILE_KINDS[kind]?.title ?? kind,
    value: under - usual,
    unit: 'ms',
    target: TARGET_MS,
    remark: `${held}, server ${cpu.toFixed(0)} ms/s and ${more.toFixed(0)} MiB more`,
  };
}

export async function run({ seconds, rounds }: BenchOptions): Promise<Report> {
  const chosen = process.env['ABUSE_KINDS']?.split(',') ?? Object.keys(HOSTILE_KINDS);
  const [ingest = 0, egress = 0] = await freePorts(2);
  const server = await startServer({ webrtc: {}, srt: { ingest, egress, options: { PASSPHRASE } } });
  const ports: HostilePorts = { ...server.ports, srt: ingest };
  const each = 2 * (seconds + 1) + OVERHEAD_SECONDS;
  let probe: LatencyProbe | null = null;
  try {
    probe = await LatencyProbe.open(server, 'paced', 60 + rounds * chosen.length * each);
    await probe.during(Math.max(2, seconds));
    const all = new Map(chosen.map((kind) => [kind, { before: [], during: [], missing: 0, open: 0, cpu: 0, memory: 0 } as Findings]));
    for (let round = 0; round < rounds; round += 1) {
      for (const [kind, findings] of all) await attack(server, probe, kind, ports, seconds, findings);
    }
    return {
      bench: 'abuse',
      figures: [...all].map(([kind, findings]) => figureOf(kind, findings)),
      notes: [
        `how much later the 99th percentile of frames reaches a viewer while ${PEERS} hostile peers are there, from 250 addresses;`,
        `${rounds} rounds of ${seconds} s before and with each kind; peers, publisher and viewer share the cores with the server`,
      ],
    };
  } finally {
    probe?.close();
    await server.close();
  }
}
