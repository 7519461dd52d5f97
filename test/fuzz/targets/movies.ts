/** ISO base media files: boxes, tables and fragments of files that are pulled. */
import { findBox, readBoxes } from '../../../src/containers/isobmff/box-reader.ts';
import { readMovieFragment } from '../../../src/containers/isobmff/fragment-reader.ts';
import { readMovie } from '../../../src/containers/isobmff/movie-reader.ts';
import { SampleCursor } from '../../../src/containers/isobmff/sample-cursor.ts';
import { readSampleDescription } from '../../../src/containers/isobmff/sample-description.ts';
import { MovieFile } from '../../../src/playout/movie-file.ts';
import { RecordingLogger } from '../../fakes/recording-logger.ts';
import { corpusOf, type FuzzTarget } from '../support/fuzz-target.ts';

const MAX_EVENTS = 2000;

/** Two short files of ffmpeg: one with tables first, one with fragments. */
const FILES = (): Uint8Array[] => corpusOf('movie-seeds');

function moovs(): Uint8Array[] {
  return FILES().flatMap((file) => findBox(file, ['moov'])?.body ?? []);
}

function boxesIn(bytes: Uint8Array, depth = 0): number {
  const boxes = readBoxes(bytes);
  let count = boxes.length;
  for (const { type, body } of boxes) {
    if (depth < 8 && ['moov', 'trak', 'mdia', 'minf', 'stbl', 'moof', 'traf', 'mvex'].includes(type)) count += boxesIn(body, depth + 1);
  }
  return count;
}

export const MOVIE_TARGETS: readonly FuzzTarget[] = [
  { name: 'mp4-boxes', seeds: FILES, run: (input) => boxesIn(input), most: (length) => length / 8 },
  {
    name: 'mp4-movie',
    seeds: moovs,
    run: (input) => {
      let samples = 0;
      for (const { tables, timescale, shift } of readMovie(input).tracks) {
        if (!(timescale > 0) || !Number.isFinite(shift)) throw new Error(`timescale ${timescale}, shift ${shift}`);
        const cursor = new SampleCursor(tables);
        for (let count = 0; count < 200 && cursor.next() !== null; count += 1) samples += 1;
      }
      return samples;
    },
    most: () => 200 * 64,
  },
  {
    name: 'mp4-sample-description',
    seeds: () =>
      moovs().flatMap((moov) =>
        readBoxes(moov)
          .filter(({ type }) => type === 'trak')
          .map((trak) => findBox(trak.body, ['mdia', 'minf', 'stbl', 'stsd'])!.body),
      ),
    run: (input) => (readSampleDescription(input).type === 'unsupported' ? 0 : 1),
  },
  {
    name: 'mp4-fragment',
    seeds: () =>
      FILES().flatMap((file) =>
        readBoxes(file)
          .filter(({ type }) => type === 'moof')
          .slice(0, 2)
          .map(({ body }) => body),
      ),
    run: (input) => {
      let samples = 0;
      readMovieFragment(input, {
        run: () => undefined,
        sample: () => {
          samples += 1;
        },
      });
      return samples;
    },
    most: (length) => 1 + length / 4,
  },
  {
    name: 'mp4-file',
    seeds: FILES,
    run: async (input) => {
      let read = 0;
      const bytes = {
        size: input.length,
        read: (offset: number, length: number): Promise<Uint8Array> => {
          if (!(offset >= 0 && length >= 0 && offset + length <= input.length)) throw new Error(`read of ${length} bytes at ${offset}`);
          read += 1;
          return Promise.resolve(input.subarray(offset, offset + length));
        },
      };
      const movie = await MovieFile.open(bytes, new RecordingLogger());
      let events = 0;
      while (events < MAX_EVENTS && (await movie.next()) !== null) events += 1;
      movie.rewind();
      await movie.next();
      return read;
    },
    most: (length) => MAX_EVENTS + length,
    cost: 3,
  },
];
