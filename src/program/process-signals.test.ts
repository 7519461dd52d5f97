import { EventEmitter } from 'node:events';
import { beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { ProcessSignals } from './process-signals.ts';

let clock: ManualClock;
let source: EventEmitter;
let signals: ProcessSignals;
let heard: string[];
beforeEach(() => {
  clock = new ManualClock();
  source = new EventEmitter();
  signals = new ProcessSignals(clock, source);
  heard = [];
});

function follow(): void {
  signals.follow({
    stop: (signal) => heard.push(`stop ${signal}`),
    force: () => heard.push('force'),
    reload: () => heard.push('reload'),
    say: (sentence) => heard.push(sentence),
  });
}

test.each(['SIGINT', 'SIGTERM'])('%s twice within a second is one signal, a later one forces the stop', (signal) => {
  follow();
  source.emit(signal);
  clock.advance(5);
  source.emit(signal);
  clock.advance(990);
  source.emit(signal);
  expect(heard).toEqual([`stop ${signal}`]);
  clock.advance(5);
  source.emit(signal);
  expect(heard).toEqual([`stop ${signal}`, 'force']);
});

test('a second, different signal forces the stop', () => {
  follow();
  source.emit('SIGINT');
  source.emit('SIGTERM');
  expect(heard).toEqual(['stop SIGINT', 'force']);
});

test('signals before there is a follower are one stop', () => {
  source.emit('SIGTERM');
  source.emit('SIGTERM');
  follow();
  expect(heard).toEqual(['stop SIGTERM']);
});

test('SIGUSR1 and SIGUSR2 are logged and have no effect', () => {
  source.emit('SIGUSR1');
  follow();
  for (const signal of ['SIGUSR1', 'SIGUSR2']) source.emit(signal);
  expect(heard).toEqual(['SIGUSR1: no effect', 'SIGUSR2: no effect']);
});

test('SIGHUP reloads each time, and is ignored before the server follows signals', () => {
  source.emit('SIGHUP');
  follow();
  source.emit('SIGHUP');
  source.emit('SIGHUP');
  expect(heard).toEqual(['reload', 'reload']);
});
