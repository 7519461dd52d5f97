/** Instrumented modules from a text, for tests of the engine. */
import { coverage } from './coverage.ts';
import { instrument } from './instrument.ts';

/** Exports of the module `source`, whose counters are the next of this process. */
export async function loadInstrumented<T>(source: string): Promise<T> {
  const cover = coverage();
  const { code, counters, constants } = instrument(source, cover.used);
  cover.files.push({ path: 'test.js', firstCounter: cover.used, counters, constants });
  return (await import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(code)}`)) as T;
}
