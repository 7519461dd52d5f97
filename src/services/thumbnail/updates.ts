/** What the packager of a stream tells its views in the egress threads. */
import type { Span } from '../../delivery/outlet/messages.ts';

/** File names that frames have, without the dot. */
export const PictureKind = { JPG: 'jpg', PNG: 'png', WEBP: 'webp' } as const;
/** Any of these extensions. */
export type PictureKind = (typeof PictureKind)[keyof typeof PictureKind];

/** One change of what is served; a view that starts late gets the newest frames. */
export type ThumbnailUpdate =
  /** The stream has started, or its tracks changed: the kinds of frames that are made. */
  | { readonly type: 'kinds'; readonly kinds: readonly PictureKind[] }
  /** A newer frame; the one before is gone. */
  | { readonly type: 'picture'; readonly kind: PictureKind; readonly spans: readonly Span[] };
