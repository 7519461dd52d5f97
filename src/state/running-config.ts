/** A copy of the running configuration in the state folder: `check` compares a changed file with it. */
import { createHmac, randomBytes } from 'node:crypto';
import { chmodSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { keySalt, type ServerConfig, sealed } from '../config/index.ts';
import { textInSlices } from '../util/in-slices.ts';
import { writeFileAtomic } from './atomic-file.ts';

const FILE_NAME = 'running-config.json';
/** Only for its owner, like the other secrets of the state folder. */
const MODE = 0o600;
const SEAL_KEY_BYTES = 32;

/** A server's record of itself. */
export interface RunningConfig {
  /** The configuration file, absolute. */
  readonly file: string;
  /** The configuration with sealed secrets; `seal` seals others in the same way. */
  readonly config: ServerConfig;
  readonly seal: (secret: string) => string;
  /** Salt with which keys of applications were hashed. */
  readonly keySalt: string;
}

/** Stores the running configuration from now on. The file contains no readable secret. Rejects with the file system's error. */
export async function keepRunningConfig(stateFolder: string, file: string, config: ServerConfig): Promise<void> {
  const key = randomBytes(SEAL_KEY_BYTES).toString('base64url');
  const head = { file: resolve(file), sealKey: key, keySalt: keySalt() };
  const text = await textInSlices(sealedPieces(config, sealBy(key)));
  await writeFileAtomic(join(stateFolder, FILE_NAME), `${opened(head)},"config":${text}}\n`, MODE);
}

/** A configuration as JSON, with sealed secrets; each application is a piece. */
function* sealedPieces({ virtualHosts, ...server }: ServerConfig, seal: (secret: string) => string): Iterable<string> {
  yield `${opened(sealed(server, seal))},"virtualHosts":[`;
  for (const [index, { applications, ...host }] of virtualHosts.entries()) {
    yield `${index > 0 ? ',' : ''}${opened(sealed(host, seal))},"applications":[`;
    for (const [n, application] of applications.entries()) yield `${n > 0 ? ',' : ''}${JSON.stringify(sealed(application, seal))}`;
    yield ']}';
  }
  yield ']}';
}

/** The JSON of an object with members, to which others are added. */
function opened(object: object): string {
  return JSON.stringify(object).slice(0, -1);
}

/** The present or last configuration of the server of this folder; null if there is none. Throws read errors. */
export function readRunningConfig(stateFolder: string): RunningConfig | null {
  const path = join(stateFolder, FILE_NAME);
  let text: string;
  try {
    chmodSync(path, MODE);
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  const { file, sealKey, keySalt: salt, config } = JSON.parse(text) as Omit<RunningConfig, 'seal'> & { sealKey: string };
  return { file, config, seal: sealBy(sealKey), keySalt: salt };
}

function sealBy(key: string): (secret: string) => string {
  return (secret) => createHmac('sha256', key).update(secret).digest('base64url');
}
