import { describe, expect, it } from 'vitest';
import { FakeExchange, FakeViewContext } from '../../../test/fakes/fake-delivery.ts';
import { WaitingRoom } from './waiting-room.ts';

function waiter(answers: () => boolean = () => false) {
  const exchange = new FakeExchange('file', () => []);
  const log: string[] = [];
  return {
    exchange,
    log,
    attempt: () => {
      log.push('attempt');
      return answers();
    },
    giveUp: () => {
      log.push('gave up');
      exchange.respond(503, [], []);
    },
  };
}

describe('a waiting room', () => {
  it('has one timer for all requests, and gives each its full time', () => {
    const context = new FakeViewContext();
    const room = new WaitingRoom(context, 10);
    const first = waiter();
    const second = waiter();
    room.add(first, 1000);
    context.advance(400);
    room.add(second, 1000);
    expect(context.timers).toBe(1);
    context.advance(600);
    expect([first.log, second.log]).toEqual([['gave up'], []]);
    context.advance(400);
    expect(second.log).toEqual(['gave up']);
    expect([room.size, context.timers]).toEqual([0, 0]);
  });

  it('counts the time that a request has waited elsewhere', () => {
    const context = new FakeViewContext();
    const room = new WaitingRoom(context, 10);
    const [first, second, third, over] = [waiter(), waiter(), waiter(), waiter()];
    second.exchange.heldFor = 700;
    third.exchange.heldFor = 100;
    over.exchange.heldFor = 1000;
    for (const { exchange, ...rest } of [first, second, third]) expect(room.add({ exchange, ...rest }, 1000)).toBe(true);
    expect(context.timers).toBe(1);
    context.advance(299);
    expect(second.log).toEqual([]);
    context.advance(1);
    expect([first.log, second.log, third.log]).toEqual([[], ['gave up'], []]);
    context.advance(600);
    expect([first.log, third.log]).toEqual([[], ['gave up']]);
    expect(room.add(over, 1000)).toBe(true);
    expect([over.log, room.size]).toEqual([['gave up'], 1]);
    context.advance(100);
    expect([first.log, room.size, context.timers]).toEqual([['gave up'], 0, 0]);
  });

  it('refuses requests when it is full, until one leaves', () => {
    const context = new FakeViewContext();
    const room = new WaitingRoom(context, 1);
    const first = waiter();
    expect(room.add(first, 1000)).toBe(true);
    expect(room.add(waiter(), 1000)).toBe(false);
    expect(context.overloads).toBe(1);
    first.exchange.abort();
    expect(room.add(waiter(), 1000)).toBe(true);
  });

  it('keeps only requests that could not be answered', () => {
    const room = new WaitingRoom(new FakeViewContext(), 10);
    let ready = false;
    const early = waiter(() => true);
    const late = waiter(() => ready);
    room.add(early, 1000);
    room.add(late, 1000);
    room.retry();
    expect(room.size).toBe(1);
    ready = true;
    room.retry();
    room.retry();
    expect([early.log.length, late.log.length, room.size]).toEqual([1, 2, 0]);
  });

  it('ends all requests when it closes, even when closed twice', () => {
    const context = new FakeViewContext();
    const room = new WaitingRoom(context, 10);
    const one = waiter();
    room.add(one, 1000);
    room.close();
    room.close();
    context.advance(5000);
    expect(one.log).toEqual(['gave up']);
  });
});
