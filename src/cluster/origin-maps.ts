/** The origin maps of all virtual hosts that have one (`OriginMapStore`). */
import { isDeepStrictEqual } from 'node:util';
import type { OriginMapStoreConfig } from '../config/index.ts';
import { OWN_WORK, type SharedWork, type Work, type WorkKeeper, type WorkSharing, type WorkState } from '../core/shared-work.ts';
import type { VirtualHost } from '../core/virtual-host.ts';
import type { Clock } from '../util/clock.ts';
import type { Conditions } from '../util/conditions.ts';
import type { Logger } from '../util/logger.ts';
import { OriginMap, type OriginMapFigures, type OriginMapOptions } from './origin-map.ts';
import type { UntoldChanges } from './untold-changes.ts';

/** A stream that edges can pull. */
interface NamedStream {
  readonly vhost: string;
  readonly app: string;
  readonly name: string;
  /** Name of its inbound stream. */
  readonly sourceName: string;
}

/** Kinds of work that produce inbound streams. */
const STREAM_MAKERS = ['pull', 'scheduled', 'multiplex'] as const satisfies readonly Work['kind'][];

/** Figures that count the present. */
const PRESENT = { registered: 0, waiting: 0, leases: 0, definitions: 0, unplaced: 0 };
const NOTHING: OriginMapFigures = { found: 0, absent: 0, failed: 0, refused: 0, lost: 0, ...PRESENT };

function sumOf(figures: readonly OriginMapFigures[]): OriginMapFigures {
  const sum: { -readonly [key in keyof OriginMapFigures]: number } = { ...NOTHING };
  for (const one of figures) for (const key of Object.keys(sum) as (keyof OriginMapFigures)[]) sum[key] += one[key];
  return sum;
}

function workName({ kind, vhost, app, name }: Work): string {
  return `${kind}/${vhost}/${app}/${name}`;
}

/**
 * Owns a map for each virtual host that configures one; the server calls `follow` whenever virtual hosts change, and `close` at its end.
 */
export class OriginMaps implements SharedWork, WorkSharing {
  readonly #ovtPort: number | null;
  readonly #ovtScheme: 'ovt' | 'ovts';
  readonly #clock: Clock;
  readonly #conditions: Conditions;
  readonly #logger: Logger;
  /** By virtual host: a deleted and recreated one is another object. */
  readonly #maps = new Map<VirtualHost, OriginMap>();
  /** The settings of each map: a virtual host may get other settings. */
  readonly #settings = new WeakMap<OriginMap, OriginMapStoreConfig>();
  readonly #byName = new Map<string, OriginMap>();
  #withdrawn = false;
  #ended: OriginMapFigures = NOTHING;
  readonly #closing = new Set<Promise<void>>();
  readonly #untold: UntoldChanges | undefined;
  readonly #keepers: WorkKeeper[] = [];
  #isSharing = false;

  /**
   * `ovtPort`: port where edges pull streams from this server; null: none. `untold`: changes that other nodes still have to learn; absent:
   * no definitions are shared.
   */
  constructor(
    options: Pick<OriginMapOptions, 'ovtPort' | 'ovtScheme' | 'clock' | 'logger'> & {
      readonly conditions: Conditions;
      readonly untold?: UntoldChanges;
    },
  ) {
    this.#untold = options.untold;
    options.conditions.ask(() => (this.figures.unplaced === 0 ? null : 'shared work of other nodes cannot be done by this server'));
    this.#ovtPort = options.ovtPort;
    this.#ovtScheme = options.ovtScheme ?? 'ovt';
    this.#clock = options.clock;
    this.#conditions = options.conditions;
    this.#logger = options.logger;
  }

  /** Figures of all maps together, including closed ones. */
  get figures(): OriginMapFigures & { readonly reachable: number; readonly unreachable: number } {
    const maps = [...this.#maps.values()];
    const reachable = maps.filter((map) => map.reachable).length;
    return { ...sumOf([this.#ended, ...maps.map(({ figures }) => figures)]), reachable, unreachable: maps.length - reachable };
  }

  /** Which node does the work; ours, if the virtual host shares none. */
  stateOf(work: Work): WorkState {
    const map = this.of(work.vhost);
    // Another node may have deleted it.
    if (map?.definitions?.ready === false) return 'unknown';
    return map?.leases?.stateOf(workName(work)) ?? 'ours';
  }

  change<T>(work: Work, change: (tell: (definition: object | null) => void) => Promise<T>): Promise<T> {
    return (this.of(work.vhost)?.definitions ?? OWN_WORK).change(work, change);
  }

  /** Call it before `startSharing`. */
  addKeeper(keeper: WorkKeeper): void {
    this.#keepers.push(keeper);
  }

  /** The keepers have the work that the last run left. */
  startSharing(): void {
    this.#isSharing = true;
    for (const map of this.#maps.values()) map.definitions?.start();
  }

  /** Resolves when it is known which node does the work, after `ms` at the latest. */
  async decided(work: Work, ms: number): Promise<void> {
    const map = this.of(work.vhost);
    if (map?.definitions?.ready === false) await map.definitions.known(ms);
    else await map?.leases?.decided(workName(work), ms);
  }

  /** Whether local streams are hidden from other servers. */
  withdraw(withdrawn: boolean): void {
    this.#withdrawn = withdrawn;
    for (const map of this.#maps.values()) map.withdraw(withdrawn);
  }

  /** Opens the maps of new virtual hosts and closes those of removed ones. */
  follow(virtualHosts: readonly VirtualHost[]): void {
    for (const [vhost, map] of this.#maps) {
      const { originMapStore } = vhost.definition.config;
      if (!virtualHosts.includes(vhost) || !isDeepStrictEqual(this.#settings.get(map), originMapStore)) this.#close(vhost, map);
    }
    for (const vhost of virtualHosts) {
      const { originMapStore } = vhost.definition.config;
      if (originMapStore === undefined || this.#maps.has(vhost)) continue;
      const map: OriginMap = new OriginMap({
        ...{
          config: originMapStore,
          ovtPort: this.#ovtPort,
          ovtScheme: this.#ovtScheme,
          clock: this.#clock,
          logger: this.#logger.child({ vhost: vhost.name }),
        },
        onReachable: (reachable) => this.#tell(vhost, reachable),
        ...(this.#untold !== undefined && { sharing: this.#sharingOf(vhost, this.#untold) }),
      });
      if (this.#isSharing) map.definitions?.start();
      if (this.#withdrawn) map.withdraw(true);
      this.#maps.set(vhost, map);
      this.#settings.set(map, originMapStore);
      this.#byName.set(vhost.name, map);
    }
  }

  of(vhost: string): OriginMap | undefined {
    return this.#byName.get(vhost);
  }

  /** Edges can pull the stream from this server. */
  add({ vhost, app, name, sourceName }: NamedStream): void {
    const works = STREAM_MAKERS.map((kind) => workName({ kind, vhost, app, name: sourceName }));
    this.of(vhost)?.add(app, name, works);
  }

  /** The stream has ended. */
  remove({ vhost, app, name }: Omit<NamedStream, 'sourceName'>): void {
    this.of(vhost)?.remove(app, name);
  }

  /** Call it after the last stream has ended; takes about a second if Redis hangs. Idempotent. */
  async close(): Promise<void> {
    for (const [vhost, map] of this.#maps) this.#close(vhost, map);
    await Promise.all(this.#closing);
  }

  #sharingOf(vhost: VirtualHost, untold: UntoldChanges): NonNullable<OriginMapOptions['sharing']> {
    return { vhost: vhost.name, keepers: this.#keepers, hasApplication: (app) => vhost.applications.has(app), untold };
  }

  /** The reason is public. */
  #tell(vhost: VirtualHost, reachable: boolean): void {
    const key = `origin-map ${vhost.name}`;
    if (reachable) this.#conditions.clear(key);
    else this.#conditions.raise(key, 'an origin map cannot be asked or told of streams: its Redis cannot be used');
  }

  #close(vhost: VirtualHost, map: OriginMap): void {
    this.#maps.delete(vhost);
    this.#tell(vhost, true);
    this.#ended = sumOf([this.#ended, { ...map.figures, ...PRESENT }]);
    if (this.#byName.get(vhost.name) === map) this.#byName.delete(vhost.name);
    const closed = map.close().finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }
}
