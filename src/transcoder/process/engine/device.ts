import * as C from 'node-av/constants';
import { Dictionary, HardwareDeviceContext } from 'node-av/lib';
import { throwIfFailed } from './library.ts';

/** A device for hardware encoders and decoders. The caller closes it, after they are closed. */
export class Device {
  readonly context = new HardwareDeviceContext();

  /** `node`: a render node such as `/dev/dri/renderD129`; null leaves the choice to the library. Throws EngineError when there is none. */
  constructor(kind: 'vaapi' | 'qsv', node: string | null) {
    try {
      const created =
        kind === 'vaapi'
          ? this.context.create(C.AV_HWDEVICE_TYPE_VAAPI, node, null)
          : this.context.create(C.AV_HWDEVICE_TYPE_QSV, null, node === null ? null : Dictionary.fromObject({ child_device: node }));
      throwIfFailed(created, `${kind === 'vaapi' ? 'VA-API' : 'QSV'} device${node === null ? '' : ` ${node}`}`);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  close(): void {
    this.context.free();
  }
}
