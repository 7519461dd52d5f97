/** Folders that the server writes to, and certificates that it reads. */
import { resolve } from 'node:path';
import type { ServerConfig, TlsConfig } from '../../config/index.ts';
import { watchedFolders } from '../../config/server-config.ts';
import { CertificateFault, readCertificate } from '../../delivery/tls/certificate-files.ts';
import { eventLogFolder } from '../../monitoring/event-log.ts';
import { spaceFault, writableFolder, writeFault } from '../../state/disk-watch.ts';
import { counted } from '../../util/counted.ts';
import { diskSpace } from '../../util/disk-space.ts';
import { messageOf } from '../../util/message-of.ts';
import { type Diagnosis, diagnosesOf, sizeText } from './diagnosis.ts';

const DAY_MS = 24 * 3_600_000;
/** Automatic renewal would have replaced the certificate earlier. */
const SOON_DAYS = 14;

/** Checks every folder of the configuration that the server writes to, and the free space on its disk; `state`: the state folder. */
export async function folders(config: ServerConfig, state: string): Promise<readonly Diagnosis[]> {
  const all = [...watchedFolders(config, state), ...mediaFolders(config, state), ...logFolders(config, state)];
  const found: Diagnosis[] = [];
  for (const { path, what } of new Map(all.toReversed().map((folder) => [folder.path, folder])).values())
    found.unshift(await folder(path, what));
  return found;
}

async function folder(path: string, what: string): Promise<Diagnosis> {
  const { ok, warning, problem } = diagnosesOf('folders');
  try {
    const space = await diskSpace(await writableFolder(path));
    const room = `${sizeText(space.free)} of ${sizeText(space.size)} are free`;
    const low = spaceFault(what, space);
    if (low !== null)
      return (space.free === 0 ? problem : warning)(
        `${low}: ${path}, ${room}`,
        'free some space, or use another folder for recordings and dumps',
      );
    return ok(`${what}, ${path}: writable, ${room}`);
  } catch (error) {
    return problem(`${writeFault(what, error)}: ${path}`, 'make it writable for the user of the server, or use another folder');
  }
}

/** Folders of DVR and dumps in the configuration. A path with macros is cut before the first of them. */
function mediaFolders({ virtualHosts }: ServerConfig, state: string): { readonly path: string; readonly what: string }[] {
  const publishers = virtualHosts.flatMap(({ applications }) => applications.flatMap((app) => [app.publishers.llhls, app.publishers.hls]));
  return publishers.flatMap((publisher) => {
    const { dVR, dumps } = publisher ?? {};
    const dvr = dVR?.enable === true && dVR.tempStoragePath !== '' ? [{ path: dVR.tempStoragePath, what: 'the DVR folder' }] : [];
    const dumped = (dumps?.dump ?? []).flatMap(({ enable, outputPath }) => (enable ? [{ path: outputPath, what: 'the dump folder' }] : []));
    return [...dvr, ...dumped].map(({ path, what }) => ({ path: resolve(state, path.replace(/\/[^/]*\$\{.*$/, '/')), what }));
  });
}

/** Folder of the event log; the other log goes to standard error. */
function logFolders(config: ServerConfig, state: string): { readonly path: string; readonly what: string }[] {
  const path = eventLogFolder(config, state);
  return path === null ? [] : [{ path, what: 'the event log folder' }];
}

/** Checks every certificate of the configuration and how long it is still valid; `now`: wall clock ms. */
export async function certificates({ virtualHosts, managers, bind }: ServerConfig, now: number): Promise<readonly Diagnosis[]> {
  const { tls } = managers.host;
  const all: { readonly of: string; readonly tls: TlsConfig }[] = [
    ...(tls !== undefined && bind.managers.api?.tlsPort !== undefined ? [{ of: 'the API', tls }] : []),
    ...virtualHosts.flatMap(({ name, host }) => (host?.tls === undefined ? [] : [{ of: `virtual host '${name}'`, tls: host.tls }])),
  ];
  if (all.length === 0) return [diagnosesOf('certificates').ok('none configured: no port uses TLS')];
  return await Promise.all(all.map((one) => certificate(one, now)));
}

async function certificate({ of, tls }: { readonly of: string; readonly tls: TlsConfig }, now: number): Promise<Diagnosis> {
  const { ok, warning, problem } = diagnosesOf('certificates');
  try {
    const { validTo } = await readCertificate(tls);
    const days = Math.floor((validTo.getTime() - now) / DAY_MS);
    const text = `${of}, ${tls.certPath}`;
    const renew = 'renew it: a running server reloads changed files';
    if (validTo.getTime() <= now) return problem(`${text}, expired: ${validTo.toISOString()}`, renew);
    const left = `${text}, valid for ${counted(days, 'more day')}, until ${validTo.toISOString()}`;
    return days < SOON_DAYS ? warning(left, renew) : ok(left);
  } catch (error) {
    if (!(error instanceof CertificateFault)) throw error;
    return problem(`${of}: ${messageOf(error)}`, 'correct the files or their permissions');
  }
}
