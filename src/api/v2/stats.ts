import { statisticsV2 } from '../../monitoring/stats-v2.ts';
import { ok } from '../envelope.ts';
import type { Route } from '../route.ts';
import { StatisticsV2Schema } from '../schemas.ts';

const ROOT = '/v2/stats/current/vhosts/{vhost}';

/** Traffic of a virtual host and of each level below it, in the form of version 2. */
export const statsV2Routes: readonly Route[] = [
  {
    method: 'GET',
    path: ROOT,
    level: 'vhost',
    summary: 'Statistics of a virtual host',
    response: StatisticsV2Schema,
    handle: ({ vhost }) => ok(statisticsV2(vhost.meter)),
  },
  {
    method: 'GET',
    path: `${ROOT}/apps/{app}`,
    level: 'app',
    summary: 'Statistics of an application',
    response: StatisticsV2Schema,
    handle: ({ app }) => ok(statisticsV2(app.meter)),
  },
  {
    method: 'GET',
    path: `${ROOT}/apps/{app}/streams/{stream}`,
    level: 'stream',
    summary: 'Statistics of a stream',
    response: StatisticsV2Schema,
    handle: ({ stream }) => ok(statisticsV2(stream.meter)),
  },
];
