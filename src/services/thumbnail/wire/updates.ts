/** The packager's updates for the views of a stream in the delivery threads. */
import type { Span } from '../../../delivery/feed/messages.ts';

/** File names that images have, without the dot. */
export const ImageKind = { JPG: 'jpg', PNG: 'png', WEBP: 'webp' } as const;
/** Any of these extensions. */
export type ImageKind = (typeof ImageKind)[keyof typeof ImageKind];

/** One change of what is served; a view that starts late gets the newest images. */
export type ThumbnailUpdate =
  /** The stream has started, or its tracks changed: the kinds of images that are made. */
  | { readonly type: 'kinds'; readonly kinds: readonly ImageKind[] }
  /** A newer image; the previous image is gone. */
  | { readonly type: 'image'; readonly kind: ImageKind; readonly spans: readonly Span[] };
