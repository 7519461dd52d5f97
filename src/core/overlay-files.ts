import { createHash } from 'node:crypto';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readXmlFile } from '../config/xml-thread.ts';
import { type AllowedFolders, PathRefused } from '../util/allowed-folders.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import { readWhole } from '../util/read-whole.ts';
import { type MappedOverlay, type OverlayMapEntry, parseOverlayMap } from './overlay-map.ts';
import type { OverlayRequest } from './transcoding.ts';

/** An entry with its images. */
export type OverlayRule = OverlayMapEntry<OverlayRequest>;

const MAX_MAP_BYTES = 1_048_576;
const MAX_IMAGE_BYTES = 8 * 1024 * 1024;
/** Bytes of all images of a map: they stay in memory while a stream has them. */
const MAX_IMAGES_BYTES = 16 * 1024 * 1024;
const PNG = [0x89, 0x50, 0x4e, 0x47];
const JPEG = [0xff, 0xd8, 0xff];
const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;

/**
 * Reads the map at `path` and its images. Never rejects: unusable entries are left out and logged. Map and images must lie in the folders
 * that files may be read from.
 */
export async function readOverlays(path: string, reading: AllowedFolders, logger: Logger): Promise<readonly OverlayRule[]> {
  let entries: readonly OverlayMapEntry[];
  try {
    await reading.checkLinks(path);
    entries = parseOverlayMap(await readXmlFile(path, logger, MAX_MAP_BYTES));
  } catch (error) {
    logger.error({ err: error, map: path }, `overlay map cannot be used: ${messageOf(error)}; the stream has no overlays`);
    return [];
  }
  const images = new Images(path, reading, logger);
  const rules: OverlayRule[] = [];
  for (const entry of entries) {
    const overlays: OverlayRequest[] = [];
    for (const overlay of entry.overlays) {
      const read = await images.read(overlay);
      if (read !== null) overlays.push(read);
    }
    rules.push({ ...entry, overlays });
  }
  return rules;
}

/** Each image of a map is read once. */
class Images {
  readonly #folder: string;
  readonly #reading: AllowedFolders;
  readonly #logger: Logger;
  readonly #known = new Map<string, Pick<OverlayRequest, 'image' | 'imageId'> | null>();
  #bytes = 0;

  constructor(map: string, reading: AllowedFolders, logger: Logger) {
    this.#folder = dirname(map);
    this.#reading = reading;
    this.#logger = logger;
  }

  async read(overlay: MappedOverlay): Promise<OverlayRequest | null> {
    const { url } = overlay;
    let image = this.#known.get(url);
    if (image === undefined) {
      image = await this.#open(url).catch((error: unknown) => {
        this.#logger.error({ err: error, url }, `the overlay '${url}' cannot be used: ${messageOf(error)}; it is left out`);
        return null;
      });
      this.#known.set(url, image);
    }
    return image === null ? null : { ...overlay, ...image };
  }

  async #open(url: string): Promise<Pick<OverlayRequest, 'image' | 'imageId'>> {
    const path = overlayPath(url, this.#folder);
    await this.#reading.checkLinks(path);
    const image = await readWhole(path, Math.min(MAX_IMAGE_BYTES, MAX_IMAGES_BYTES - this.#bytes));
    this.#bytes += image.length;
    if (![PNG, JPEG].some((magic) => magic.every((byte, at) => image[at] === byte))) throw new Error('it is neither PNG nor JPEG');
    return { image, imageId: createHash('sha256').update(image).digest('hex') };
  }
}

/** The file of an image URL; names without a scheme are relative to the folder of the map. Throws if it is not a file. */
export function overlayPath(url: string, folder: string): string {
  if (!SCHEME.test(url)) return resolve(folder, url);
  if (!/^file:/i.test(url)) throw new Error('only files are taken: file:///PATH, or a path from the folder of the map');
  try {
    return fileURLToPath(url);
  } catch (error) {
    throw new PathRefused(`${JSON.stringify(url)} is no path: ${messageOf(error)}`);
  }
}
