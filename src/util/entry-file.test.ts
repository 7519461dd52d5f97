import { expect, test } from 'vitest';
import { entryFile } from './entry-file.ts';

test.each([
  ['file:///app/src/services/schedule/thread.ts', './worker', 'file:///app/src/services/schedule/worker.ts'],
  ['file:///app/dist/services/schedule/thread.js', './worker', 'file:///app/dist/services/schedule/worker.js'],
  ['file:///app.d/dist/delivery/pool/entry.js', '../../delivery-worker', 'file:///app.d/dist/delivery-worker.js'],
])('beside %s, %s is %s', (from, name, url) => {
  expect(entryFile(name, from).href).toBe(url);
});
