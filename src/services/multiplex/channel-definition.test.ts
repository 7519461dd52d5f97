import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { streamOfUrl } from '../../core/stream-address.ts';
import { type ChannelDefinition, DefinitionFault, readDefinition } from './channel-definition.ts';
import { multiplexChannelInformation } from './channel-information.ts';
import { formatMuxFile, parseMuxFile, readMuxFile } from './mux-file.ts';

const TRACK = { sourceTrackName: 'bypass_video', newTrackName: 'v' };
const SOURCE = { name: 'in', url: 'stream://default/app/in', trackMap: [TRACK] };
const OUTPUT = { outputStream: { name: 'ch' } };
const WHOLE = {
  outputStream: { name: 'ch', bypassTranscoder: false },
  sourceStreams: [
    {
      ...SOURCE,
      trackMap: [
        { ...TRACK, bitrateConf: 5_000_000, framerateConf: 30 },
        { sourceTrackName: 'aac', newTrackName: 'a' },
      ],
    },
  ],
  playlists: [
    {
      name: 'LLHLS ABR',
      fileName: 'abr',
      options: { webrtcAutoAbr: true, hlsChunklistPathDepth: 0, enableTsPackaging: true },
      renditions: [{ name: 'hd', video: 'v', audio: 'a', videoIndexHint: 0, audioIndexHint: 1 }],
    },
  ],
};

const playlist = (member: object) => ({ ...OUTPUT, sourceStreams: [SOURCE], playlists: [{ name: 'p', fileName: 'p', ...member }] });
const source = (member: object) => ({ ...OUTPUT, sourceStreams: [{ ...SOURCE, ...member }] });
const without = (name: string) => source(Object.fromEntries([[name, undefined]]));

describe('the definition of a channel', () => {
  it.each([
    ['no object', null, 'Failed to find outputStream object'],
    ['no output', {}, 'Failed to find outputStream object'],
    ['an output that is not an object', { outputStream: 'ch' }, 'Failed to find outputStream object'],
    ['no name', { outputStream: {} }, 'Failed to find outputStream/name object'],
    ['a name that is not a text', { outputStream: { name: 7 } }, 'Failed to find outputStream/name object'],
    ['a name with a path', { outputStream: { name: '../x' } }, /^outputStream\/name must not be empty.*"\.\.\/x"$/],
    [
      'a flag that is not a boolean',
      { outputStream: { name: 'a', bypassTranscoder: 1 }, sourceStreams: [SOURCE] },
      /bypassTranscoder must be true or false/,
    ],
    ['no sources', OUTPUT, 'Failed to find sourceStreams object'],
    ['an empty list of sources', { ...OUTPUT, sourceStreams: [] }, 'sourceStreams must have at least one item'],
    ['a source without a name', without('name'), 'Failed to find sourceStreams/name object'],
    ['a source without a URL', without('url'), 'Failed to find sourceStreams/url object'],
    ['a source without a map', without('trackMap'), 'Failed to find sourceStreams/trackMap object'],
    ['an invalid URL', source({ url: 'zzz' }), 'Failed to parse url: zzz'],
    [
      'a track without its name',
      source({ trackMap: [{ newTrackName: 'v' }] }),
      'Failed to find sourceStreams/trackMap/sourceTrackName object',
    ],
    [
      'a track without a new name',
      source({ trackMap: [{ sourceTrackName: 'v' }] }),
      'Failed to find sourceStreams/trackMap/newTrackName object',
    ],
    ['an empty new name', source({ trackMap: [{ ...TRACK, newTrackName: '' }] }), /newTrackName must not be empty/],
    ['a blank new name', source({ trackMap: [{ ...TRACK, newTrackName: ' ' }] }), /newTrackName must not be empty/],
    [
      'a new name with a NUL character',
      source({ trackMap: [{ ...TRACK, newTrackName: 'v\u0000' }] }),
      'sourceStreams/trackMap/newTrackName must not have characters that cannot be seen: "v\\u0000"',
    ],
    ['half of a character', source({ name: '\ud800' }), /^sourceStreams\/name must not have characters/],
    ['a bit rate below 0', source({ trackMap: [{ ...TRACK, bitrateConf: -1 }] }), /trackMap\/bitrateConf must be a number from 0/],
    ['a frame rate that is a text', source({ trackMap: [{ ...TRACK, framerateConf: '30' }] }), /trackMap\/framerateConf must be a number/],
    ['too many tracks', source({ trackMap: Array.from({ length: 101 }, () => TRACK) }), /trackMap must not have more than 100 items/],
    ['playlists of the wrong type', { ...OUTPUT, sourceStreams: [SOURCE], playlists: {} }, 'Failed to find playlists object'],
    ['a playlist without a name', playlist({ name: undefined }), 'Failed to find playlists/name object'],
    ['a playlist without a file name', playlist({ fileName: undefined }), 'Failed to find playlists/fileName object'],
    ['a file name with a path', playlist({ fileName: 'a/b' }), /^playlists\/fileName must not be empty/],
    ['options of the wrong type', playlist({ options: [] }), 'playlists/options must be an object'],
    ['an invalid depth', playlist({ options: { hlsChunklistPathDepth: 3 }, renditions: [{ name: 'r' }] }), /hlsChunklistPathDepth must be/],
    ['a rendition without a name', playlist({ renditions: [{}] }), 'Failed to find playlists/renditions/name object'],
    [
      'an unknown video',
      playlist({ renditions: [{ name: 'r', video: 'x' }] }),
      'Failed to find video variant name x in SourceStream/TrackMap object',
    ],
    [
      'an unknown audio',
      playlist({ renditions: [{ name: 'r', audio: 'y' }] }),
      'Failed to find audio variant name y in SourceStream/TrackMap object',
    ],
  ])('refuses %s', (_what, json, message) => {
    expect(() => readDefinition(json)).toThrow(DefinitionFault);
    expect(() => readDefinition(json)).toThrow(message);
  });

  it('refuses two playlists of one file name', () => {
    const one = { name: 'p', fileName: 'p', renditions: [{ name: 'r', video: 'v' }] };
    expect(() => readDefinition({ ...OUTPUT, sourceStreams: [SOURCE], playlists: [one, one] })).toThrow(
      'playlists/fileName "p" is there twice',
    );
  });

  it('bypasses the transcoder by default, and drops a playlist without renditions', () => {
    const { outputStream, playlists } = readDefinition(playlist({}));
    expect(outputStream).toEqual({ name: 'ch', bypassTranscoder: true });
    expect(playlists).toEqual([]);
  });

  it('accepts a URL of another scheme, as OvenMediaEngine does, but pulls nothing from it', () => {
    expect(readDefinition(source({ url: 'http://127.0.0.1/x' })).sourceStreams[0]?.url).toBe('http://127.0.0.1/x');
    expect(streamOfUrl('http://127.0.0.1/x')).toBeNull();
    expect(streamOfUrl('stream://default/app')).toBeNull();
    expect(streamOfUrl('stream://default/app/in')).toEqual({ vhost: 'default', app: 'app', stream: 'in' });
  });
});

describe('the lists of a channel', () => {
  const tracks = (count: number) => Array.from({ length: count }, () => TRACK);
  const sources = (count: number) => ({
    ...OUTPUT,
    sourceStreams: Array.from({ length: count }, () => ({ ...SOURCE, trackMap: tracks(100) })),
  });

  it('have a thousand tracks, and as many renditions, in all', () => {
    expect(readDefinition(sources(10)).sourceStreams.length).toBe(10);
    expect(() => readDefinition(sources(11))).toThrow('sourceStreams/trackMap must not have more than 1000 items in all');
    const rendition = { name: 'r', video: 'v', audio: 'v', videoIndexHint: 1, audioIndexHint: 1 };
    const playlist = (_: unknown, index: number) => ({
      name: 'p',
      fileName: `f${index}`,
      renditions: Array.from({ length: 100 }, () => rendition),
    });
    const whole = (count: number) => ({ ...sources(10), playlists: Array.from({ length: count }, playlist) });
    const largest = readDefinition(whole(10));
    expect(parseMuxFile(formatMuxFile(largest), 'ch.mux')).toEqual(largest);
    expect(() => readDefinition(whole(11))).toThrow('playlists/renditions must not have more than 1000 items in all');
  });

  it('are parsed in a thread when the file is large, with the same result', async () => {
    const logger = new RecordingLogger();
    const text = formatMuxFile(readDefinition(sources(10)));
    expect(text.length).toBeGreaterThan(32 * 1024);
    const reading = readMuxFile({ text, file: 'ch.mux' }, logger);
    expect(reading).toBeInstanceOf(Promise);
    expect(await reading).toEqual(parseMuxFile(text, 'ch.mux'));
    const wrong = text.replace(/<BypassTranscoder>\w+/, '<BypassTranscoder>perhaps');
    await expect(readMuxFile({ text: wrong, file: 'ch.mux' }, logger)).rejects.toThrow('line 5: BypassTranscoder must be true or false');
  });

  it('are refused before parsing when the file has too many tags', () => {
    expect(() => parseMuxFile(`<Multiplex>${'<a/>'.repeat(29_000)}</Multiplex>`, 'ch.mux')).toThrow('The XML has more than 29000 tags');
  });
});

describe('the file of a channel', () => {
  it('is read as the reference server writes it', () => {
    const xml = `<?xml version="1.0"?>
      <Multiplex>
        <OutputStream><Name>ch</Name><BypassTranscoder>false</BypassTranscoder></OutputStream>
        <SourceStreams><SourceStream><Name>in</Name><Url>stream://default/app/in</Url>
          <TrackMap>
            <Track><SourceTrackName>bypass_video</SourceTrackName><NewTrackName>v</NewTrackName>
              <BitrateConf>5000000</BitrateConf><FramerateConf>30</FramerateConf></Track>
            <Track><SourceTrackName>aac</SourceTrackName><NewTrackName>a</NewTrackName></Track>
          </TrackMap></SourceStream></SourceStreams>
        <Playlists><Playlist><Name>LLHLS ABR</Name><FileName>abr</FileName>
          <Options><WebRtcAutoAbr>TRUE</WebRtcAutoAbr><HlsChunklistPathDepth>0</HlsChunklistPathDepth>
            <EnableTsPackaging>true</EnableTsPackaging><EnableSubtitles>true</EnableSubtitles></Options>
          <Rendition><Name>hd</Name><Video>v</Video><Audio>a</Audio><VideoIndexHint>0</VideoIndexHint><AudioIndexHint>1</AudioIndexHint></Rendition>
        </Playlist></Playlists>
      </Multiplex>`;
    expect(parseMuxFile(xml, 'ch.mux')).toEqual(readDefinition(WHOLE));
    expect(parseMuxFile(xml.replace('HlsChunklistPathDepth>0', 'HLSChunklistPathDepth>0').replace('</Hls', '</HLS'), 'ch.mux')).toEqual(
      readDefinition(WHOLE),
    );
  });

  it.each([
    ['<Other/>', 'the root element must be Multiplex, but is Other'],
    ['<Multiplex/>', 'Failed to find outputStream object'],
    [
      '<Multiplex><OutputStream><Name>a</Name>\n<BypassTranscoder>yes</BypassTranscoder></OutputStream></Multiplex>',
      'line 2: BypassTranscoder must be',
    ],
    [
      '<Multiplex><OutputStream><Name>a</Name></OutputStream><SourceStreams><SourceStream><TrackMap><Track><BitrateConf>5M</BitrateConf></Track></TrackMap></SourceStream></SourceStreams></Multiplex>',
      'line 1: BitrateConf must be a number, but is "5M"',
    ],
    ['<Multiplex>', 'not well-formed'],
    ['', 'not well-formed'],
  ])('refuses %s', (xml, message) => {
    expect(() => parseMuxFile(xml, 'ch.mux')).toThrow(message);
  });

  it('reads back as the definition that the API accepted, for arbitrary definitions', () => {
    // XML trims, and cannot hold control characters.
    const label = fc.string({ unit: 'grapheme', maxLength: 12 }).map((text) => text.replaceAll(/[\p{C}\s]/gu, ''));
    const word = label.filter((text) => text !== '');
    const name = fc.stringMatching(/^[a-z0-9_é日-]{1,12}$/);
    const hint = fc.option(fc.integer({ min: 0, max: 9 }), { nil: undefined });
    const track = fc.record({
      sourceTrackName: label,
      newTrackName: word,
      bitrateConf: fc.nat(),
      framerateConf: fc.constantFrom(0, 25, 29.97),
    });
    const definition = fc
      .record({
        name,
        bypass: fc.boolean(),
        labels: fc.array(label, { minLength: 1, maxLength: 3 }),
        tracks: fc.array(track, { minLength: 1, maxLength: 4 }),
      })
      .chain(({ name: channel, bypass, labels, tracks }) => {
        const variant = fc.constantFrom(...tracks.map(({ newTrackName }) => newTrackName));
        const rendition = fc.record({ name: label, video: variant, audio: fc.option(variant, { nil: undefined }), videoIndexHint: hint });
        const options = fc.record({
          webrtcAutoAbr: fc.boolean(),
          hlsChunklistPathDepth: fc.integer({ min: -1, max: 2 }),
          enableTsPackaging: fc.boolean(),
        });
        const lists = fc.uniqueArray(
          fc.record({ name: label, fileName: name, options, renditions: fc.array(rendition, { minLength: 1, maxLength: 3 }) }),
          {
            selector: ({ fileName }) => fileName,
            maxLength: 3,
          },
        );
        return lists.map((playlists) => ({
          outputStream: { name: channel, bypassTranscoder: bypass },
          sourceStreams: labels.map((each) => ({ name: each, url: `stream://v/a/${channel}`, trackMap: tracks })),
          playlists,
        }));
      });
    fc.assert(
      fc.property(definition, (json) => {
        const read = readDefinition(json);
        expect(parseMuxFile(formatMuxFile(read), 'x.mux')).toEqual(read);
      }),
      { numRuns: 200 },
    );
  });
});

describe('the description of a channel', () => {
  const told = (definition: ChannelDefinition, state: 'Playing' | 'Pulling') =>
    multiplexChannelInformation({ definition, state, pullingMessage: 'waits' });

  it('leaves out empty lists, and sorts tracks by their names in the source', () => {
    expect(told(readDefinition(playlist({ renditions: [{ name: 'r', video: 'v' }] })), 'Playing')).toEqual({
      outputStream: { name: 'ch', bypassTranscoder: true },
      playlists: [{ name: 'p', fileName: 'p', options: null, renditions: [{ name: 'r', video: 'v' }] }],
      sourceStreams: [SOURCE],
      state: 'Playing',
    });
    const { sourceStreams, playlists, pullingMessage } = told(readDefinition(WHOLE), 'Pulling');
    expect(sourceStreams[0]?.trackMap.map(({ sourceTrackName }) => sourceTrackName)).toEqual(['aac', 'bypass_video']);
    expect(playlists).toEqual(WHOLE.playlists);
    expect(pullingMessage).toBe('waits');
    expect(told(readDefinition({ ...OUTPUT, sourceStreams: [SOURCE] }), 'Playing')).not.toHaveProperty('playlists');
  });
});
