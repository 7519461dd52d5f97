/** Deliberate differences from the reference server in answers to viewers; `docs/reference/playback-differences.md` gives the reasons. */

/** Differences in the answer to one recorded request. */
export interface PlaybackDifference {
  readonly status?: number;
  /** By name in lower case; null for an absent header. */
  readonly headers?: Readonly<Record<string, string | null>>;
  /** Kinds of playlist lines that are missing here. */
  readonly less?: readonly string[];
  /** Kinds of playlist lines that are added here. */
  readonly more?: readonly string[];
}

const NO_STREAM_HEADERS = {
  vary: 'Origin',
  'access-control-allow-credentials': 'true',
  'access-control-allow-methods': 'OPTIONS, GET, HEAD',
  'access-control-allow-origin': '*',
};

/** Differences by id and number of the recorded exchange; empty where no recording shows the difference. */
export const PLAYBACK_DIFFERENCES: Readonly<Record<string, Readonly<Record<number, PlaybackDifference>>>> = {
  'product-name': {},
  'vary-coding': each([562, 563, 565, 566, 568, 569], { headers: { vary: 'Origin, Accept-Encoding' } }),
  'forced-sound': {
    562: withoutForced('/app/stream/chunklist_N_audio_KEY_llhls.mNuN?session=S'),
    563: withoutForced('chunklist_N_audio_KEY_llhls.mNuN?session=S'),
    565: withoutForced('/app/stream/chunklist_N_audio_KEY_llhls.mNuN?session=S&_HLS_rewind=NO'),
  },
  'default-sound': {},
  'delta-updates': {
    ...each([566, 569], skippable()),
    568: skippable(['#EXT-X-SKIP:SKIPPED-SEGMENTS']),
  },
  'rendition-reports': {
    ...each([566, 568], { more: ['#EXT-X-RENDITION-REPORT:LAST-MSN,LAST-PART,URI chunklist_N_video_KEY_llhls.mNuN?session=S'] }),
    569: { more: ['#EXT-X-RENDITION-REPORT:LAST-MSN,LAST-PART,URI chunklist_N_audio_KEY_llhls.mNuN?session=S'] },
  },
  'blocking-limits': {},
  'waiting-limits': {},
  'segment-lengths': {},
  'part-lengths': {},
  'short-rests': {},
  gaps: {},
  captions: {},
  'ts-subtitles': {},
  'ts-first-segment': {},
  'first-playlist': {},
  'session-tokens': {},
  'signed-policy': {},
  'forwarded-query': {},
  'admission-ways': {},
  'admission-ends': {},
  'admission-reason': {},
  'admission-elsewhere': {},
  'live-ts-playlists': each([580, 581], { headers: { 'cache-control': 'no-cache, no-store' } }),
  'ts-target-duration': {},
  'not-found-headers': each([586, 589, 593], { headers: NO_STREAM_HEADERS }),
  'not-found-words': each([571, 575, 577, 578, 586, 587, 589, 593, 614], { headers: { 'content-type': 'text/plain' } }),
  'time-limits': {},
  'player-page': {},
  'wrong-method': {
    592: { status: 405, headers: { ...NO_STREAM_HEADERS, 'content-type': 'text/plain', allow: 'OPTIONS, GET, HEAD' } },
  },
  ranges: {},
  'opus-sound': {},
  'host-names': {},
};

function withoutForced(uri: string): PlaybackDifference {
  const media = (attributes: string): string => `#EXT-X-MEDIA:${attributes},GROUP-ID,NAME,TYPE,URI ${uri}`;
  return { less: [media('AUTOSELECT,CHANNELS,DEFAULT,FORCED')], more: [media('AUTOSELECT,CHANNELS,DEFAULT')] };
}

function skippable(skipped: readonly string[] = []): PlaybackDifference {
  return {
    less: ['#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD,PART-HOLD-BACK'],
    more: ['#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD,CAN-SKIP-UNTIL,PART-HOLD-BACK', ...skipped],
  };
}

function each(numbers: readonly number[], difference: PlaybackDifference): Record<number, PlaybackDifference> {
  return Object.fromEntries(numbers.map((n) => [n, difference]));
}
