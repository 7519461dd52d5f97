import { expect, test } from 'vitest';
import type { CodecModuleItem } from '../../transcoder/codec-modules.ts';
import { type CodecSource, codecs } from './codecs.ts';

function module(codec: string, more: Partial<CodecModuleItem> = {}): CodecModuleItem {
  return {
    ...{ busId: '-', displayName: 'FFmpeg', id: 0, isDecoder: true, isDefault: true, isEncoder: true, isHwAccel: false },
    ...{ mediaType: 'Video', metrics: { active: { decoder: 0, encoder: 0 } }, module: 'x', name: codec, supportedCodecs: [codec] },
    ...more,
  };
}

function source(modules: () => Promise<CodecModuleItem[]>, libraryVersion: string | null = '8.1') {
  let closed = 0;
  const transcoder = {
    libraryVersion,
    codecModules: modules,
    close: async () => {
      closed += 1;
    },
  } as unknown as CodecSource;
  return { transcoder, closed: () => closed };
}

test('an FFmpeg that does not start is a problem with the output of its process, and is closed', async () => {
  const { transcoder, closed } = source(() => Promise.reject(new Error('the transcoder died')));
  const found = await codecs((logger) => {
    logger.warn({}, 'cannot find node-av');
    return transcoder;
  });
  expect(found).toEqual([
    expect.objectContaining({
      name: 'ffmpeg',
      status: 'problem',
      text: expect.stringContaining('the transcoder died: cannot find node-av'),
    }),
  ]);
  expect(found[0]?.remedy).toContain('npm ci --include=optional');
  expect(closed()).toBe(1);
});

test('an FFmpeg without an encoder that streams need is a warning, and names it', async () => {
  const { transcoder } = source(async () => [module('H264'), module('AAC'), module('OPUS', { isEncoder: false })]);
  expect(await codecs(() => transcoder)).toEqual([
    expect.objectContaining({ name: 'ffmpeg', status: 'warning', text: expect.stringMatching(/it cannot encode OPUS$/) }),
    expect.objectContaining({ name: 'gpu', status: 'ok', text: expect.stringContaining('the CPU encodes everything') }),
  ]);
});

test('hardware is listed with its bus id and its codecs', async () => {
  const card = { isHwAccel: true, displayName: 'NVIDIA T4', busId: '0000:01:00.0', isDecoder: false, supportedCodecs: ['H264', 'H265'] };
  const { transcoder } = source(async () => [module('H264'), module('AAC'), module('OPUS'), module('H264', card)]);
  const [ffmpeg, gpu] = await codecs(() => transcoder);
  expect([ffmpeg?.status, gpu?.status]).toEqual(['ok', 'ok']);
  expect(gpu?.text).toBe('NVIDIA T4 at 0000:01:00.0 encodes H264, H265');
});
