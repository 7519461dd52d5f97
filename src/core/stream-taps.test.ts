import { expect, it } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { StreamTaps } from './stream-taps.ts';

it('needs packets only while the stream is tapped', () => {
  const taps = new StreamTaps(new RecordingLogger());
  expect(taps.neededAt).toBe(Number.POSITIVE_INFINITY);
  const end = taps.add({ onTracks: () => undefined, onPacket: () => undefined, onEnd: () => undefined }, []);
  expect(taps.neededAt).toBe(Number.NEGATIVE_INFINITY);
  end();
  expect(taps.neededAt).toBe(Number.POSITIVE_INFINITY);
});
