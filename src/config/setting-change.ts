/** A difference between two configurations. */

/**
 * When a change takes effect. `now`: at once. `application`: at once, but the application restarts and its streams end. `restart`: at the
 * next start of the server. `never`: the setting has no effect.
 */
export type ChangeEffect = 'now' | 'application' | 'restart' | 'never';

/** One setting that differs. */
export interface SettingChange {
  /** `Server/VirtualHosts/VirtualHost[default]/Applications/Application[live]/OutputProfiles/…`. */
  readonly path: string;
  readonly kind: 'added' | 'removed' | 'changed' | 'reordered';
  /** `4000 → 6000`; empty where there is nothing to show, or it is secret. */
  readonly values: string;
  readonly effect: ChangeEffect;
  /** Where the setting is one of an application. */
  readonly application?: { readonly vhost: string; readonly app: string };
}
