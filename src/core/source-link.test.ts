import { expect, it } from 'vitest';
import { FakeIngestGate } from '../../test/fakes/fake-ingest-gate.ts';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { videoPacket, videoTrack } from '../../test/fakes/source.ts';
import type { CloseReason } from './ingest.ts';
import { SourceLink } from './source-link.ts';
import { Urgency } from './urgency.ts';

const LEFT: CloseReason = { code: 'peer-left', detail: 'bye' };

function setUp() {
  const clock = new ManualClock();
  const gate = new FakeIngestGate();
  const request = { streamName: 's', provider: 'rtmp', sourceType: 'Rtmp', sourceUrl: '', onClose: () => undefined } as const;
  gate.openIngest({ host: 'h', app: 'a' }, request);
  const [stream] = gate.streams;
  if (stream === undefined) throw new Error('the gate keeps what it opens');
  const closed: CloseReason[] = [];
  const link = new SourceLink({ stream, clock, onClose: (reason) => closed.push(reason) });
  return { clock, stream, closed, link };
}

it('counts its packets, and the time since the last one', () => {
  const { clock, link, stream } = setUp();
  clock.advance(100);
  expect([link.packets, link.heardAt, link.silence]).toEqual([0, null, 100]);
  link.setTracks([videoTrack()]);
  link.push(videoPacket(0));
  const heardAt = clock.monotonic();
  clock.advance(50);
  expect([link.packets, link.heardAt, link.silence, stream.packets.length]).toEqual([1, heardAt, 50, 1]);
  link.heard();
  expect([link.packets, link.silence]).toEqual([1, 0]);
});

it('needs packets when the stream does', () => {
  const { link, stream } = setUp();
  stream.neededAt = 1234;
  expect(link.neededAt).toBe(1234);
});

it.each([
  ['was cut', (link: SourceLink) => link.cut(), 0],
  ['has closed', (link: SourceLink) => link.close(LEFT), 1],
])('passes nothing on after it %s', (_what, end, told) => {
  const { link, stream, closed } = setUp();
  end(link);
  end(link);
  link.setTracks([videoTrack()]);
  link.push(videoPacket(0));
  link.countBytes(10);
  link.close(LEFT);
  expect([link.closed, link.urgency, link.packets]).toEqual([true, Urgency.NONE, 0]);
  expect([stream.trackSets.length, stream.packets.length, closed.length]).toEqual([0, 0, told]);
});
