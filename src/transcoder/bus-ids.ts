/** Bus ids of hardware devices, as reported by Linux. */
import { readdir, readFile, realpath } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { CodecModule } from './encoder-catalogue.ts';

const NVIDIA = '0x10de';
const INTEL = '0x8086';
const AMD = '0x1002';
/** Vendor of each module's devices. */
const VENDORS: readonly (readonly [CodecModule, readonly string[]])[] = [
  [CodecModule.NV, [NVIDIA]],
  [CodecModule.QSV, [INTEL]],
  [CodecModule.VAAPI, [INTEL, AMD]],
  [CodecModule.AMF, [AMD]],
];

/**
 * Bus identifiers such as `0000:00:02.0`, of modules that have exactly one device here: among several the codec library chooses, and does
 * not say which.
 */
export async function busIds(root = '/'): Promise<ReadonlyMap<CodecModule, string>> {
  const devices = await renderDevices(join(root, 'sys/class/drm'));
  // In containers the driver lists cards that have no device node.
  for (const id of await names(join(root, 'proc/driver/nvidia/gpus'))) devices.set(id, NVIDIA);
  const found = new Map<CodecModule, string>();
  for (const [module, vendors] of VENDORS) {
    const [id, another] = [...devices].flatMap(([name, vendor]) => (vendors.includes(vendor) ? [name] : []));
    if (id !== undefined && another === undefined) found.set(module, id);
  }
  return found;
}

/** Vendors by bus identifier. */
async function renderDevices(folder: string): Promise<Map<string, string>> {
  const devices = new Map<string, string>();
  for (const name of await names(folder)) {
    if (!name.startsWith('renderD')) continue;
    try {
      const device = join(folder, name, 'device');
      devices.set(basename(await realpath(device)), (await readFile(join(device, 'vendor'), 'utf8')).trim());
    } catch {
      // A device without a vendor is on no bus.
    }
  }
  return devices;
}

/** Entries of a folder; empty if it cannot be read. */
async function names(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}
