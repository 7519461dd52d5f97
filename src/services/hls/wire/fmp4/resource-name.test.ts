import { describe, expect, it } from 'vitest';
import { parseResourceName, ResourceNames } from './resource-name.ts';

describe('resource names', () => {
  const names = new ResourceNames({ id: 2, type: 'audio' }, 'j4QYcHK6');

  it.each([
    [names.chunklist, 'chunklist_2_audio_j4QYcHK6_llhls.m3u8', { kind: 'chunklist' }],
    [names.init(0), 'init_2_audio_j4QYcHK6_llhls.m4s', { kind: 'init', generation: 0 }],
    [names.init(3), 'init_2_3_audio_j4QYcHK6_llhls.m4s', { kind: 'init', generation: 3 }],
    [names.segment(14), 'seg_2_14_audio_j4QYcHK6_llhls.m4s', { kind: 'segment', msn: 14 }],
    [names.part(14, 0), 'part_2_14_0_audio_j4QYcHK6_llhls.m4s', { kind: 'part', msn: 14, part: 0 }],
  ])('%s is written and read', (written, expected, resource) => {
    expect(written).toBe(expected);
    expect(parseResourceName(written)).toEqual({ trackId: 2, type: 'audio', runMark: 'j4QYcHK6', ...resource });
  });

  it.each([
    '',
    'llhls.m3u8',
    'chunklist_2_audio_key_llhls.m4s',
    'chunklist_2_1_audio_key_llhls.m3u8',
    'seg_2_audio_key_llhls.m4s',
    'seg_2_1_audio_key_llhls.m3u8',
    'seg_2_1_1_audio_key_llhls.m4s',
    'part_2_1_audio_key_llhls.m4s',
    'init_2_1_1_audio_key_llhls.m4s',
    'seg_2_-1_audio_key_llhls.m4s',
    'seg_2_1_subtitle_key_llhls.m4s',
    'seg_2_1_audio_../x_llhls.m4s',
    'seg_2_1_audio_key_hls.m4s',
  ])('%s is refused', (file) => {
    expect(parseResourceName(file)).toBeNull();
  });
});
