import { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { AddressShares } from './address-shares.ts';
import { ConnectionLimiter } from './connection-limiter.ts';
import { DescriptorLedger } from './descriptor-ledger.ts';
import { DescriptorWatch } from './descriptor-watch.ts';
import { RefusalLog } from './refusal-log.ts';

const logger = new RecordingLogger();
const refusals = new RefusalLog(logger);

beforeEach(() => void logger.lines.splice(0));
afterEach(() => refusals.close());

describe('ConnectionLimiter', () => {
  it('counts a connection until it closes, against the share of its address and the descriptors of all', async () => {
    const descriptors = new DescriptorLedger(DescriptorLedger.open(3));
    const limiter = new ConnectionLimiter({ what: 'X connections', shares: new AddressShares({ perAddress: 2 }), descriptors, refusals });
    const [socket] = [new Socket(), limiter.admit(new Socket(), '192.0.2.1')];
    expect([limiter.admit(socket, '192.0.2.1'), limiter.admit(new Socket(), '192.0.2.1')]).toEqual([true, false]);
    expect([descriptors.held, limiter.refused]).toEqual([2, 1]);
    // Connections of a proxy have no share of an address, but they use descriptors.
    expect([limiter.admit(new Socket(), null), limiter.admit(new Socket(), null)]).toEqual([true, false]);
    const closed = new Promise((done) => socket.once('close', done));
    socket.destroy();
    await closed;
    expect(limiter.admit(new Socket(), '192.0.2.1')).toBe(true);
    expect(logger.lines.map(({ message, fields }) => [message, fields])).toEqual([
      ['X connections refused: their address has its share', { peer: '192.0.2.1', share: 2, count: 1 }],
      ['X connections refused: the file descriptors for them are used up (ulimit -n)', { limit: 3, count: 1 }],
    ]);
  });
});

describe('DescriptorWatch', () => {
  it('logs once a minute that there are none', () => {
    vi.useFakeTimers();
    const watch = new DescriptorWatch(refusals);
    vi.advanceTimersByTime(5000);
    expect([watch.exhausted, logger.lines.length]).toEqual([0, 0]);
    watch.close();
    watch.close();
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });
});
