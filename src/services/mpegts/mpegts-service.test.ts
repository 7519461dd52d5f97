import { execFileSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { expect, onTestFinished, test } from 'vitest';
import { requireProgram } from '../../../scripts/ensure-tools.ts';
import { FakeIngestGate } from '../../../test/fakes/fake-ingest-gate.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import type { Application } from '../../core/application.ts';
import type { IngestRequest } from '../../core/ingest.ts';
import { systemClock } from '../../util/clock.ts';
import { MpegtsProvider } from './mpegts-provider.ts';
import { mpegtsRoute } from './mpegts-service.ts';

/** Two programs: a wide frame in 1, a narrow one in 7. */
function twoPrograms(): Uint8Array {
  const input = ['-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=25', '-t', '2', '-map', '0:v', '-map', '0:v', '-s:v:1', '160x90'];
  const codec = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '25', '-pix_fmt', 'yuv420p'];
  const programs = ['-program', 'program_num=1:st=0', '-program', 'program_num=7:st=1'];
  return execFileSync(requireProgram('ffmpeg'), ['-v', 'error', ...input, ...codec, ...programs, '-f', 'mpegts', 'pipe:1']);
}

test.each([
  [undefined, 320],
  [7, 160],
])('a port of a stream map selects program %j', async (program, width) => {
  const gate = new FakeIngestGate();
  const port = { protocol: 'udp', ranges: [{ first: 0, last: 65_535 }] };
  const streams = [{ name: 'tv_${Port}', port, ...(program !== undefined && { program }) }];
  const application = {
    definition: { config: { providers: { mpegts: { streams } } } },
    openIngest: (request: IngestRequest) => gate.openIngest({ host: 'default', app: 'app' }, request),
  } as unknown as Application;
  const provider = new MpegtsProvider({
    ...{ logger: new RecordingLogger(), clock: systemClock, host: '127.0.0.1', protocol: 'udp', ports: [0] },
    route: (number) => mpegtsRoute([application], number),
  });
  onTestFinished(() => provider.stop());
  await provider.start();
  const [number = 0] = provider.sources.keys();
  const socket = createSocket('udp4');
  onTestFinished(() => {
    socket.close();
  });
  const bytes = twoPrograms();
  for (let at = 0; at < bytes.length; at += 1316) {
    await new Promise((sent) => socket.send(bytes.subarray(at, at + 1316), number, '127.0.0.1', sent));
  }
  const stream = await gate.stream();
  await stream.until(({ packets }) => packets.length > 20);
  expect(stream.name).toBe(`tv_${number}`);
  expect(stream.tracks).toMatchObject([{ type: 'video', width }]);
});
