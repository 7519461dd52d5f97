/**
 * Thumbnails as a service: the image tracks of a ladder, the newest image of each over HTTP.
 *
 * `ThumbnailStream` keeps the images, `ThumbnailView` answers requests; `wire/` is the language between them.
 *
 * Threads: `view/` runs in delivery threads, all else on the main one.
 * Limits: a request waits up to 5 s for the first image, 1000 of them at once in a thread.
 * Specifications: none; JPEG, PNG and WebP come from the transcoder.
 */
import type { Service, ServiceContext } from '../service.ts';
import { ThumbnailPublisher } from './thumbnail-publisher.ts';

/** The ports are those of all HTTP. */
export function startThumbnails({ delivery }: ServiceContext): Service {
  return { publishers: [new ThumbnailPublisher(delivery)] };
}
