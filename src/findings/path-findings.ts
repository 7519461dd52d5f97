/** Files and folders of the configuration that are missing, unusable or not allowed. */
import { X509Certificate } from 'node:crypto';
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { ApplicationConfig, LoadedServer, Place, TlsConfig } from '../config/index.ts';
import { readingFolders, writingFolders } from '../config/server-config.ts';
import { parseXml } from '../config/xml.ts';
import { overlayPath } from '../core/overlay-files.ts';
import { parseOverlayMap } from '../core/overlay-map.ts';
import { CertificateFault, type CertificateFile, certificateOf } from '../delivery/tls/certificate-files.ts';
import { pathBelow } from '../playout/media-root.ts';
import { RecordPlace } from '../services/record/record-place.ts';
import { type AllowedFolders, PathRefused } from '../util/allowed-folders.ts';
import { messageOf } from '../util/message-of.ts';

type Found = Place & { readonly message: string };
type PlaceOf = LoadedServer['placeOf'];

/** Paths with which the server would start, but not work as intended. */
export function pathFindings({ config, placeOf }: LoadedServer, stateFolder: string): Found[] {
  const writing = writingFolders(config, stateFolder);
  const reading = readingFolders(config, stateFolder);
  const found: Found[] = [];
  const { ovt } = config.bind.providers;
  if (ovt !== undefined) found.push(...caFindings(ovt, placeOf));
  for (const { applications, originMapStore } of config.virtualHosts) {
    if (originMapStore !== undefined) found.push(...caFindings(originMapStore.redisServer, placeOf));
    for (const application of applications) {
      const { publishers, providers } = application;
      const refuse = (owner: object, key: string, check: () => unknown): void => {
        try {
          check();
        } catch (error) {
          if (!(error instanceof PathRefused)) throw error;
          found.push({ ...placeOf(owner, key), message: error.message });
        }
      };
      if (publishers.file !== undefined) {
        const { file } = publishers;
        const key = (['filePath', 'infoPath', 'rootPath'] as const).find((name) => file[name] !== undefined) ?? '';
        const place = new RecordPlace(file, stateFolder, writing);
        const { root } = place;
        const before = found.length;
        if (root !== null) refuse(file, 'rootPath', () => writing.check(root));
        if (found.length === before) refuse(file, key, () => place.pathsOf({ filePath: '', infoPath: '' }));
      }
      for (const { dVR, dumps } of [publishers.llhls, publishers.hls].filter((one) => one !== undefined)) {
        if (dVR?.enable === true && dVR.tempStoragePath !== '') {
          refuse(dVR, 'tempStoragePath', () => writing.check(resolve(stateFolder, dVR.tempStoragePath)));
        }
        for (const dump of dumps?.dump.filter(({ enable }) => enable) ?? []) {
          refuse(dump, 'outputPath', () => writing.check(resolve(stateFolder, dump.outputPath)));
        }
      }
      if (providers.schedule !== undefined) found.push(...scheduleFindings(providers.schedule, placeOf));
      if (providers.file !== undefined) found.push(...mediaFindings(providers.file, placeOf));
      if (providers.multiplex !== undefined) found.push(...folderFindings(providers.multiplex, 'muxFilesDir', placeOf));
      found.push(...standInFindings(application, placeOf), ...mapFindings(application, placeOf));
      found.push(...overlayFindings(application, reading, placeOf));
    }
  }
  return found;
}

/** Certificates of virtual hosts, without which their TLS ports stay closed. */
export function hostCertificateFindings({ config, placeOf }: LoadedServer): Found[] {
  return config.virtualHosts.flatMap(({ host }) => (host?.tls === undefined ? [] : certificateFindings(host.tls, placeOf)));
}

/** The certificate of the API is needed to start. */
export function apiCertificateFindings({ config, placeOf }: LoadedServer): Found[] {
  const { tls } = config.managers.host;
  return tls === undefined || config.bind.managers.api?.tlsPort === undefined ? [] : certificateFindings(tls, placeOf);
}

/** Reads certificate and key as the server does; the first problem. */
function certificateFindings(tls: TlsConfig, placeOf: PlaceOf): Found[] {
  const texts: { [file in CertificateFile]?: string } = {};
  for (const key of ['certPath', 'keyPath', 'chainCertPath'] as const) {
    const path = tls[key];
    if (path === undefined) continue;
    try {
      texts[key] = readFileSync(path, 'utf8');
    } catch (error) {
      return [{ ...placeOf(tls, key), message: `the file cannot be read: ${messageOf(error)}` }];
    }
  }
  try {
    const { validTo } = certificateOf(texts, tls);
    return validTo.getTime() < Date.now()
      ? [{ ...placeOf(tls, 'certPath'), message: `the certificate has expired: ${validTo.toISOString()}` }]
      : [];
  } catch (error) {
    const file = error instanceof CertificateFault ? error.file : 'certPath';
    return [{ ...placeOf(tls, file), message: messageOf(error) }];
  }
}

function mediaFindings(file: NonNullable<ApplicationConfig['providers']['file']>, placeOf: PlaceOf): Found[] {
  return (file.streamMap?.stream ?? []).flatMap((entry) => {
    const path = join(file.rootPath ?? '/', entry.path);
    const wrong = faultOfFile(path);
    return wrong === null ? [] : [{ ...placeOf(entry, 'path'), message: `the file of stream '${entry.name}' cannot be played: ${wrong}` }];
  });
}

/** The folder with the media of a schedule must exist. */
function scheduleFindings(schedule: NonNullable<ApplicationConfig['providers']['schedule']>, placeOf: PlaceOf): Found[] {
  const media = resolve(schedule.mediaRootDir);
  const isThere = statSync(media, { throwIfNoEntry: false })?.isDirectory() === true;
  return [
    ...(isThere ? [] : [{ ...placeOf(schedule, 'mediaRootDir'), message: `${media} is not a folder: scheduled files cannot be played` }]),
    ...folderFindings(schedule, 'scheduleFilesDir', placeOf),
  ];
}

/** Without the CA file no server would be trusted. */
function caFindings(owner: { readonly caPath?: string }, placeOf: PlaceOf): Found[] {
  const { caPath = '' } = owner;
  if (caPath === '') return [];
  try {
    new X509Certificate(readFileSync(caPath));
    return [];
  } catch (error) {
    return [{ ...placeOf(owner, 'caPath'), message: `the certificates cannot be read: ${messageOf(error)}` }];
  }
}

/** A missing folder is created. */
function folderFindings<Key extends string>(owner: Readonly<Record<Key, string>>, key: Key, placeOf: PlaceOf): Found[] {
  const path = resolve(owner[key]);
  const isOther = statSync(path, { throwIfNoEntry: false })?.isDirectory() === false;
  return isOther ? [{ ...placeOf(owner, key), message: `${path} is not a folder` }] : [];
}

/** The stand-in is needed when an encoder leaves, which is too late for an error. */
function standInFindings({ sourceLoss }: ApplicationConfig, placeOf: PlaceOf): Found[] {
  return (sourceLoss?.standIn ?? []).flatMap((entry) => {
    const { url, mediaRootDir = '' } = entry;
    if (!url.startsWith('file://') || mediaRootDir === '') return [];
    const root = resolve(mediaRootDir);
    const path = pathBelow(root, url);
    const wrong = faultOfFile(path) ?? faultOfPlace(path, root);
    return wrong === null ? [] : [{ ...placeOf(entry, 'url'), message: `the stand-in cannot be played: ${wrong}` }];
  });
}

function faultOfPlace(path: string, root: string): string | null {
  return realpathSync(path).startsWith(join(realpathSync(root), '/')) ? null : `${path} leads out of ${root} through a symbolic link`;
}

/** Map files are read when a stream begins. */
function mapFindings({ publishers }: ApplicationConfig, placeOf: PlaceOf): Found[] {
  return [publishers.file?.streamMap, publishers.push?.streamMap].flatMap((map) => {
    if (map?.enable !== true || map.path === undefined) return [];
    const wrong = faultOfFile(map.path);
    return wrong === null ? [] : [{ ...placeOf(map, 'path'), message: `the map file cannot be read: ${wrong}` }];
  });
}

/** The overlay map is read with each stream, which continues without invalid entries. */
function overlayFindings({ outputProfiles }: ApplicationConfig, reading: AllowedFolders, placeOf: PlaceOf): Found[] {
  const { overlays } = outputProfiles?.mediaOptions ?? {};
  if (overlays?.enable !== true) return [];
  const { path } = overlays;
  if (path === undefined || path === '') return [{ ...placeOf(overlays, ''), message: 'overlays are enabled, but Path names no map file' }];
  const at = placeOf(overlays, 'path');
  try {
    reading.check(path);
    const urls = new Set(
      parseOverlayMap(parseXml(readFileSync(path, 'utf8'), path)).flatMap((entry) => entry.overlays.map(({ url }) => url)),
    );
    return [...urls].flatMap((url) => {
      const wrong = faultOfImage(url, path, reading);
      return wrong === null ? [] : [{ ...at, message: `the overlay '${url}' of ${path} cannot be used: ${wrong}` }];
    });
  } catch (error) {
    return [{ ...at, message: `the overlay map cannot be used: ${messageOf(error)}` }];
  }
}

function faultOfImage(url: string, map: string, reading: AllowedFolders): string | null {
  try {
    const path = overlayPath(url, dirname(map));
    reading.check(path);
    return faultOfFile(path);
  } catch (error) {
    return messageOf(error);
  }
}

function faultOfFile(path: string): string | null {
  try {
    return statSync(path).isFile() ? null : `${path} is not a file`;
  } catch (error) {
    return messageOf(error);
  }
}
