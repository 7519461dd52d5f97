/**
 * Runs once before tests: starts and stops the programs of transcoder processes, whose compiled code later ones use. In the tests they cannot
 * write it: their sandbox forbids that, and they end by a signal.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { COMPILED } from './compiled-code.ts';
import { within } from './poll.ts';

const PROGRAMS = ['child.ts', 'file-child.ts'];
/** Descriptor of the socket over which a process says that it is ready. */
const SOCKET = 3;
/** Node writes compiled code at an orderly end. */
const ORDERLY = `data:text/javascript,process.once('SIGUSR2', () => process.exit())`;
const DEADLINE_MS = 60_000;

export async function setup(): Promise<void> {
  await Promise.all(PROGRAMS.map(startAndStop));
}

/** A program that does not start is told by the tests that need it. */
async function startAndStop(name: string): Promise<void> {
  const program = fileURLToPath(new URL(`../../src/transcoder/process/${name}`, import.meta.url));
  const child = spawn(process.execPath, ['--import', ORDERLY, program], {
    env: { ...process.env, ...COMPILED },
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  const exited = once(child, 'exit');
  const ready = new Promise((resolve) => child.stdio[SOCKET]?.once('data', resolve));
  await within(`${name} to start`, DEADLINE_MS, Promise.race([ready, exited]));
  child.kill('SIGUSR2');
  await within(`${name} to end`, DEADLINE_MS, exited);
}
