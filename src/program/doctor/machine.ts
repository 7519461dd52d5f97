/** Checks the limits of the process: memory, CPU, descriptors, socket buffers. */
import { availableParallelism, totalmem } from 'node:os';
import type { ServerConfig } from '../../config/index.ts';
import { deliveryThreads } from '../../config/server-config.ts';
import { MEDIA_SOCKET_BUFFER } from '../../services/webrtc/transport/fanout/fanout.ts';
import { SRT_SOCKET_BUFFER } from '../../transport/srt/udp-port.ts';
import { counted } from '../../util/counted.ts';
import { descriptorLimit, planDescriptors } from '../../util/descriptor-plan.ts';
import { type Diagnosis, diagnosesOf, type ReadSystem, sizeText } from './diagnosis.ts';

const MIB = 1024 * 1024;
/** Less memory is not enough for one transcode and some streams. */
const LOW_MEMORY = 512 * MIB;
/** Numbers of viewer connections: below the first the server is useless, below the second it warns. */
const NO_VIEWERS = 100;
const FEW_VIEWERS = 1000;
/** Threads of the server and of one transcoder process, with some room. */
const FEW_TASKS = 256;
const UNLIMITED = 'unlimited';

/** The buffers that UDP sockets request, compared with the kernel's limit. */
export function udpBuffers({ bind }: ServerConfig, read: ReadSystem): Diagnosis {
  const { ok, warning } = diagnosesOf('udp-buffers');
  const wanted = [
    ...((bind.providers.webrtc ?? bind.publishers.webrtc) ? [{ what: 'WebRTC', bytes: MEDIA_SOCKET_BUFFER }] : []),
    ...((bind.providers.srt ?? bind.publishers.srt) ? [{ what: 'SRT', bytes: SRT_SOCKET_BUFFER }] : []),
  ];
  if (wanted.length === 0) return ok('neither WebRTC nor SRT is configured');
  const given = (['rmem_max', 'wmem_max'] as const).map((name) => ({ name, bytes: numberIn(read(`/proc/sys/net/core/${name}`)) }));
  const asked = wanted.map(({ what, bytes }) => `${what} asks for ${sizeText(bytes)}`).join(', ');
  if (given.some(({ bytes }) => bytes === null)) return ok(`${asked}; the system's limit cannot be read here`);
  const most = Math.max(...wanted.map(({ bytes }) => bytes));
  const low = given.filter(({ bytes }) => (bytes ?? 0) < most);
  const have = given.map(({ name, bytes }) => `net.core.${name} is ${sizeText(bytes ?? 0)}`).join(', ');
  if (low.length === 0) return ok(`${have}: ${asked}`);
  const settings = low.map(({ name }) => `net.core.${name}=${most}`).join(' ');
  return warning(
    `${have}, and ${asked}: bursts of packets may be lost under load`,
    `sysctl -w ${settings}, and persist it in /etc/sysctl.d/`,
  );
}

/** The number of connections that the file descriptors allow. */
export function descriptors(config: ServerConfig, given = descriptorLimit()): Diagnosis {
  const { ok, warning, problem } = diagnosesOf('descriptors');
  if (given === null) return ok('the limit of open files cannot be read');
  const threads = deliveryThreads(config, availableParallelism());
  const { viewers, encoders } = planDescriptors({ ...given, threads });
  const text = `${given.limit} files and sockets may be open (ulimit -n): ${viewers} viewer connections, ${encoders} encoder connections`;
  const remedy = 'raise the hard limit: ulimit -Hn, LimitNOFILE= of a systemd unit, --ulimit nofile= of a container';
  if (viewers < NO_VIEWERS) return problem(text, remedy);
  return viewers < FEW_VIEWERS ? warning(text, remedy) : ok(text);
}

const LIMITS: readonly { readonly title: string; readonly flag: string; readonly low: number; readonly effect: string }[] = [
  { title: 'Max processes', flag: '-u', low: FEW_TASKS, effect: 'threads and transcoder processes may not start' },
  {
    title: 'Max address space',
    flag: '-v',
    low: Number.POSITIVE_INFINITY,
    effect: 'the runtime reserves more memory than it uses, and may not start',
  },
  { title: 'Max data size', flag: '-d', low: Number.POSITIVE_INFINITY, effect: 'the process runs out of memory before the machine does' },
  { title: 'Max file size', flag: '-f', low: Number.POSITIVE_INFINITY, effect: 'recordings end there' },
];

/** Other limits of the process that can do harm. */
export function ulimits(read: ReadSystem): Diagnosis {
  const { ok, warning } = diagnosesOf('ulimits');
  const text = read('/proc/self/limits');
  if (text === null) return ok('the limits of the process cannot be read');
  const found = LIMITS.flatMap(({ title, flag, low, effect }) => {
    const value = new RegExp(`^${title}\\s+(\\S+)`, 'm').exec(text)?.[1] ?? UNLIMITED;
    return value !== UNLIMITED && Number(value) < low ? [`${title.toLowerCase()} is ${value} (ulimit ${flag}): ${effect}`] : [];
  });
  if (found.length === 0) return ok('no harmful limits');
  return warning(found.join('; '), 'set them to unlimited for the user or the systemd unit of the server');
}

/** Checks which resources of the machine the container or control group may use. */
export function container(config: ServerConfig, read: ReadSystem, { cores = availableParallelism(), memory = totalmem() } = {}): Diagnosis {
  const { ok, warning } = diagnosesOf('container');
  const limits = groupLimits(read);
  const has = Math.min(memory, limits.memory);
  const cpus = Math.min(cores, limits.cpus);
  const threads = deliveryThreads(config, cores);
  const told = [
    limits.memory < memory ? `memory is limited to ${sizeText(limits.memory)} of ${sizeText(memory)}` : `${sizeText(memory)} of memory`,
    limits.cpus < cores ? `CPU time to ${Number(limits.cpus.toFixed(2))} of ${cores} cores` : counted(cores, 'core'),
    ...(limits.tasks === Number.POSITIVE_INFINITY ? [] : [`at most ${limits.tasks} threads and processes`]),
  ].join(', ');
  const remedies = [
    ...(has < LOW_MEMORY ? [`provide at least ${sizeText(LOW_MEMORY)}`] : []),
    ...(limits.cpus < cores && threads > Math.max(1, Math.ceil(cpus))
      ? [`set WorkerCount of Bind/Publishers to ${Math.max(1, Math.ceil(cpus))}: ${threads} delivery threads share that time`]
      : []),
    ...(limits.tasks < FEW_TASKS ? [`allow ${FEW_TASKS} threads and processes (pids)`] : []),
  ];
  return remedies.length === 0 ? ok(told) : warning(told, remedies.join('; '));
}

interface GroupLimits {
  /** Bytes. */
  readonly memory: number;
  readonly cpus: number;
  readonly tasks: number;
}

/** The smallest limits of the control groups of this process, version 1 or 2; infinite without any. */
function groupLimits(read: ReadSystem): GroupLimits {
  const places = controllers(read('/proc/self/cgroup') ?? '');
  const least = (controller: string, of: (folder: string) => number): number =>
    Math.min(Number.POSITIVE_INFINITY, ...foldersOf(places, controller).map(of));
  return {
    memory: least('memory', (folder) => limitIn(read(`${folder}/memory.max`) ?? read(`${folder}/memory.limit_in_bytes`))),
    cpus: least('cpu', (folder) => {
      const [quota, period] = (
        read(`${folder}/cpu.max`) ?? `${read(`${folder}/cpu.cfs_quota_us`) ?? ''} ${read(`${folder}/cpu.cfs_period_us`) ?? ''}`
      )
        .trim()
        .split(/\s+/)
        .map(Number);
      return quota !== undefined && period !== undefined && quota > 0 && period > 0 ? quota / period : Number.POSITIVE_INFINITY;
    }),
    tasks: least('pids', (folder) => limitIn(read(`${folder}/pids.max`))),
  };
}

/** Path of the group by controller; '' is the only one of version 2. */
function controllers(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const [, names = '', path = '/'] of text.matchAll(/^\d+:([^:]*):(.*)$/gm))
    for (const name of names.split(',')) found.set(name, path);
  return found;
}

/** The folder of the group and those above it, because each of them has limits. Inside a container its own group is the topmost. */
function foldersOf(places: ReadonlyMap<string, string>, controller: string): string[] {
  const roots = [
    [`/sys/fs/cgroup`, places.get('')],
    [`/sys/fs/cgroup/${controller}`, places.get(controller)],
  ] as const;
  return roots.flatMap(([root, path]) => {
    if (path === undefined) return [];
    const parts = path.split('/').filter((part) => part !== '');
    return Array.from({ length: parts.length + 1 }, (_, count) => [root, ...parts.slice(0, count)].join('/'));
  });
}

/** Version 1 has a number larger than any machine if there is no limit. */
function limitIn(text: string | null): number {
  const value = numberIn(text);
  return value === null || value >= Number.MAX_SAFE_INTEGER ? Number.POSITIVE_INFINITY : value;
}

function numberIn(text: string | null): number | null {
  const digits = text?.trim() ?? '';
  return /^\d+$/.test(digits) ? Number(digits) : null;
}
