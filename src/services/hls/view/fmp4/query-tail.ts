/** The query of child URIs: it identifies the viewer and the form of playlist that it requested. */
import type { DeliveryExchange } from '../../../../delivery/feed/view.ts';
import { LEGACY_KEY, type LlhlsViewSettings, REWIND_KEY } from '../../wire/view-settings.ts';

/** The options of a client that survive from the multivariant playlist to its children. */
export interface CarriedOptions {
  readonly legacy: boolean;
  readonly rewind: boolean;
}

/** `_HLS_legacy` and `_HLS_rewind`, YES or NO in any case; anything else means the configured default. */
export function clientOptions(exchange: DeliveryExchange, settings: LlhlsViewSettings): CarriedOptions {
  return {
    legacy: yesOrNo(exchange.queryValue(LEGACY_KEY)) ?? settings.defaultLegacy,
    rewind: yesOrNo(exchange.queryValue(REWIND_KEY)) ?? settings.defaultRewind,
  };
}

/** Query of media URIs (init, segments, parts) with its `?`; '' when nothing has to be carried. */
export function mediaTail(exchange: DeliveryExchange, token: string | null): string {
  const parts: string[] = [];
  if (token !== null) parts.push(`session=${token}`);
  const streamKey = exchange.queryValue('stream_key');
  if (streamKey !== undefined) parts.push(`stream_key=${encodeURIComponent(streamKey)}`);
  return parts.length === 0 ? '' : `?${parts.join('&')}`;
}

/** Query of media playlist URIs: that of media URIs, and the options that differ from the default. */
export function playlistTail(media: string, options: CarriedOptions, settings: LlhlsViewSettings): string {
  let tail = media;
  const append = (key: string, value: boolean): void => {
    tail += `${tail === '' ? '?' : '&'}${key}=${value ? 'YES' : 'NO'}`;
  };
  if (options.legacy !== settings.defaultLegacy) append(LEGACY_KEY, options.legacy);
  if (options.rewind !== settings.defaultRewind) append(REWIND_KEY, options.rewind);
  return tail;
}

function yesOrNo(value: string | undefined): boolean | null {
  const upper = value?.toUpperCase();
  if (upper === 'YES') return true;
  return upper === 'NO' ? false : null;
}
