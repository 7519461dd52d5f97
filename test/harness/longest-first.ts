/** The order in which vitest begins files. */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Files that mostly wait for a minute although they are short, longest first. Without results of an earlier run, as in a clean checkout,
 * vitest sorts by size, and these files would run alone at the end.
 */
export const EARLY: readonly string[] = [
  'test/e2e/stand-in.test.ts',
  'test/e2e/playback.test.ts',
  'test/e2e/webrtc-playing.test.ts',
  'test/e2e/subtitles.test.ts',
  'test/e2e/player-page.test.ts',
  'test/e2e/statistics.test.ts',
  'test/e2e/foreign-files.test.ts',
  'test/e2e/full-disk.test.ts',
  'test/e2e/webrtc-loss.test.ts',
  'test/e2e/webrtc-bandwidth.test.ts',
  'test/e2e/edge-switching.test.ts',
  'test/e2e/cluster-topology.test.ts',
];

/** vitest's own order, except for the files of `EARLY`. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rank = ({ moduleId }: TestSpecification): number => {
      const place = EARLY.findIndex((name) => moduleId.endsWith(`/${name}`));
      return place < 0 ? EARLY.length : place;
    };
    // Files of one project stay together.
    const projects = [...new Set(sorted.map(({ project }) => project.name))];
    return projects.flatMap((name) => sorted.filter(({ project }) => project.name === name).toSorted((one, two) => rank(one) - rank(two)));
  }
}
