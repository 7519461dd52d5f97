import { statisticsV1 } from '../../monitoring/stats-v1.ts';
import { ok } from '../envelope.ts';
import type { Route } from '../route.ts';
import { StatisticsV1Schema } from '../schemas.ts';

const ROOT = '/v1/stats/current';

/** Traffic of the server and of each level below it, in the form of version 1. */
export const statsV1Routes: readonly Route[] = [
  {
    method: 'GET',
    path: ROOT,
    level: 'server',
    summary: 'Statistics of the server',
    response: StatisticsV1Schema,
    handle: ({ control }) => ok(statisticsV1(control.meter)),
  },
  {
    method: 'GET',
    path: `${ROOT}/vhosts/{vhost}`,
    level: 'vhost',
    summary: 'Statistics of a virtual host',
    response: StatisticsV1Schema,
    handle: ({ vhost }) => ok(statisticsV1(vhost.meter)),
  },
  {
    method: 'GET',
    path: `${ROOT}/vhosts/{vhost}/apps/{app}`,
    level: 'app',
    summary: 'Statistics of an application',
    response: StatisticsV1Schema,
    handle: ({ app }) => ok(statisticsV1(app.meter)),
  },
  {
    method: 'GET',
    path: `${ROOT}/vhosts/{vhost}/apps/{app}/streams/{stream}`,
    level: 'stream',
    summary: 'Statistics of a stream',
    response: StatisticsV1Schema,
    handle: ({ stream }) => ok(statisticsV1(stream.meter)),
  },
];
