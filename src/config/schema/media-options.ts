/** Subtitles and image overlays of all output profiles of an application. */
import type { Static } from '@sinclair/typebox';
import { boolean, choice, finishing, firstDuplicate, integer, list, NO_EFFECT, object, optional, path, text, unbuilt } from './field.ts';

/** `<Transcription>`, of no effect yet. */
const TranscriptionSchema = object(
  `Makes the subtitles from speech: ${NO_EFFECT}`,
  {
    engine: choice('Recogniser', ['whisper']),
    model: path('Model file'),
    audioIndexHint: integer('Index of the audio track, from 0', { default: 0, minimum: 0 }),
    sourceLanguage: text('Spoken language, or `auto`', { default: 'auto' }),
    translation: boolean('Translates to English', { default: false }),
  },
  unbuilt('speech is not recognised: the rendition shows what is sent to it'),
);

interface SubtitlesFinish {
  enable: boolean;
  defaultLabel?: string;
  rendition: { label: string; autoSelect: boolean }[];
}

/** `<Subtitles>`. When they are on there must be a rendition, and `DefaultLabel` names one. */
const SubtitlesSchema = object(
  'Subtitles from clients of the API and from files of scheduled channels',
  {
    enable: boolean('Turns them on', { default: false }),
    defaultLabel: optional(text('Label of the default rendition')),
    rendition: list(
      'Subtitle renditions',
      object('One subtitle rendition', {
        label: text('Label shown to viewers'),
        language: text('Language tag, e.g. `en`'),
        autoSelect: boolean('Players may select the rendition by themselves', { default: false }),
        forced: boolean('Forced subtitles: players show them even if the viewer has chosen no subtitles', { default: false }),
        transcription: optional(TranscriptionSchema),
      }),
      { default: [] },
    ),
  },
  {
    finish: finishing<SubtitlesFinish>((value, fail) => {
      if (!value.enable) return;
      if (value.rendition.length === 0) return fail('Subtitle is enabled but no renditions are defined', 'rendition');
      const twice = firstDuplicate(value.rendition.map(({ label }) => ({ name: label })));
      if (twice !== undefined) return fail(`Label '${twice}' is that of more than one subtitle rendition`, 'rendition');
      if (value.defaultLabel === undefined || value.defaultLabel === '') return;
      const first = value.rendition.find((rendition) => rendition.label === value.defaultLabel);
      if (first === undefined) return fail(`Default label '${value.defaultLabel}' not found in subtitle renditions`, 'defaultLabel');
      first.autoSelect = true;
    }),
  },
);
/** The typed form of `<Subtitles>`; the rendition of the default label is marked `autoSelect`. */
export type SubtitlesConfig = Static<typeof SubtitlesSchema>;

/** `<MediaOptions>`: settings that concern all output profiles. */
export const MediaOptionsSchema = object('Subtitles and overlays', {
  subtitles: optional(SubtitlesSchema),
  overlays: optional(
    object('Images laid over encoded video', {
      enable: boolean('Turns them on', { default: false }),
      path: optional(path('Map file that assigns images to streams')),
    }),
  ),
});
/** The typed form of `<MediaOptions>`; undefined members are off. */
export type MediaOptionsConfig = Static<typeof MediaOptionsSchema>;
