import { expect, test } from 'vitest';
import { newHttpCounters } from '../http-counters.ts';
import { HttpFigures } from './http-figures.ts';

const report = (times: number) => ({
  http: {
    ...newHttpCounters(),
    opened: times,
    requests: 10 * times,
    refused: 2 * times,
    overloads: 4 * times,
    statuses: [0, 0, 8 * times, 0, 2 * times, 0],
  },
  ...{ connections: times, waiting: 3 * times, unkept: 4 * times, held: 6 * times, crowded: times },
});

test('sums up the latest report of each thread, and keeps the counters of dead threads', () => {
  const figures = new HttpFigures();
  figures.set(1, report(1));
  figures.set(1, report(2));
  figures.set(2, report(3));
  const counted = {
    opened: 5,
    requests: 50,
    refused: 10,
    overloads: 20,
    unkept: 20,
    held: 30,
    crowded: 5,
    faults: 0,
    statuses: [0, 0, 40, 0, 10, 0],
  };
  expect(figures.totals).toMatchObject({ ...counted, connections: 5, waiting: 15 });
  figures.threadGone(1);
  figures.threadGone(1);
  expect(figures.totals).toMatchObject({ ...counted, connections: 3, waiting: 9 });
  figures.set(3, report(1));
  expect(figures.totals).toMatchObject({ opened: 6, connections: 4 });
});
