/** An RTMP provider on a free port and its publishers; all end with their test. */
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { onTestFinished, vi } from 'vitest';
import type { RtmpProviderOptions } from '../../src/services/rtmp/rtmp-options.ts';
import { RtmpProvider } from '../../src/services/rtmp/rtmp-provider.ts';
import { systemClock } from '../../src/util/clock.ts';
import { FakeIngestGate } from '../fakes/fake-ingest-gate.ts';
import { RecordingLogger } from '../fakes/recording-logger.ts';
import { RtmpPublisher } from '../fakes/rtmp-publisher.ts';

/** Bodies of RTMP messages, as hex: the parameters of AAC, and one frame of it. */
export const AAC_CONFIG = 'af001190';
export const AAC_FRAME = 'af0121aa';

/** Runs `act` at the end of the test, in reverse order of the calls. */
export function cleanUp(act: () => unknown): void {
  onTestFinished(async () => {
    await act();
  });
}

/** Starts a provider that listens. */
export async function start(options: Partial<RtmpProviderOptions> = {}) {
  const gate = new FakeIngestGate();
  const logger = new RecordingLogger();
  const provider = new RtmpProvider({ gate, logger, clock: systemClock, host: '127.0.0.1', port: 0, ...options });
  await provider.start();
  cleanUp(() => provider.stop());
  return { gate, logger, provider, port: provider.port };
}

/** A provider with one publisher. */
export async function publishing(options: Partial<RtmpProviderOptions> = {}, target: { tcUrl?: string; key?: string } = {}) {
  const started = await start(options);
  const publisher = await RtmpPublisher.publish(started.port, target);
  cleanUp(() => publisher.close());
  return { ...started, publisher, stream: await started.gate.stream() };
}

/** Returns a function that resolves when all sockets of this process were polled: data sent before it has been read, unless its socket rests. */
export async function socketPolls(): Promise<() => Promise<void>> {
  const server = net.createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1');
  cleanUp(() => server.close());
  await once(server, 'listening');
  const witness = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
  cleanUp(() => witness.destroy());
  return async () => {
    // Data that a call of `resume` lets in is read in the next turn of the event loop.
    for (let turn = 0; turn < 3; turn += 1) {
      witness.write('.');
      await once(witness, 'data');
    }
  };
}

/** The test decides when sweeps happen; `all`: those of short rests, too, with all other timers of the test's realm. */
export function holdSweeps(all?: 'all'): { readonly sweep: () => void } {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', ...(all === undefined ? [] : (['setTimeout', 'clearTimeout'] as const))] });
  cleanUp(() => vi.useRealTimers());
  return { sweep: () => void vi.advanceTimersToNextTimer() };
}
