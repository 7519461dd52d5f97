/** Chooses the implementation. */
import type { DtlsCertificate } from '../dtls/certificate.ts';
import { loadAddon } from './addon.ts';
import type { Fanout, FanoutListener } from './fanout.ts';
import { NativeFanout } from './native-fanout.ts';
import { ScriptFanout } from './script-fanout.ts';

export interface OpenedFanout {
  readonly fanout: Fanout;
  /** Why the addon is not used; null when it is. */
  readonly fallback: string | null;
}

/** The addon's fanout, or the one in JavaScript and the reason for it. Whoever opens it closes it. */
export function openFanout(options: {
  readonly certificate: DtlsCertificate;
  readonly listener: FanoutListener;
  readonly threads: number;
}): OpenedFanout {
  const loaded = loadAddon();
  if (loaded.addon === null) return { fanout: new ScriptFanout(options), fallback: loaded.reason };
  return { fanout: new NativeFanout(loaded.addon, options), fallback: null };
}
