/** Chooses the implementation. */

import { loadAddon } from '../../../../native/addon.ts';
import type { DtlsCertificate } from '../dtls-certificate.ts';
import { ScriptFanout } from '../script-fanout/script-fanout.ts';
import type { Fanout, FanoutListener } from './fanout.ts';
import { NativeFanout, type SendMode } from './native-fanout.ts';

/** The caller closes the fanout. */
export interface OpenedFanout {
  readonly fanout: Fanout;
  /** Why the addon is not used; null when it is. */
  readonly fallback: string | null;
}

/** The addon's fanout, or the one in JavaScript with the reason. The caller closes it. */
export function openFanout(options: {
  readonly certificate: DtlsCertificate;
  readonly listener: FanoutListener;
  readonly threads: number;
  /** Default: `segmented`; benches set others. */
  readonly sendMode?: SendMode | undefined;
}): OpenedFanout {
  const loaded = loadAddon();
  if (loaded.addon === null) return { fanout: new ScriptFanout(options), fallback: loaded.reason };
  const { sendMode = 'segmented' } = options;
  return { fanout: new NativeFanout(loaded.addon, { ...options, sendMode }), fallback: null };
}
