/** Prometheus metrics of the server's origin maps. */
import type { MetricDefinition, MetricSource } from '../util/metrics.ts';
import type { OriginMaps } from './origin-maps.ts';

const MAPS: MetricDefinition = {
  name: 'millrace_origin_maps',
  help: 'Origin maps, by whether their Redis can be used',
  type: 'gauge',
};
const STREAMS: MetricDefinition = {
  name: 'millrace_origin_map_streams',
  help: 'Streams that edges can find at this server: registered, or waiting for Redis or for the end of an entry of another server',
  type: 'gauge',
};
const LOOK_UPS: MetricDefinition = {
  name: 'millrace_origin_map_lookups_total',
  help: 'Streams looked up in origin maps, by result',
  type: 'counter',
};
const REFUSED: MetricDefinition = {
  name: 'millrace_origin_map_refused_total',
  help: 'Commands to Redis that were not sent because too many waited for an answer',
  type: 'counter',
};
const LEASES: MetricDefinition = {
  name: 'millrace_shared_work_leases',
  help: 'Shared pulls, channels and pushes that this node carries out',
  type: 'gauge',
};
const LOST: MetricDefinition = {
  name: 'millrace_shared_work_lost_total',
  help: 'Pulls, channels and pushes that another node has taken over from this one',
  type: 'counter',
};
const DEFINITIONS: MetricDefinition = {
  name: 'millrace_shared_definitions',
  help: 'Pulls, channels and pushes that nodes know from each other, by whether this node can do them',
  type: 'gauge',
};

/** `figures`: sums over all maps. */
export function originMapMetrics(figures: () => OriginMaps['figures']): MetricSource {
  return {
    definitions: [MAPS, STREAMS, LOOK_UPS, REFUSED, LEASES, LOST, DEFINITIONS],
    collect(page) {
      const { reachable, unreachable, registered, waiting, found, absent, failed, refused, leases, lost, definitions, unplaced } =
        figures();
      const maps = page.family(MAPS);
      maps.add(reachable, 'reachable="yes"');
      maps.add(unreachable, 'reachable="no"');
      const streams = page.family(STREAMS);
      streams.add(registered, 'state="registered"');
      streams.add(waiting, 'state="waiting"');
      const lookUps = page.family(LOOK_UPS);
      for (const [result, count] of Object.entries({ found, absent, failed })) lookUps.add(count, `result="${result}"`);
      page.family(REFUSED).add(refused);
      page.family(LEASES).add(leases);
      page.family(LOST).add(lost);
      const shared = page.family(DEFINITIONS);
      shared.add(definitions - unplaced, 'possible="yes"');
      shared.add(unplaced, 'possible="no"');
    },
  };
}
