/** Configuration of the thumbnail publisher. */
import type { CrossDomainRules } from '../../delivery/outlet/messages.ts';

/** `Publishers/Thumbnail` of an application. */
export interface ThumbnailSettings {
  readonly crossDomains?: CrossDomainRules | undefined;
}
