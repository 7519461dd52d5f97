import { healthRoute } from './health-route.ts';
import { metricsRoute } from './metrics-route.ts';
import { openApiRoute } from './openapi-route.ts';
import type { Route } from './route.ts';
import { accessKeyRoutes } from './v1/access-keys.ts';
import { appRoutes } from './v1/apps.ts';
import { certificateRoutes } from './v1/certificates.ts';
import { eventRoutes } from './v1/events.ts';
import { hlsDumpRoutes } from './v1/hls-dumps.ts';
import { internalsV1Routes } from './v1/internals.ts';
import { liveEventsRoute } from './v1/live-events.ts';
import { multiplexRoutes } from './v1/multiplex-channels.ts';
import { outputProfileRoutes } from './v1/output-profiles.ts';
import { pushRoutes } from './v1/pushes.ts';
import { recordRoutes } from './v1/records.ts';
import { scheduledChannelRoutes } from './v1/scheduled-channels.ts';
import { serverRoutes } from './v1/server.ts';
import { sessionRoutes } from './v1/sessions.ts';
import { statsV1Routes } from './v1/stats.ts';
import { streamRoutes } from './v1/streams.ts';
import { subtitleRoutes } from './v1/subtitles.ts';
import { versionRoutes } from './v1/version.ts';
import { vhostRoutes } from './v1/vhosts.ts';
import { internalsV2Routes } from './v2/internals.ts';
import { logsRoute } from './v2/logs.ts';
import { recordedFileRoutes, recordingRoutes } from './v2/recordings.ts';
import { viewerRoutes } from './v2/sessions.ts';
import { srtReachRoutes } from './v2/srt-reach.ts';
import { statsV2Routes } from './v2/stats.ts';
import { streamHistoryRoutes } from './v2/stream-history.ts';
import { streamFiguresRoutes } from './v2/streams.ts';

const resources: readonly Route[] = [
  ...versionRoutes,
  ...serverRoutes,
  ...vhostRoutes,
  ...certificateRoutes,
  ...appRoutes,
  ...outputProfileRoutes,
  ...accessKeyRoutes,
  ...streamRoutes,
  ...recordRoutes,
  ...sessionRoutes,
  ...hlsDumpRoutes,
  ...eventRoutes,
  ...subtitleRoutes,
  ...pushRoutes,
  ...scheduledChannelRoutes,
  ...multiplexRoutes,
  ...statsV1Routes,
  ...internalsV1Routes,
  ...statsV2Routes,
  ...internalsV2Routes,
  ...srtReachRoutes,
  ...streamFiguresRoutes,
  ...streamHistoryRoutes,
  ...viewerRoutes,
  liveEventsRoute,
  logsRoute,
  ...recordingRoutes,
  healthRoute,
];

/** Every route of the API; if two match a path, the earlier one is used. */
export const routes: readonly Route[] = [...resources, ...recordedFileRoutes, metricsRoute, openApiRoute(() => routes)];
