/**
 * Thumbnails as a service: the newest image of each image track of an outbound stream, over HTTP.
 *
 * `ThumbnailStream` keeps the images, `ThumbnailView` answers requests; `wire/` defines the messages between them.
 *
 * Threads: `view/` runs in delivery threads, all else on the main one.
 * Limits: a request waits up to 5 s for the first image, 1000 of a stream at once in a thread.
 * Specifications: none; JPEG, PNG and WebP come from the transcoder.
 */
import type { Service, ServiceContext } from '../service.ts';
import { ThumbnailPublisher } from './thumbnail-publisher.ts';

/** The ports are those of all HTTP. */
export function startThumbnails({ delivery }: ServiceContext): Service {
  return { publishers: [new ThumbnailPublisher(delivery)] };
}
