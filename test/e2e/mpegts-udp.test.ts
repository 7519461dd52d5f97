/** A real encoder sends a transport stream over UDP; players watch it as LL-HLS. */
import { createSocket } from 'node:dgram';
import { expect, onTestFinished, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { Child } from '../harness/child.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { decode, probe } from '../harness/probe.ts';
import { startServer } from '../harness/server.ts';

const INPUTS = ['-re', '-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=25', '-re', '-f', 'lavfi', '-i', 'sine=r=48000'];
const CODECS = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '25', '-bf', '2', '-pix_fmt', 'yuv420p', '-c:a', 'aac'];

function send(port: number): Child {
  const output = ['-f', 'mpegts', `udp://127.0.0.1:${port}?pkt_size=1316`];
  const child = new Child(requireProgram('ffmpeg'), ['-v', 'error', '-nostdin', ...INPUTS, ...CODECS, ...output]);
  onTestFinished(async () => {
    await child.kill();
  });
  return child;
}

test('plays without decoding errors, resumes after a restart of its encoder, and ignores garbage', async () => {
  const [port = 0] = await freePorts(1);
  const server = await startServer({ segmentDuration: 1, mpegtsPort: port });
  onTestFinished(async () => {
    await server.close();
  });
  const first = send(port);
  const probed = await until('the stream to be playable', async () => {
    const found = await probe(server.http('ts', 'llhls.m3u8'));
    return found.video === undefined ? null : found;
  });
  expect(probed.video).toMatchObject({ codec_name: 'h264', width: 320, height: 180 });
  expect(probed.audio).toMatchObject({ codec_name: 'aac', sample_rate: '48000' });
  expect((await decode(server.http('ts', 'llhls.m3u8'), 3)).errors).toBe('');
  const { input } = await server.api.get<StreamInformation>(apiPath.stream('ts'));
  expect(input).toMatchObject({ sourceType: 'MPEGTS' });
  expect(input.sourceUrl).toMatch(/^UDP:\/\/127\.0\.0\.1:\d+$/);

  const garbage = createSocket('udp4');
  onTestFinished(() => {
    garbage.close();
  });
  for (let count = 0; count < 50; count += 1) garbage.send(Buffer.alloc(1316, count), port, '127.0.0.1');

  await first.kill();
  await until(
    'the stream to end',
    async () => !(await server.api.get<string[]>(`${apiPath.app('default', 'app')}/streams`)).includes('ts'),
  );
  send(port);
  await until('the stream to be back', async () => (await probe(server.http('ts', 'llhls.m3u8'))).video);
});
