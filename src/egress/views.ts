/** Which view serves which kind of outlet. */
import { HlsView } from '../publishers/hls/hls-view.ts';
import type { HlsViewSettings } from '../publishers/hls/settings.ts';
import { LlhlsView } from '../publishers/llhls/llhls-view.ts';
import type { LlhlsViewSettings } from '../publishers/llhls/settings.ts';
import { ThumbnailView } from '../publishers/thumbnail/thumbnail-view.ts';
import type { ViewFactories } from './outlet-registry.ts';

export const VIEWS: ViewFactories = {
  llhls: (settings, context) => new LlhlsView(settings as LlhlsViewSettings, context),
  hlsv3: (settings, context) => new HlsView(settings as HlsViewSettings, context),
  thumbnail: (settings, context) => new ThumbnailView(settings, context),
};
