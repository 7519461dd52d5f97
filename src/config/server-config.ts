import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { AllowedFolders } from '../util/allowed-folders.ts';
import { listenAddresses } from '../util/listen-addresses.ts';
import { defaultServerFile, type PortRanges, type ServerConfig } from './index.ts';

/** The file to read: the given one, else `conf/Server.xml` of the working directory, else the one inside the package. */
export function findConfigFile(given: string | undefined): string {
  if (given !== undefined) return given;
  const local = join('conf', 'Server.xml');
  return existsSync(local) ? local : defaultServerFile;
}

/** Every port of some ranges. */
export function portsOf({ ranges }: PortRanges): number[] {
  return ranges.flatMap(({ first, last }) => Array.from({ length: last - first + 1 }, (_, index) => first + index));
}

/** Whether `port` lies in one of the ranges. */
export function includesPort({ ranges }: PortRanges, port: number): boolean {
  return ranges.some(({ first, last }) => port >= first && port <= last);
}

/** Where the API may have files written. */
export function writingFolders({ storage }: ServerConfig, stateFolder: string): AllowedFolders {
  const roots = allowedRoots(storage, stateFolder);
  return new AllowedFolders(roots.length === 0 ? null : roots, 'Server/Storage/AllowedRoots');
}

/** Folders from which files may be played: a `RootPath` or `MediaRootDir` in the file itself is the operator's decision. */
export function readingFolders({ storage, virtualHosts }: ServerConfig, stateFolder: string): AllowedFolders {
  const roots = allowedRoots(storage, stateFolder);
  const media = virtualHosts.flatMap(({ applications }) =>
    applications.flatMap(({ providers, sourceLoss }) => [
      ...[providers.file?.rootPath || [], providers.schedule?.mediaRootDir || []].flat(),
      ...(sourceLoss?.standIn ?? []).flatMap(({ mediaRootDir }) => mediaRootDir || []),
    ]),
  );
  return new AllowedFolders(roots.length === 0 ? null : [...roots, ...media], 'Server/Storage/AllowedRoots');
}

/** Folders for files that define channels: a folder in the file itself is the operator's decision. */
export function definitionFolders({ storage, virtualHosts }: ServerConfig, stateFolder: string): AllowedFolders {
  const roots = allowedRoots(storage, stateFolder);
  const named = virtualHosts.flatMap(({ applications }) =>
    applications.flatMap(({ providers }) =>
      [providers.schedule?.scheduleFilesDir, providers.multiplex?.muxFilesDir].flatMap((path) => path || []),
    ),
  );
  return new AllowedFolders(roots.length === 0 ? null : [...roots, ...named], 'Server/Storage/AllowedRoots');
}

function allowedRoots({ allowedRoots: roots }: ServerConfig['storage'], stateFolder: string): string[] {
  return roots.map((root) => resolve(stateFolder, root));
}

/** The folders whose disks are watched, each with a description. */
export function watchedFolders(config: ServerConfig, stateFolder: string): { readonly path: string; readonly what: string }[] {
  const state = resolve(stateFolder);
  const allowed = allowedRoots(config.storage, state).map((path) => ({ path, what: 'a folder of Storage/AllowedRoots' }));
  const roots = config.virtualHosts
    .flatMap(({ applications }) => applications.flatMap(({ publishers }) => publishers.file?.rootPath || []))
    .map((root) => ({ path: resolve(state, root), what: 'a RootPath of recordings' }));
  const all = [{ path: state, what: 'the state folder' }, ...allowed, ...roots];
  return [...new Map(all.toReversed().map((folder) => [folder.path, folder])).values()].toReversed();
}

/** A port to open on every address of the server. */
export interface HttpPort {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  /** Element of the first setting with this port. */
  readonly element: string;
}

/** The ports of all HTTP publishers and of WebRTC signalling, each once: several may share one. */
export function deliveryPorts(config: ServerConfig): HttpPort[] {
  const { llhls, hls, thumbnail, webrtc } = config.bind.publishers;
  const ingest = config.bind.providers.webrtc;
  const ports = new Map<string, HttpPort>();
  const add = (port: number | undefined, tls: boolean, element: string): void => {
    if (port === undefined) return;
    for (const host of listenAddresses(config.ip)) {
      const key = `${host} ${port}`;
      ports.set(key, { host, port, tls, element: ports.get(key)?.element ?? element });
    }
  };
  const listeners = {
    'Publishers/LLHLS': llhls,
    'Publishers/HLS': hls,
    'Publishers/Thumbnail': thumbnail,
    'Publishers/WebRTC/Signalling': webrtc?.signalling,
    'Providers/WebRTC/Signalling': ingest?.signalling,
  };
  for (const [element, listener] of Object.entries(listeners)) {
    add(listener?.port, false, `Bind/${element}/Port`);
    add(listener?.tlsPort, true, `Bind/${element}/TLSPort`);
  }
  return [...ports.values()];
}

/** Delivery threads: the largest `WorkerCount` of the HTTP publishers, by default one per core; 0 serves from the main thread. */
export function deliveryThreads(config: ServerConfig, cores: number): number {
  const { llhls, hls, thumbnail } = config.bind.publishers;
  const asked = [llhls, hls, thumbnail].flatMap((listener) => (listener?.workerCount === undefined ? [] : [listener.workerCount]));
  return asked.length > 0 ? Math.max(...asked) : cores;
}
