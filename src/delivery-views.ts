/** Which view serves which kind of feed. */

import type { ViewFactories } from './delivery/feed/view.ts';
import { LlhlsView } from './services/hls/view/fmp4/llhls-view.ts';
import { HlsView } from './services/hls/view/ts/hls-view.ts';
import type { HlsViewSettings, LlhlsViewSettings } from './services/hls/wire/view-settings.ts';
import { ThumbnailView } from './services/thumbnail/view/thumbnail-view.ts';

export const VIEWS: ViewFactories = {
  llhls: (settings, context) => new LlhlsView(settings as LlhlsViewSettings, context),
  hlsv3: (settings, context) => new HlsView(settings as HlsViewSettings, context),
  thumbnail: (settings, context) => new ThumbnailView(settings, context),
};
