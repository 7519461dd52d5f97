/** Configuration of the thumbnail publisher. */
import type { CrossDomainRules } from '../outlet/messages.ts';

/** `Publishers/Thumbnail` of an application. */
export interface ThumbnailSettings {
  readonly crossDomains?: CrossDomainRules | undefined;
}
