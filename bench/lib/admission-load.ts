/**
 * A process with both ends of admissions: viewers that arrive at a steady rate, and the control server that answers requests about them
 * with a delay.
 */
import { once } from 'node:events';
import { Agent, createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { constants, setPriority } from 'node:os';

/** Orders to the process. */
export type AdmissionOrder =
  | { readonly type: 'start'; readonly url: string; readonly host: string; readonly perSecond: number }
  | { readonly type: 'stop' };

/** Its answers: the address of its control server, then the counts from `start` to `stop`. */
export type AdmissionAnswer =
  | { readonly type: 'listening'; readonly controlServerUrl: string }
  | {
      readonly type: 'done';
      readonly seconds: number;
      /** Viewers that got a playlist, and viewers that got any other answer. */
      readonly admitted: number;
      readonly others: number;
      /** Openings and closings that the control server received. */
      readonly asked: number;
      readonly closed: number;
    };

const THINKING_MS = 50;
const TICK_MS = 1;
const MAX_SOCKETS = 256;
/** Limit of viewers without an answer; beyond it, new viewers wait, which lowers the measured rate. */
const MAX_WAITING = 4000;

const counts = { admitted: 0, others: 0, asked: 0, closed: 0 };
const agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS });
let waiting = 0;
let timer: NodeJS.Timeout | undefined;
let startedAt = 0;

const control = createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (text: string) => {
    body += text;
  });
  request.on('end', () => {
    if (body.includes('"status":"closing"')) {
      counts.closed += 1;
      response.end('{}');
      return;
    }
    counts.asked += 1;
    setTimeout(() => response.end('{"allowed":true}'), THINKING_MS);
  });
});

function tell(answer: AdmissionAnswer): void {
  process.send?.(answer);
}

function ask(url: string, host: string): void {
  waiting += 1;
  const ended = (isAdmitted: boolean): void => {
    waiting -= 1;
    if (isAdmitted) counts.admitted += 1;
    else counts.others += 1;
  };
  get(url, { agent, headers: { host } }, (response) => {
    response.resume();
    response.once('end', () => ended(response.statusCode === 200));
  }).once('error', () => ended(false));
}

function start({ url, host, perSecond }: Extract<AdmissionOrder, { type: 'start' }>): void {
  Object.assign(counts, { admitted: 0, others: 0, asked: 0, closed: 0 });
  startedAt = performance.now();
  let begun = 0;
  timer = setInterval(() => {
    const due = Math.floor(((performance.now() - startedAt) / 1000) * perSecond);
    while (begun < due && waiting < MAX_WAITING) {
      begun += 1;
      ask(url, host);
    }
  }, TICK_MS);
}

process.on('message', (order: AdmissionOrder) => {
  if (order.type === 'start') {
    start(order);
    return;
  }
  clearInterval(timer);
  tell({ type: 'done', seconds: (performance.now() - startedAt) / 1000, ...counts });
});

// Viewers and control servers normally run on other machines.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
control.listen(0, '127.0.0.1');
await once(control, 'listening');
tell({ type: 'listening', controlServerUrl: `http://127.0.0.1:${(control.address() as AddressInfo).port}/admission` });
