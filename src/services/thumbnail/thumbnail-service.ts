/** Thumbnails as a service: the image tracks of a ladder, over HTTP. */
import type { Service, ServiceContext } from '../service.ts';
import { ThumbnailPublisher } from './thumbnail-publisher.ts';

/** The ports are those of all HTTP. */
export function startThumbnails({ egress }: ServiceContext): Service {
  return { publishers: [new ThumbnailPublisher(egress)] };
}
