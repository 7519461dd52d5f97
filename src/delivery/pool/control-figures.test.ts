import { expect, test } from 'vitest';
import type { ControlServerFigures } from '../../access/control-server.ts';
import { ControlFigures } from './control-figures.ts';

const URL = 'http://control.example/admission';
const figures = (url = URL, times = 1): ControlServerFigures => ({
  ...{
    url,
    requests: 100 * times,
    allowed: 50 * times,
    refused: 20 * times,
    failed: 10 * times,
    inFlight: 20 * times,
    admitted: 30 * times,
  },
  ...{ closingsDelivered: 15 * times, closingsLost: 2 * times, closingsPending: 3 * times },
});
const hosts = (controlServerUrl: string) => [
  { access: { admissionWebhooks: { controlServerUrl, secretKey: 'k', timeout: 1, enables: { providers: [], publishers: [] } } } },
];

test('counts the last report of each thread', () => {
  const made = new ControlFigures();
  made.set(1, [figures(URL, 1)]);
  made.set(1, [figures(URL, 2)]);
  made.set(2, [figures(URL, 3), figures('http://other/')]);
  expect(made.all).toEqual([figures(URL, 2), figures(URL, 3), figures('http://other/')]);
});

test('keeps the counters of dead threads, and counts their pending closings as lost', () => {
  const made = new ControlFigures();
  const past = (times: number) => ({
    ...{ url: URL, requests: 100 * times, allowed: 50 * times, refused: 20 * times, failed: 30 * times, inFlight: 0, admitted: 0 },
    ...{ closingsDelivered: 15 * times, closingsLost: 5 * times, closingsPending: 0 },
  });
  made.set(1, [figures()]);
  made.threadGone(1);
  made.threadGone(1);
  expect(made.all).toEqual([past(1)]);
  made.set(2, [figures()]);
  expect(made.all).toEqual([figures(), past(1)]);
  made.threadGone(2);
  expect(made.all).toEqual([past(2)]);
  made.follow(hosts(`${URL}?key=1`));
  expect(made.all).toEqual([past(2)]);
  made.follow([...hosts('http://other/'), {}]);
  expect(made.all).toEqual([]);
});
