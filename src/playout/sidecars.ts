/** Subtitle files beside a film: `film.en.vtt`, `film.en.srt`, or `film.vtt` and `film.srt` for the first language. */
import { setImmediate as turn } from 'node:timers/promises';
import { type FileCue, MAX_SUBTITLE_FILE, SubtitleFile } from '../containers/webvtt/subtitle-file.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import type { OpenFile } from './file-bytes.ts';

/** The cues of one language of an item. */
export interface ItemSubtitles {
  /** As the application calls it. */
  readonly language: string;
  /** In order of their times, which are relative to the item. */
  readonly cues: readonly FileCue[];
}

type ReadableFile = Pick<OpenFile, 'size' | 'read' | 'close'>;

const EXTENSIONS = ['vtt', 'srt'];
/** Allowed characters of a file name. */
const LANGUAGE = /^[A-Za-z0-9]{1,8}(?:-[A-Za-z0-9]{1,8}){0,4}$/;

/** Reads the subtitle files beside the film at `url` for `languages`; files without a language belong to the first. Never rejects. */
export async function readSidecars(
  root: { open(url: string): Promise<ReadableFile> },
  url: string,
  { languages, logger }: { readonly languages: readonly string[]; readonly logger: Logger },
): Promise<ItemSubtitles[]> {
  const base = url.replace(/\.[^./]*$/, '');
  const found: ItemSubtitles[] = [];
  for (const [index, language] of languages.entries()) {
    const names = LANGUAGE.test(language) ? [...new Set([language, language.split('-')[0] ?? language])] : [];
    const stems = [...names.map((name) => `${base}.${name}`), ...(index === 0 ? [base] : [])];
    for (const candidate of stems.flatMap((stem) => EXTENSIONS.map((extension) => `${stem}.${extension}`))) {
      const cues = await cuesOf(root, candidate, logger);
      if (cues === null) continue;
      found.push({ language, cues });
      break;
    }
  }
  return found;
}

/** Null where there is no such file. */
async function cuesOf(root: { open(url: string): Promise<ReadableFile> }, url: string, logger: Logger): Promise<readonly FileCue[] | null> {
  try {
    const file = await root.open(url);
    try {
      if (file.size > MAX_SUBTITLE_FILE) throw new Error(`the file has more than ${MAX_SUBTITLE_FILE} bytes`);
      const subtitles = new SubtitleFile(await file.read(0, file.size));
      // Other streams go on meanwhile.
      while (subtitles.readOn()) await turn();
      const { cues } = subtitles;
      if (cues.length === 0) throw new Error('the file has no subtitles');
      return cues;
    } finally {
      await file.close();
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    logger.warn({ item: url }, `subtitles cannot be shown: ${messageOf(error)}`);
    return null;
  }
}
