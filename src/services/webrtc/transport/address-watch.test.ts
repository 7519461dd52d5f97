import type { NetworkInterfaceInfo } from 'node:os';
import { beforeEach, expect, test, vi } from 'vitest';
import { ManualClock } from '../../../../test/fakes/manual-clock.ts';
import { AddressWatch } from './address-watch.ts';

const machine = vi.hoisted(() => ({ address: '127.0.0.1', asked: 0 }));
vi.mock('node:os', async (importOriginal) => {
  const networkInterfaces = (): Record<string, NetworkInterfaceInfo[]> => {
    machine.asked += 1;
    return { eth0: [{ address: machine.address } as NetworkInterfaceInfo] };
  };
  return { ...(await importOriginal<typeof import('node:os')>()), networkInterfaces };
});

beforeEach(() => {
  machine.address = '127.0.0.1';
  machine.asked = 0;
});

test('a value is computed again only after the addresses changed', () => {
  const clock = new ManualClock();
  const watch = new AddressWatch(() => ({ address: machine.address }), clock);
  const first = watch.value;
  clock.advance(5000);
  expect(watch.value).toBe(first);
  machine.address = '192.0.2.1';
  expect(watch.value).toBe(first);
  clock.advance(1000);
  expect(watch.value).toEqual({ address: '192.0.2.1' });
});

test('the system is asked once a second at most', () => {
  const clock = new ManualClock();
  const watch = new AddressWatch(() => null, clock);
  for (let n = 0; n < 10_000; n += 1) {
    clock.advance(1);
    void watch.value;
  }
  expect(machine.asked).toBe(11);
});
