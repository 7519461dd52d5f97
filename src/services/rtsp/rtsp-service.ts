/** RTSP as a service: streams are pulled from cameras and servers. */
import type { Service, ServiceContext } from '../service.ts';
import { RtspPullSource } from './rtsp-pull-source.ts';

/** Has no port. */
export function startRtsp({ clock }: ServiceContext): Service {
  return { pullSources: [new RtspPullSource(clock)] };
}
