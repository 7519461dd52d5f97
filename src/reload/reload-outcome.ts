/** Results of reloads. Programs that use the server as a library see these types: they need nothing that only the project has. */
import type { SettingChange } from '../config/setting-change.ts';

/** The result of a reload. */
export type ReloadOutcome =
  | { readonly kind: 'reloaded'; readonly changes: readonly SettingChange[] }
  /** Nothing has changed; `reason` has one line for each fault. */
  | { readonly kind: 'refused'; readonly reason: string };

/** Notified of every reload. */
export interface ReloadFollowers {
  begun(): void;
  over(outcome: ReloadOutcome): void;
}
