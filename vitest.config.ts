import { globSync, readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { COMPILED } from './test/harness/compiled-code.ts';
import { LongestFirst } from './test/harness/longest-first.ts';

/** Tests in which a player must keep up with a live stream, or a receiver throws away what comes late. */
const PLAYING = [
  'test/e2e/playback.test.ts',
  // Where cores are slow, encoded audio needs longer than it is waited for beside two other files.
  'test/e2e/output-profiles.test.ts',
  'test/e2e/ladder-playing.test.ts',
  'test/e2e/stand-in.test.ts',
  'test/e2e/webrtc-loss.test.ts',
  'test/e2e/webrtc-bandwidth.test.ts',
  'test/e2e/srt-interop.test.ts',
];

/** The same for longer than there is room for in `npm test`. */
const LONG = [
  'test/e2e/channel-boundaries.test.ts',
  'test/e2e/channel-playing.test.ts',
  'test/e2e/llhls-hlsjs.test.ts',
  'test/e2e/multiplex-playing.test.ts',
];

// Workers of vitest, delivery threads and transcoder processes that tests start find compiled code, too.
Object.assign(process.env, COMPILED);

const WARM_UP = 'test/harness/warm-up.ts';

const UNIT = ['src/**/*.test.ts', 'test/{contract,fuzz,support}/**/*.test.ts'];
/** Files that have a process of their own: they replace modules, change or measure the process, or count the memory of a peer. */
const ALONE = /vi\.(mock|stubEnv)\(|process\.(env|on|chdir|cpuUsage|memoryUsage)\b|support\/(memory|open-sockets)|VmRSS|collectGarbage/;
const OWN_PROCESS = [
  'src/{native,transcoder}/**/*.test.ts',
  'src/{slow-clients,stalled-handshakes}.test.ts',
  // They watch what an input costs.
  'test/fuzz/**/*.test.ts',
];
/** The others share processes and the modules in them, which keep nothing: loading them for each file is as much work as its tests. */
const SHARED = globSync(UNIT, { exclude: OWN_PROCESS }).filter((file) => !ALONE.test(readFileSync(file, 'utf8')));

const E2E = 'test/e2e/**/*.test.ts';
const E2E_SHARED = globSync(E2E, { exclude: [...PLAYING, ...LONG] }).filter((file) => !ALONE.test(readFileSync(file, 'utf8')));
const E2E_OPTIONS = {
  globalSetup: WARM_UP,
  testTimeout: 120_000,
  // Most of them wait for media that comes in real time. Where cores are half as fast as those of 2025, four at once lack processor time.
  maxWorkers: 4,
  sequence: { groupOrder: 3 },
};

export default defineConfig({
  test: {
    testTimeout: 120_000,
    hookTimeout: 60_000,
    // Node.js loads TypeScript itself, as it does for the server. Vite's rewriting of modules takes a tenth more CPU.
    experimental: { viteModuleRunner: false },
    // A condition that is waited for may take its time on a loaded machine; one that holds ends the wait at once.
    expect: { poll: { timeout: 15_000 } },
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: { name: 'unit', include: UNIT, exclude: SHARED, globalSetup: 'test/harness/warm-transcoder.ts', maxWorkers: 3 },
      },
      {
        extends: true,
        test: { name: 'unit-shared', include: SHARED, setupFiles: 'test/harness/shared-process.ts', isolate: false, maxWorkers: 3 },
      },
      {
        extends: true,
        test: { ...E2E_OPTIONS, name: 'e2e', include: [E2E], exclude: [...PLAYING, ...LONG, ...E2E_SHARED] },
      },
      {
        extends: true,
        test: { ...E2E_OPTIONS, name: 'e2e-shared', include: E2E_SHARED, setupFiles: 'test/harness/shared-process.ts', isolate: false },
      },
      // Minutes of one thing over and over; not part of `npm test`.
      {
        extends: true,
        test: {
          name: 'soak',
          include: ['test/soak/**/*.test.ts', ...LONG],
          globalSetup: WARM_UP,
          testTimeout: 120_000,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
      // These look at the clock of a peer. One leaves four fifths of two cores to rest, two leave more than half.
      {
        extends: true,
        test: {
          name: 'playing',
          globalSetup: WARM_UP,
          include: PLAYING,
          testTimeout: 120_000,
          maxWorkers: 2,
          // Projects with other numbers of workers run one after the other.
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
