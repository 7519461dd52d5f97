import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseMediaPlaylist } from '../../test/support/playlist/media-playlist.ts';
import { parseMultivariantPlaylist } from '../../test/support/playlist/multivariant-playlist.ts';
import {
  parseAttributeList,
  parseMedia,
  parsePart,
  parsePartInf,
  parsePreloadHint,
  parseProgramDateTime,
  parseRenditionReport,
  parseServerControl,
  parseSkip,
  parseStreamInf,
} from '../../test/support/playlist/tag-readers.ts';
import { ProtocolError } from '../util/protocol-error.ts';
import { quoted } from './attribute-list.ts';
import {
  serializePart,
  serializePartInf,
  serializePreloadHint,
  serializeProgramDateTime,
  serializeRenditionReport,
  serializeServerControl,
  serializeSkip,
} from './media-tags.ts';
import { serializeAudioRendition, serializeVariant } from './multivariant-tags.ts';

const value = (line: string): string => line.slice(line.indexOf(':') + 1).trimEnd();

describe('tags in both directions', () => {
  it.each([
    [
      '#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=36.000000,PART-HOLD-BACK=1.500000\n',
      { canBlockReload: true, canSkipUntil: 36, holdBack: null, partHoldBack: 1.5 },
    ],
    ['#EXT-X-SERVER-CONTROL:HOLD-BACK=18.000000\n', { canBlockReload: false, canSkipUntil: null, holdBack: 18, partHoldBack: null }],
  ])('%s', (line, control) => {
    expect(serializeServerControl(control)).toBe(line);
    expect(parseServerControl(value(line))).toEqual(control);
  });

  it.each([
    ['#EXT-X-PART:DURATION=0.500000,URI="p.m4s?a=b",INDEPENDENT=YES\n', { duration: 0.5, uri: 'p.m4s?a=b', independent: true }],
    ['#EXT-X-PART:DURATION=0.490667,URI="p,1.m4s"\n', { duration: 0.490667, uri: 'p,1.m4s', independent: false }],
  ])('%s', (line, part) => {
    expect(serializePart(part)).toBe(line);
    expect(parsePart(value(line))).toEqual(part);
  });

  it.each([
    ['#EXT-X-RENDITION-REPORT:URI="c.m3u8",LAST-MSN=12,LAST-PART=3\n', { uri: 'c.m3u8', lastMsn: 12, lastPart: 3 }],
    ['#EXT-X-RENDITION-REPORT:URI="c.m3u8",LAST-MSN=12\n', { uri: 'c.m3u8', lastMsn: 12, lastPart: null }],
  ])('%s', (line, report) => {
    expect(serializeRenditionReport(report)).toBe(line);
    expect(parseRenditionReport(value(line))).toEqual(report);
  });

  it('the small ones', () => {
    expect(serializePartInf(0.491)).toBe('#EXT-X-PART-INF:PART-TARGET=0.491000\n');
    expect(parsePartInf('PART-TARGET=0.491000')).toBe(0.491);
    expect(serializeSkip(7)).toBe('#EXT-X-SKIP:SKIPPED-SEGMENTS=7\n');
    expect(parseSkip('SKIPPED-SEGMENTS=7')).toBe(7);
    const hint = { type: 'PART', uri: 'p.m4s' } as const;
    expect(serializePreloadHint(hint)).toBe('#EXT-X-PRELOAD-HINT:TYPE=PART,URI="p.m4s"\n');
    expect(parsePreloadHint('TYPE=PART,URI="p.m4s"')).toEqual(hint);
  });

  it('date-times keep milliseconds and the local offset', () => {
    const time = Date.UTC(2026, 10, 21, 9, 40, 21, 442);
    expect(parseProgramDateTime(value(serializeProgramDateTime(time)))).toBe(time);
    expect(value(serializeProgramDateTime(time))).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.442[+-]\d\d:\d\d$/);
    expect(() => parseProgramDateTime('yesterday')).toThrow(ProtocolError);
  });

  it('renditions and variants', () => {
    const media = serializeAudioRendition({
      groupId: 'aac',
      name: 'Main "mix"',
      default: true,
      autoselect: true,
      channels: 2,
      language: 'en',
      characteristics: 'public.easy-to-read',
      uri: 'a.m3u8',
    });
    expect(media).toBe(
      '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="aac",NAME="Main \'mix\'",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2",LANGUAGE="en",CHARACTERISTICS="public.easy-to-read",URI="a.m3u8"\n',
    );
    expect(parseMedia(value(media)).get('NAME')).toBe("Main 'mix'");
    const variant = {
      bandwidth: 96_000,
      video: null,
      codecs: ['mp4a.40.2'],
      audioGroup: null,
      subtitleGroup: null,
      captionGroup: null,
      uri: 'a.m3u8',
    };
    expect(serializeVariant(variant)).toBe('#EXT-X-STREAM-INF:BANDWIDTH=96000,CODECS="mp4a.40.2"\na.m3u8\n');
    expect(parseStreamInf('BANDWIDTH=96000,CODECS="a,b"').get('CODECS')).toBe('a,b');
  });
});

describe('attribute lists', () => {
  it.each(['A', 'A=', 'A=1,,B=2', 'A="x', 'A=1,A=2', 'a=1', '=1', 'A= 1'])('that break the grammar are refused: %s', (text) => {
    expect(() => parseAttributeList(text)).toThrow(ProtocolError);
  });

  it('are parsed or refused, for arbitrary strings', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        try {
          parseAttributeList(text);
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
    );
  });

  it('keep a quoted string inside its quotes', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect([...parseAttributeList(`NAME=${quoted(text)}`).keys()]).toEqual(['NAME']);
      }),
    );
  });
});

describe('playlists', () => {
  it('are refused when they are something else', () => {
    for (const text of ['', 'hello', '#EXTM3U\nsegment.m4s\n']) expect(() => parseMediaPlaylist(text)).toThrow(ProtocolError);
    for (const text of ['', '#EXTM3U\nx.m3u8\n', '#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n']) {
      expect(() => parseMultivariantPlaylist(text)).toThrow(ProtocolError);
    }
  });

  it('number their segments after those that a delta update skips', () => {
    const playlist = parseMediaPlaylist(
      '#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:10\n#EXT-X-SKIP:SKIPPED-SEGMENTS=5\n#EXTINF:4.0,\na\n#EXT-X-PART:DURATION=1,URI="p"\n',
    );
    expect(playlist.segments.map(({ msn, uri, parts }) => [msn, uri, parts.length])).toEqual([
      [15, 'a', 0],
      [16, null, 1],
    ]);
  });
});
