/** The shipped configuration, on free ports of loopback, in a server of this process. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { onTestFinished, vi } from 'vitest';
import { defaultServerXml } from '../../src/config/index.ts';
import { MillraceServer } from '../../src/server.ts';
import { RecordingLogger } from '../fakes/recording-logger.ts';
import { freePorts } from './ports.ts';

const NAMES = [
  ...['API', 'RTMP_PROV', 'SRT_PROV', 'WEBRTC_SIGNALLING', 'WEBRTC_CANDIDATE', 'WEBRTC_TCP_RELAY', 'ORIGIN', 'MPEGTS_PROV', 'SRT_PUB'],
] as const;
/** Two addresses, so that a test may have two host names. */
const HOSTS = ['127.0.0.1', '127.0.0.2'];
const DATAGRAMS: ReadonlySet<string> = new Set(['WEBRTC_CANDIDATE', 'MPEGTS_PROV']);

export interface ShippedServer {
  /** Its ports, by the variable that names the port (`OME_…_PORT`); the port of SRT players, which has none, is `SRT_PUB`. */
  readonly ports: Readonly<Record<(typeof NAMES)[number], number>>;
  readonly token: string;
  readonly state: string;
  /** Its configuration file. */
  readonly config: string;
}

/** Ends with the test. `edited` changes the configuration before it is used. */
export async function startShippedServer(edited: (xml: string) => string = (xml) => xml): Promise<ShippedServer> {
  const token = 'token';
  const free = await freePorts(NAMES.length);
  const ports = Object.fromEntries(NAMES.map((name, at) => [name, free[at] ?? 0])) as Record<(typeof NAMES)[number], number>;
  for (const name of NAMES) vi.stubEnv(`OME_${name}_PORT`, DATAGRAMS.has(name) ? `${ports[name]}/udp` : String(ports[name]));
  vi.stubEnv('OME_LLHLS_STREAM_PORT', String(ports.WEBRTC_SIGNALLING));
  vi.stubEnv('MILLRACE_ACCESS_TOKEN', token);
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-shipped-'));
  const configFile = path.join(folder, 'Server.xml');
  const onLoopback = defaultServerXml().replace('<IP>*</IP>', HOSTS.map((host) => `<IP>${host}</IP>`).join(''));
  writeFileSync(configFile, edited(onLoopback.replace('>9998<', `>${ports.SRT_PUB}<`)));
  const state = path.join(folder, 'state');
  const server = await MillraceServer.start({ configFile, stateFolder: state, logger: new RecordingLogger() });
  onTestFinished(async () => {
    await server.stop();
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true, force: true });
  });
  return { ports, token, state, config: configFile };
}
