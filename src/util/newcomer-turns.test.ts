import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Newcomer, NewcomerTurns } from './newcomer-turns.ts';

/** Turns whose clock advances with the cost of each newcomer, and with the fake timers. */
function setUp() {
  let worked = 0;
  const entered: string[] = [];
  const refused: string[] = [];
  const failed: unknown[] = [];
  const turned: string[] = [];
  const turns = new NewcomerTurns({ now: () => Date.now() + worked, onRefused: (client) => turned.push(client) });
  const newcomer = (client: string, name = client, costMs = 1): Newcomer => ({
    client,
    enter: () => {
      worked += costMs;
      entered.push(name);
    },
    failed: (error) => failed.push(error),
    refused: (reason) => refused.push(`${name}: ${reason}`),
  });
  return { turns, newcomer, entered, refused, failed, turned };
}

describe('NewcomerTurns', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('admits newcomers at once when they arrive one by one', () => {
    const { turns, newcomer, entered } = setUp();
    for (let n = 0; n < 50; n += 1) {
      turns.take(newcomer('192.0.2.1', `${n}`));
      expect(entered).toHaveLength(n + 1);
      vi.advanceTimersByTime(20);
    }
    expect(turns.size).toBe(0);
  });

  it('gives a flood a third of the time, in slices of a few milliseconds', () => {
    const { turns, newcomer, entered } = setUp();
    for (let n = 0; n < 500; n += 1) turns.take(newcomer(`192.0.2.${n % 250}`));
    expect(entered.length).toBeLessThanOrEqual(6);
    for (let elapsed = 0; elapsed < 300; elapsed += 1) {
      const before = entered.length;
      vi.advanceTimersByTime(1);
      expect(entered.length - before).toBeLessThanOrEqual(2);
    }
    expect(entered.length).toBeGreaterThan(70);
    // The cost of newcomers adds to the time of the timers.
    expect(entered.length).toBeLessThan(150);
    vi.advanceTimersByTime(1700);
    expect(entered).toHaveLength(500);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('yields to the sockets after a millisecond, even after a long stall of the loop', () => {
    const { turns, newcomer, entered } = setUp();
    for (let n = 0; n < 100; n += 1) turns.take(newcomer('192.0.2.1', `${n}`, 0.4));
    const before = entered.length;
    vi.setSystemTime(Date.now() + 1000);
    vi.runOnlyPendingTimers();
    expect(entered.length - before).toBe(3);
  });

  it('takes addresses in turn: one client does not wait for a thousand of another address or IPv6 network', () => {
    const { turns, newcomer, entered } = setUp();
    for (let n = 0; n < 500; n += 1) turns.take(newcomer('192.0.2.1'));
    for (let n = 0; n < 500; n += 1) turns.take(newcomer(`2001:db8::${n.toString(16)}`, 'network'));
    const before = entered.length;
    turns.take(newcomer('198.51.100.7', 'honest'));
    vi.advanceTimersByTime(50);
    expect(entered.slice(before, before + 3)).toContain('honest');
    expect(turns.size).toBeGreaterThan(900);
  });

  it('keeps the order of one address', () => {
    const { turns, newcomer, entered } = setUp();
    const names = Array.from({ length: 40 }, (_, n) => `${n}`);
    for (const name of names) turns.take(newcomer('192.0.2.1', name));
    vi.advanceTimersByTime(1000);
    expect(entered).toEqual(names);
  });

  it('when full refuses the address with the most waiting newcomers, with a reason and a counter', () => {
    const { turns, newcomer, entered, refused, turned } = setUp();
    for (let n = 0; n < 1100; n += 1) turns.take(newcomer('192.0.2.1', `${n}`));
    expect(turns.size).toBe(1024);
    const many = refused.length;
    expect(many).toBe(1100 - 1024 - entered.length);
    expect(refused[0]).toMatch(/^\d+: 1024 newcomers are waiting already/);
    turns.take(newcomer('198.51.100.7', 'honest'));
    expect(turns.size).toBe(1024);
    expect(refused).toHaveLength(many + 1);
    expect(refused.at(-1)).not.toMatch('honest');
    expect(turns.refused).toBe(many + 1);
    expect(new Set(turned)).toEqual(new Set(['192.0.2.1']));
    vi.advanceTimersByTime(5000);
    expect(entered).toContain('honest');
  });

  it('forgets newcomers that leave, and reports a newcomer that throws', () => {
    const { turns, newcomer, entered, failed } = setUp();
    for (let n = 0; n < 10; n += 1) turns.take(newcomer('192.0.2.9'));
    const gone = newcomer('192.0.2.1', 'gone');
    const fault = new Error('no');
    turns.take(gone);
    turns.take({
      ...newcomer('192.0.2.2'),
      enter: () => {
        throw fault;
      },
    });
    turns.take(newcomer('192.0.2.3', 'last'));
    turns.leave(gone);
    turns.leave(gone);
    vi.advanceTimersByTime(1000);
    expect(entered).not.toContain('gone');
    expect(entered).toContain('last');
    expect(failed).toEqual([fault]);
  });

  it('throws the error of a newcomer that enters at once', () => {
    const { turns, newcomer, failed } = setUp();
    const enter = (): void => {
      throw new Error('at once');
    };
    expect(() => turns.take({ ...newcomer('192.0.2.1'), enter })).toThrow('at once');
    expect(failed).toEqual([]);
  });

  it('limits the delay after a slow newcomer to some milliseconds', () => {
    const { turns, newcomer, entered } = setUp();
    turns.take(newcomer('192.0.2.1', 'slow', 5000));
    turns.take(newcomer('192.0.2.2', 'next'));
    expect(entered).toEqual(['slow']);
    vi.advanceTimersByTime(35);
    expect(entered).toEqual(['slow', 'next']);
  });

  it('has no timer and no waiting newcomers after its close', () => {
    const { turns, newcomer, entered } = setUp();
    for (let n = 0; n < 50; n += 1) turns.take(newcomer('192.0.2.1'));
    const before = entered.length;
    turns.close();
    turns.close();
    vi.advanceTimersByTime(1000);
    expect(entered).toHaveLength(before);
    expect(turns.size).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });
});
