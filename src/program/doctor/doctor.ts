/** `millrace doctor`: checks in this machine and in a configuration what will work, and prints a line for each check. Starts no server. */
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { holderOn } from '../../state/state-lock.ts';
import { systemClock } from '../../util/clock.ts';
import { messageOf } from '../../util/message-of.ts';
import { parseArguments } from '../../util/parse-arguments.js';
import { plainLine } from '../../util/plain-text.ts';
import { checkConfiguration } from '../check.ts';
import { ExitCode } from '../command-line.js';
import { ipv6, publicAddressLook } from './addresses.ts';
import { clockLook } from './clock-look.ts';
import { codecs, native, sandbox } from './codecs.ts';
import { type Diagnosis, diagnosesOf } from './diagnosis.ts';
import { certificates, folders } from './files.ts';
import { container, descriptors, udpBuffers, ulimits } from './machine.ts';
import { portsLook } from './ports.ts';

const OPTIONS = {
  config: { type: 'string' },
  state: { type: 'string', default: './state' },
  stun: { type: 'string' },
  json: { type: 'boolean', default: false },
} as const;

interface DoctorLine {
  readonly config: string | undefined;
  readonly state: string;
  readonly stun: string | undefined;
  readonly json: boolean;
}

/** Runs the command with the arguments after its name; resolves with the exit code: 1 if there is a problem. */
export async function doctorCommand(args: readonly string[]): Promise<number> {
  let line: DoctorLine;
  try {
    line = readArguments(args);
  } catch (error) {
    process.stderr.write(`millrace doctor: ${messageOf(error)}\n`);
    return ExitCode.USAGE;
  }
  const found = await diagnosesFor(line);
  const isWell = found.every(({ status }) => status !== 'problem');
  process.stdout.write(line.json ? `${JSON.stringify({ ok: isWell, checks: found }, null, 2)}\n` : found.map(printed).join(''));
  return isWell ? ExitCode.CLEAN : ExitCode.FAILURE;
}

/** Throws an Error with a sentence about the first invalid argument. */
function readArguments(args: readonly string[]): DoctorLine {
  const { values } = parseArguments({ args: [...args], options: OPTIONS });
  for (const name of ['config', 'state', 'stun'] as const) if (values[name] === '') throw new Error(`--${name} is empty`);
  return { config: values.config, state: values.state, stun: values.stun, json: values.json };
}

async function diagnosesFor(line: DoctorLine): Promise<readonly Diagnosis[]> {
  const { loaded, errors, summary, warnings } = checkConfiguration(line);
  const { ok, warning, problem } = diagnosesOf('configuration');
  const more = 'millrace check lists them';
  const configuration = [
    ...errors.map((error) => problem(error)),
    errors.length > 0 ? problem(summary) : warnings.length > 0 ? warning(summary, more) : ok(summary),
  ];
  const about = loaded?.config;
  const server = holderOn(line.state);
  const machine = [native(), await sandbox(), ...(await codecs()), ulimits(readSystem)];
  const clock = await clockLook(systemClock, { wait: delay, isThere: existsSync });
  if (loaded === null || about === undefined) return [...configuration, ...machine, clock];
  return [
    ...configuration,
    ...(await portsLook(loaded, server, readSystem)),
    ...(await folders(about, line.state)),
    ...(await certificates(about, systemClock.now())),
    ...[descriptors(about), udpBuffers(about, readSystem), container(about, readSystem)],
    ...machine,
    ...[clock, ipv6(about), await publicAddressLook(about, line.stun)],
  ];
}

function printed({ name, status, text, remedy }: Diagnosis): string {
  return `${status.padEnd(8)} ${name.padEnd(14)} ${plainLine(remedy === undefined ? text : `${text} → ${remedy}`)}\n`;
}

function readSystem(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
