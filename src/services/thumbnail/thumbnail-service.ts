/**
 * Thumbnails as a service: the image tracks of a ladder, the newest of each over HTTP.
 *
 * `ThumbnailStream` keeps the images on the main thread, `ThumbnailView` answers in delivery threads; a request waits up to 5 s for the first image,
 * 1000 of them at once.
 */
import type { Service, ServiceContext } from '../service.ts';
import { ThumbnailPublisher } from './thumbnail-publisher.ts';

/** The ports are those of all HTTP. */
export function startThumbnails({ delivery }: ServiceContext): Service {
  return { publishers: [new ThumbnailPublisher(delivery)] };
}
