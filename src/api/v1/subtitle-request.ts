/** A client's request to show subtitles. */
import { areCueSettings } from '../../containers/webvtt/cue-payload.ts';
import { MAX_CUE_MS, MAX_CUE_SETTINGS, MAX_CUE_TEXT, type SubtitleCue, type SubtitleWish } from '../../core/subtitle-injector.ts';
import { Type } from '../../util/typebox.ts';
import { ApiError } from '../errors.ts';
import { memberOf } from '../json/json-value.ts';
import { refuseMembers } from '../json/member-check.ts';

const FORMAT = 'webvtt';
const DEFAULT_DURATION_MS = 1000;
/** Limit of cues in one request: as many as a stream accepts at once. */
const MAX_CUES = 1000;

const CUE = Type.Object({
  text: Type.String({ maxLength: MAX_CUE_TEXT, description: 'Cue text of WebVTT; lines end with \\n' }),
  startOffset: Type.Optional(
    Type.Integer({
      minimum: -MAX_CUE_MS,
      maximum: MAX_CUE_MS,
      description: 'Start, ms from the end of the previous cue, or from now; default 0',
    }),
  ),
  durationMs: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MAX_CUE_MS, description: 'Time for which the cue is shown, ms; default 1000' }),
  ),
  settings: Type.Optional(Type.String({ maxLength: MAX_CUE_SETTINGS, description: 'Cue settings of WebVTT, e.g. line:90%' })),
});

const LIST = Type.Object({
  label: Type.String({ description: 'Label of a rendition of MediaOptions/Subtitles' }),
  subtitles: Type.Array(CUE),
});

/** The body of `:sendSubtitles`. */
export const SubtitleRequestSchema = Type.Object({
  format: Type.String({ description: 'webvtt' }),
  data: Type.Array(LIST, { description: 'Cues by language' }),
});

/** Reads a request. Throws `ApiError` if it is incomplete or cannot be shown. */
export function subtitleWishes(body: unknown): SubtitleWish[] {
  const format = memberOf(body, 'format');
  const data = memberOf(body, 'data');
  if (typeof format !== 'string' || !Array.isArray(data) || data.length === 0) throw new ApiError('SUBTITLES_INCOMPLETE');
  if (format.toLowerCase() !== FORMAT) throw new ApiError('SUBTITLES_FORMAT_UNSUPPORTED', format);
  const wishes = (data as readonly unknown[]).map(wishOf);
  const count = wishes.reduce((sum, { cues }) => sum + cues.length, 0);
  if (count > MAX_CUES) throw new ApiError('MEMBER_INVALID', 'data', `of at most ${MAX_CUES} subtitles`);
  return wishes;
}

function wishOf(item: unknown): SubtitleWish {
  const label = memberOf(item, 'label');
  const subtitles = memberOf(item, 'subtitles');
  if (typeof label !== 'string' || !Array.isArray(subtitles) || subtitles.length === 0) throw new ApiError('SUBTITLES_LABEL_MISSING');
  return { label, cues: (subtitles as readonly unknown[]).map(cueOf) };
}

function cueOf(item: unknown): SubtitleCue {
  const text = memberOf(item, 'text');
  if (typeof text !== 'string') throw new ApiError('SUBTITLES_TEXT_MISSING');
  refuseMembers(item, CUE, 'data.subtitles.');
  if (text.length > MAX_CUE_TEXT) throw invalid('text', `a text of at most ${MAX_CUE_TEXT} characters`);
  const settings = memberOf(item, 'settings') ?? '';
  if (typeof settings !== 'string' || settings.length > MAX_CUE_SETTINGS || !areCueSettings(settings)) {
    throw invalid('settings', `cue settings of WebVTT of at most ${MAX_CUE_SETTINGS} characters, such as line:90%`);
  }
  const startOffset = within(item, 'startOffset', { from: -MAX_CUE_MS, absent: 0 });
  return { startOffset, duration: within(item, 'durationMs', { from: 1, absent: DEFAULT_DURATION_MS }), settings, text };
}

function within(item: unknown, name: string, { from, absent }: { readonly from: number; readonly absent: number }): number {
  const value = memberOf(item, name) ?? absent;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= from && value <= MAX_CUE_MS) return value;
  throw invalid(name, `a whole number from ${from} to ${MAX_CUE_MS}`);
}

function invalid(name: string, what: string): ApiError {
  return new ApiError('MEMBER_INVALID', `data.subtitles.${name}`, what);
}
