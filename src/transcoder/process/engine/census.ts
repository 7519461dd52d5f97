/** Finds the parts of the library that work on this machine. */
import * as C from 'node-av/constants';
import { Codec, HardwareDeviceContext } from 'node-av/lib';
import type { AudioCodec, VideoCodec } from '../../../media/codec.ts';
import { Decoder } from './decoder.ts';
import { Encoder } from './encoder.ts';
import { FramePool } from './frame-pool.ts';
import type { FrameFormat } from './frame-properties.ts';
import { CODEC_IDS } from './library.ts';

const PROBE: FrameFormat = {
  width: 640,
  height: 360,
  pixelFormat: C.AV_PIX_FMT_YUV420P,
  sarNum: 1,
  sarDen: 1,
  colorSpace: C.AVCOL_SPC_UNSPECIFIED,
  colorRange: C.AVCOL_RANGE_UNSPECIFIED,
  colorPrimaries: C.AVCOL_PRI_UNSPECIFIED,
  colorTransfer: C.AVCOL_TRC_UNSPECIFIED,
};

/** Whether the library has this encoder; a hardware encoder counts only if it opens on this machine. */
export function encoderWorks(name: string, hardware: { readonly pixelFormat: string; readonly uploads: boolean } | null): boolean {
  if (Codec.findEncoderByName(name as Parameters<typeof Codec.findEncoderByName>[0]) === null) return false;
  if (hardware === null) return true;
  try {
    const encoder = Encoder.forFrames({
      name,
      format: PROBE,
      pixelFormat: hardware.pixelFormat,
      framerate: 30,
      bitrate: 1_000_000,
      bufferBits: 0,
      bFrames: 0,
      gop: 30,
      threads: 1,
      options: {},
      offThread: false,
      uploads: hardware.uploads,
    });
    encoder.close();
    return true;
  } catch {
    return false;
  }
}

/** The name of the library's decoder for a codec; null when it has none. */
export function decoderName(codec: VideoCodec | AudioCodec): string | null {
  return Codec.findDecoder(CODEC_IDS[codec])?.name ?? null;
}

const DEVICES = { cuda: C.AV_HWDEVICE_TYPE_CUDA, qsv: C.AV_HWDEVICE_TYPE_QSV } as const;

/** Whether this machine has the device. */
export function deviceWorks(device: keyof typeof DEVICES): boolean {
  const context = new HardwareDeviceContext();
  const created = context.create(DEVICES[device], null, null);
  context.free();
  return created >= 0;
}

/** Whether the library has this hardware decoder and can open it; some open without their device, so the device is checked, too. */
export function decoderWorks(name: string, codec: VideoCodec): boolean {
  try {
    const options = { codec, name, timebase: { num: 1, den: 90_000 }, config: null, threads: 1, offThread: false };
    new Decoder(options, new FramePool()).close();
    return true;
  } catch {
    return false;
  }
}
