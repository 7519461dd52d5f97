/** The outputs of every stream of an application. */
import type { Static } from '@sinclair/typebox';
import { nameFault } from '../value.ts';
import { EncodesSchema } from './encodes.ts';
import { boolean, type Fail, finishing, firstDuplicate, integer, list, name, object, optional, text } from './field.ts';
import { MediaOptionsSchema } from './media-options.ts';
import { PlaylistSchema } from './playlist.ts';

interface ProfileFinish {
  outputStreamName: string;
  encodes: { videos: { name: string }[]; audios: { name: string }[] };
  playlists: { fileName: string; renditions: { name: string; video?: string; audio?: string }[] }[];
}

const ORIGIN_NAME = '${OriginStreamName}';

/** The name becomes part of URLs. */
function streamNameRules(name: string, fail: Fail): void {
  const literal = name.replaceAll(ORIGIN_NAME, '');
  const macro = /\$\{[^}]*\}/.exec(literal)?.[0];
  if (name === '') fail('outputProfile.outputStreamName must not be empty', 'outputStreamName');
  else if (macro !== undefined)
    fail(`Unknown macro in outputProfile.outputStreamName: ${macro} (expected: ${ORIGIN_NAME})`, 'outputStreamName');
  else if (/[/:?#\s]/.test(literal)) fail('outputProfile.outputStreamName must not contain / : ? # or blanks', 'outputStreamName');
  else {
    // The stream must be addressable for any name of the input.
    const fault = nameFault(name.replaceAll(ORIGIN_NAME, 'a'));
    if (fault !== undefined) fail(`outputProfile.outputStreamName ${fault.text}`, 'outputStreamName');
  }
}

function playlistRules(profile: ProfileFinish, fail: Fail): void {
  const files = new Set<string>();
  for (const playlist of profile.playlists) {
    if (files.has(playlist.fileName)) {
      fail(`Duplicate playlist file name: ${playlist.fileName}`, 'playlists');
      return;
    }
    files.add(playlist.fileName);
    for (const rendition of playlist.renditions) {
      const missing =
        missingEncode('video', rendition.video, profile.encodes.videos) ?? missingEncode('audio', rendition.audio, profile.encodes.audios);
      if (missing === undefined) continue;
      fail(`Playlist Error: rendition ${rendition.name} refers to ${missing}`, 'playlists');
      return;
    }
  }
}

function missingEncode(type: string, wanted: string | undefined, encodes: readonly { name: string }[]): string | undefined {
  if (wanted === undefined || wanted === '' || encodes.some((encode) => encode.name === wanted)) return undefined;
  return `the ${type} encode ${wanted}, which the profile does not have`;
}

/** `<OutputProfile>`, also the body of the API's routes for profiles. Renditions may name only encodes of the same profile. */
export const OutputProfileSchema = object(
  'Makes one output stream of every input stream',
  {
    name: name('Name of the profile, unique in the application'),
    outputStreamName: text('Name of the output stream; `${OriginStreamName}` stands for the name of the input stream'),
    encodes: EncodesSchema,
    playlists: list('Playlists offered to players', PlaylistSchema, { xml: 'Playlist', default: [] }),
  },
  {
    finish: finishing<ProfileFinish>((value, fail) => {
      streamNameRules(value.outputStreamName, fail);
      playlistRules(value, fail);
    }),
  },
);
/** The typed form of `<OutputProfile>`; `outputStreamName` still has its macros. */
export type OutputProfileConfig = Static<typeof OutputProfileSchema>;

const hwAccel = (what: string) =>
  optional(
    object(`Hardware ${what}`, {
      enable: boolean('Turns it on', { default: false }),
      modules: text('Modules to try, in order, separated by commas: `xma`, `qsv`, `nv`, `nilogan`, each with an optional `:<device>`', {
        default: '',
      }),
    }),
  );

/** `<OutputProfiles>`. Two profiles with one name, or for one output stream, are refused. */
export const OutputProfilesSchema = object(
  'Output profiles and their common settings',
  {
    hardwareAcceleration: boolean('Uses hardware if available', { default: false, deprecated: 'hwaccels' }),
    hwaccels: optional(
      object('Hardware codecs', { decoder: hwAccel('decoding'), encoder: hwAccel('encoding') }, { xml: 'HWAccels', aliases: ['hwAccels'] }),
    ),
    decodes: object(
      'Decoders',
      {
        threadCount: integer('Threads of each decoder; 0: automatic', { default: 2, minimum: 0, maximum: 64 }),
        onlyKeyframes: boolean('Decodes only keyframes if the encodes make images but no video', { default: false }),
      },
      { default: {} },
    ),
    mediaOptions: optional(MediaOptionsSchema),
    outputProfile: list('Output profiles; each makes one output stream', OutputProfileSchema, { default: [] }),
  },
  {
    default: {},
    finish: finishing<{ outputProfile: { name: string; outputStreamName: string }[] }>((value, fail) => {
      const name = firstDuplicate(value.outputProfile);
      const stream = firstDuplicate(value.outputProfile.map(({ outputStreamName }) => ({ name: outputStreamName })));
      if (name !== undefined) fail(`Duplicate output profile name: ${name}`, 'outputProfile');
      else if (stream !== undefined) fail(`Duplicate output stream name: ${stream}`, 'outputProfile');
    }),
  },
);
/** The typed form of `<OutputProfiles>`; without a profile the streams of the application cannot be watched. */
export type OutputProfilesConfig = Static<typeof OutputProfilesSchema>;
