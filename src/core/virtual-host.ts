import type { ApplicationConfig, VirtualHostConfig } from '../config/index.ts';
import type { Clock } from '../util/clock.ts';
import type { Application } from './application.ts';
import type { Definition } from './definition.ts';
import type { NamedHosts } from './host-name-table.ts';
import { TrafficMeter } from './traffic-meter.ts';

/** A set of host names with the applications they reach. */
export class VirtualHost implements NamedHosts {
  readonly name: string;
  #definition: Definition<VirtualHostConfig>;
  /** Declared in the configuration file: the API may not change it. */
  readonly readOnly: boolean;
  readonly meter: TrafficMeter;
  /** By name, in order of creation. */
  readonly applications = new Map<string, Application>();
  /** Template of applications that are requested but not declared; null: none are made. */
  template: Definition<ApplicationConfig> | null = null;
  /** Applications made from the template, with the monotonic time (ms) since which they have no streams; null while they have. */
  readonly dynamic = new Map<Application, number | null>();
  /** Position among the durable virtual hosts. */
  readonly order: number;

  constructor(
    definition: Definition<VirtualHostConfig>,
    options: { readOnly: boolean; order: number; clock: Clock; parentMeter: TrafficMeter },
  ) {
    this.name = definition.name;
    this.#definition = definition;
    this.readOnly = options.readOnly;
    this.order = options.order;
    this.meter = new TrafficMeter(options.clock, options.parentMeter);
  }

  get definition(): Definition<VirtualHostConfig> {
    return this.#definition;
  }

  /** Takes another definition of the same name; the owner notifies its users. */
  amend(definition: Definition<VirtualHostConfig>): void {
    this.#definition = definition;
  }

  get hostNames(): readonly string[] {
    return this.definition.config.host?.names ?? [];
  }
}
