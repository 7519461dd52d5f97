/** Library options that select the device of a hardware encoder or decoder. */
import { CodecModule } from '../encoder-catalogue.ts';

/** Options that make an encoder or decoder use one device. */
export interface DeviceOptions {
  /** Private options of the encoder or decoder. */
  readonly options: Readonly<Record<string, string>>;
  /** The device to open for it; null leaves it to the library. */
  readonly node: string | null;
}

/** Render nodes of Linux are numbered from here. */
const FIRST_RENDER_NODE = 128;

/** For device `device` of a module, from 0; undefined is the library's choice. AMF has no way to name one. */
export function deviceOptions(module: CodecModule, device: number | undefined): DeviceOptions {
  if (device === undefined) return { options: {}, node: null };
  if (module === CodecModule.NV) return { options: { gpu: String(device) }, node: null };
  const hasNodes = module === CodecModule.VAAPI || module === CodecModule.QSV;
  return { options: {}, node: hasNodes ? `/dev/dri/renderD${FIRST_RENDER_NODE + device}` : null };
}
