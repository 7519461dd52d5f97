/** Offers a subtitle track in both kinds of playlist. */
import { SUBTITLE_VARIANT } from '../../../core/subtitle-injector.ts';
import type { SubtitleTrack } from '../../../media/track.ts';
import { serializeSubtitleRendition } from '../../../playlist/multivariant-tags.ts';
import { TAIL_MARK } from '../wire/fmp4/update.ts';

/** The line of a multivariant playlist. Default and forced renditions are selected automatically, too (rfc8216bis §4.4.6.1). */
export function subtitleRendition({ publicName, language, isDefault, autoSelect, forced }: SubtitleTrack, uri: string): string {
  return serializeSubtitleRendition({
    groupId: SUBTITLE_VARIANT,
    // Views replace these marks.
    name: publicName.replaceAll(TAIL_MARK, ''),
    default: isDefault,
    autoselect: autoSelect || isDefault || forced,
    forced,
    language: language === 'auto' ? '' : language,
    uri,
  });
}
