import { beforeEach, describe, expect, it } from 'vitest';
import { FakeDelivery } from '../../../../../test/fakes/fake-delivery.ts';
import type { DeliveryView } from '../../../../delivery/feed/view.ts';
import { serializeProgramDateTime } from '../../../../playlist/media-tags.ts';
import type { HlsSegment, HlsUpdate } from '../../wire/ts/update.ts';
import { type HlsViewSettings, hlsViewSettings } from '../../wire/view-settings.ts';
import { HlsView } from './hls-view.ts';

const SETTINGS = hlsViewSettings({ segmentDuration: 4, segmentCount: 2, createDefaultPlaylist: true });
const WALL = Date.UTC(2026, 0, 1);
const PLAYLISTS: HlsUpdate = {
  type: 'playlists',
  playlists: [{ fileName: 'playlist', renditions: [{ attributes: 'BANDWIDTH=1', variant: '7' }], subtitles: [], captions: '', version: 3 }],
  variants: ['7'],
};

let delivery: FakeDelivery;
let view: DeliveryView;

function open(settings: HlsViewSettings = SETTINGS): void {
  delivery = new FakeDelivery((given, context) => new HlsView(given as HlsViewSettings, context));
  delivery.openFeed({
    kind: 'hlsv3',
    address: { vhost: 'v', app: 'a', stream: 's' },
    crossDomains: null,
    settings,
    bytesPerSecond: 0,
    snapshot: () => [],
    openSession: null,
    onBytesSent: () => undefined,
  });
  view = delivery.feed.view;
}

function append(number: number, more: Partial<HlsSegment> = {}): void {
  const segment: HlsSegment = {
    number,
    duration: 4,
    startTime: WALL + number * 4000,
    discontinuity: false,
    discontinuities: 0,
    tags: '',
    spans: [],
    path: null,
    ...more,
  };
  view.update({ type: 'segment', variant: '7', segment } satisfies HlsUpdate);
  view.update({ type: 'retire', variant: '7', firstNumber: Math.max(0, number - 4) } satisfies HlsUpdate);
}

beforeEach(() => open());

describe('HlsView', () => {
  it('answers 201 without a body until the stream has started', () => {
    for (const file of ['ts:playlist.m3u8', 'playlist.m3u8?format=ts', 'medialist_7_hls.m3u8', 'seg_7_0_hls.ts']) {
      expect(delivery.get(file)).toMatchObject({ status: 201, text: '' });
    }
  });

  it.each([
    'llhls.m3u8',
    'playlist.m3u8',
    'playlist.m3u8?format=fmp4',
    'chunklist_0_video_k_llhls.m3u8',
    'seg_0_1_video_k_llhls.m4s',
    'thumb.jpg',
    'a.ts',
  ])('does not answer %s', (file) => {
    expect(delivery.request(file)).toBeNull();
    view.update(PLAYLISTS);
    expect(delivery.request(file)).toBeNull();
  });

  it('names media playlists by its own address when it is served at another address', () => {
    view.update(PLAYLISTS);
    expect(delivery.get('ts:playlist.m3u8', { base: '../../a/s/' }).text).toContain(
      '\n../../a/s/medialist_7_hls.m3u8?session=1_FakeKey1\n',
    );
  });

  it('writes the multivariant playlist under both of its names', () => {
    view.update(PLAYLISTS);
    const text = '#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-STREAM-INF:BANDWIDTH=1\nmedialist_7_hls.m3u8\n';
    expect(delivery.get('ts:playlist.m3u8')).toMatchObject({ status: 200, headers: ['Content-Type: application/vnd.apple.mpegurl'], text });
    expect(delivery.get('playlist.m3u8?format=ts')).toMatchObject({ status: 200, text });
  });

  it.each([
    ['?_HLS_rewind=NO', 'medialist_7_hls.m3u8?_HLS_rewind=NO'],
    ['?_HLS_rewind=YES', 'medialist_7_hls.m3u8'],
    ['?_HLS_rewind=no', 'medialist_7_hls.m3u8'],
  ])('copies a rewind other than the default: %s', (query, uri) => {
    view.update(PLAYLISTS);
    expect(delivery.get(`ts:playlist.m3u8${query}`).text.trimEnd().split('\n').at(-1)).toBe(uri);
  });

  it('writes the media playlist, before and after the first segments', () => {
    view.update(PLAYLISTS);
    const head = '#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:4\n';
    const [patient, gone, waits] = [1, 2, 3].map(() => delivery.request('medialist_7_hls.m3u8'));
    gone?.abort();
    delivery.context.advance(10_000);
    expect([patient?.response, gone?.response]).toMatchObject([{ status: 200, text: `${head}#EXT-X-MEDIA-SEQUENCE:0\n` }, null]);
    expect(waits?.response).toMatchObject({ status: 200 });
    append(0);
    append(1, { duration: 4.0004 });
    append(2, { discontinuity: true, discontinuities: 1 });
    expect(delivery.get('medialist_7_hls.m3u8').text).toBe(
      `${head}#EXT-X-MEDIA-SEQUENCE:1\n` +
        `${serializeProgramDateTime(WALL + 4000)}#EXTINF:4.000,\nseg_7_1_hls.ts\n` +
        `#EXT-X-DISCONTINUITY\n${serializeProgramDateTime(WALL + 8000)}#EXTINF:4.000,\nseg_7_2_hls.ts\n`,
    );
  });

  it('holds requests for a media playlist until it has a segment, or the stream has an end', () => {
    view.update(PLAYLISTS);
    const first = delivery.request('medialist_7_hls.m3u8');
    delivery.context.advance(9000);
    expect(first?.response).toBeNull();
    append(0);
    expect(first?.response?.text).toContain('seg_7_0_hls.ts');
    open();
    view.update(PLAYLISTS);
    const [concluded] = [delivery.request('medialist_7_hls.m3u8')];
    view.update({ type: 'conclude' } satisfies HlsUpdate);
    expect(concluded?.response?.text.endsWith('#EXT-X-ENDLIST\n')).toBe(true);
    open();
    view.update(PLAYLISTS);
    const [closed, other] = [delivery.request('medialist_7_hls.m3u8'), delivery.request('medialist_8_hls.m3u8')];
    expect(other?.response).toMatchObject({ status: 404 });
    view.close();
    expect(closed?.response).toMatchObject({ status: 404 });
  });

  it('ends the playlists when the stream is concluded', () => {
    view.update(PLAYLISTS);
    append(0);
    expect(delivery.get('medialist_7_hls.m3u8').text).not.toContain('ENDLIST');
    view.update({ type: 'conclude' } satisfies HlsUpdate);
    expect(delivery.get('medialist_7_hls.m3u8').text.endsWith('#EXT-X-ENDLIST\n')).toBe(true);
  });

  it.each([
    ['ts:none.m3u8', 404],
    ['none.m3u8?format=ts', 404],
    ['medialist_8_hls.m3u8', 404],
    ['medialist_x_hls.m3u8', 400],
    ['chunklist_hls.m3u8', 400],
    ['seg_8_0_hls.ts', 404],
    ['seg_7_99_hls.ts', 404],
    ['seg_7_hls.ts', 400],
    ['seg_7_-1_hls.ts', 400],
    ['seg_7_99999999999999999999_hls.ts', 400],
  ])('answers %s with %i', (file, status) => {
    view.update(PLAYLISTS);
    append(0);
    expect(delivery.get(file).status).toBe(status);
  });

  it('serves segments until they are dropped', () => {
    view.update(PLAYLISTS);
    for (let number = 0; number < 8; number++) append(number);
    expect(delivery.get('seg_7_2_hls.ts').status).toBe(404);
    expect(delivery.get('seg_7_3_hls.ts')).toMatchObject({ status: 200, headers: ['Content-Type: video/mp2t'] });
  });

  it('adds the configured Cache-Control', () => {
    open({ ...SETTINGS, cacheControl: { masterPlaylistMaxAge: 0, chunklistMaxAge: 1, segmentMaxAge: 60 } });
    view.update(PLAYLISTS);
    append(0);
    expect(delivery.get('ts:playlist.m3u8').headers).toContain('Cache-Control: no-cache, no-store');
    expect(delivery.get('medialist_7_hls.m3u8').headers).toContain('Cache-Control: max-age=1');
    expect(delivery.get('seg_7_0_hls.ts').headers).toContain('Cache-Control: max-age=60');
  });

  it('lists all segments when rewinding is on, and serves files of the DVR', () => {
    const dVR = { enable: true, tempStoragePath: '', maxDuration: 60, eventPlaylistType: true };
    open(hlsViewSettings({ segmentDuration: 4, segmentCount: 2, createDefaultPlaylist: true, dVR }));
    view.update(PLAYLISTS);
    for (let number = 0; number < 5; number++) append(number);
    view.update({ type: 'archive', variant: '7', number: 1, path: 'one.ts' } satisfies HlsUpdate);
    view.update({ type: 'retire', variant: '7', firstNumber: 1 } satisfies HlsUpdate);
    const numbers = (query: string): string[] =>
      [...delivery.get(`medialist_7_hls.m3u8${query}`).text.matchAll(/seg_7_(\d+)_/g)].map((match) => match[1]!);
    expect(numbers('')).toEqual(['1', '2', '3', '4']);
    expect(numbers('?_HLS_rewind=NO')).toEqual(['3', '4']);
    expect(delivery.get('medialist_7_hls.m3u8').text).toContain('#EXT-X-VERSION:3\n#EXT-X-PLAYLIST-TYPE:EVENT\n#EXT-X-TARGETDURATION:4\n');
    expect(delivery.get('medialist_7_hls.m3u8?_HLS_rewind=NO').text).not.toContain('EVENT');
    expect(delivery.get('seg_7_1_hls.ts')).toMatchObject({ status: 200, path: 'one.ts', headers: ['Content-Type: video/mp2t'] });
    expect(delivery.get('seg_7_0_hls.ts').status).toBe(404);
  });

  it('reads the default for rewinding from the configuration', () => {
    const defaultQueryString = { queries: [{ key: '_HLS_rewind', value: 'NO' }] };
    open(hlsViewSettings({ segmentDuration: 4, segmentCount: 2, createDefaultPlaylist: true, defaultQueryString }));
    view.update(PLAYLISTS);
    expect(delivery.get('ts:playlist.m3u8?_HLS_rewind=NO').text).not.toContain('?');
    expect(delivery.get('ts:playlist.m3u8?_HLS_rewind=YES').text).toContain('medialist_7_hls.m3u8?_HLS_rewind=YES\n');
  });

  it('counts and refuses no viewer in origin mode', () => {
    open(hlsViewSettings({ segmentDuration: 4, segmentCount: 2, createDefaultPlaylist: true, originMode: true }));
    view.update(PLAYLISTS);
    append(0);
    delivery.context.countViewer = () => {
      throw new Error('a viewer was counted');
    };
    expect(delivery.get('medialist_7_hls.m3u8', { agent: 'cdn' }).status).toBe(200);
    expect(delivery.get('seg_7_0_hls.ts', { agent: 'cdn' }).status).toBe(200);
    expect(delivery.context.readers).toBe(2);
  });

  it('counts clients that got a media playlist or a segment', () => {
    view.update(PLAYLISTS);
    append(0);
    delivery.get('ts:playlist.m3u8', { agent: 'vlc' });
    delivery.get('medialist_7_hls.m3u8', { agent: 'vlc' });
    delivery.get('seg_7_0_hls.ts', { address: '192.0.2.9' });
    delivery.get('seg_7_5_hls.ts', { agent: 'lost' });
    expect(delivery.context.viewers).toEqual([
      { address: '192.0.2.1', agent: 'vlc', ttlMs: 10_000 },
      { address: '192.0.2.9', agent: undefined, ttlMs: 10_000 },
    ]);
  });

  it('refuses media to a disconnected viewer', () => {
    view.update(PLAYLISTS);
    append(0);
    delivery.context.refusing = true;
    expect(delivery.get('ts:playlist.m3u8').status).toBe(200);
    expect(delivery.get('medialist_7_hls.m3u8').status).toBe(401);
    expect(delivery.get('seg_7_0_hls.ts').status).toBe(401);
  });

  it('gives viewers of a protected stream sessions, which later files require', () => {
    view.update(PLAYLISTS);
    append(0);
    append(1);
    const open = delivery.get('medialist_7_hls.m3u8').text;
    delivery.context.guarded = true;
    const [, session] = /^medialist_7_hls\.m3u8\?session=(\w+)$/m.exec(delivery.get('ts:playlist.m3u8').text) ?? [];
    const rewinding = delivery.get('ts:playlist.m3u8?_HLS_rewind=NO').text;
    expect(rewinding).toMatch(/^medialist_7_hls\.m3u8\?session=[\w-]+&_HLS_rewind=NO$/m);
    const list = delivery.get(`medialist_7_hls.m3u8?session=${session}`);
    expect(list.status).toBe(200);
    expect(list.text).toBe(open.replaceAll('_hls.ts\n', `_hls.ts?session=${session}\n`));
    expect(delivery.get(`seg_7_1_hls.ts?session=${session}`).status).toBe(200);
    for (const query of ['', '?session=', '?session=1_Forged1']) {
      expect(delivery.get(`medialist_7_hls.m3u8${query}`).status).toBe(401);
      expect(delivery.get(`seg_7_1_hls.ts${query}`).status).toBe(401);
    }
    delivery.context.full = true;
    expect(delivery.get('ts:playlist.m3u8').status).toBe(429);
  });

  it('gives a session to a viewer that a control server sent to an open stream, and refuses the session after its end', () => {
    view.update(PLAYLISTS);
    append(0);
    append(1);
    const [, session] = /medialist_7_hls\.m3u8\?session=(\w+)$/m.exec(delivery.get('ts:playlist.m3u8', { base: '' }).text) ?? [];
    expect(delivery.get(`medialist_7_hls.m3u8?session=${session}`).text).toContain(`_hls.ts?session=${session}\n`);
    for (const file of ['medialist_7_hls.m3u8', 'seg_7_1_hls.ts']) {
      expect([delivery.get(`${file}?session=${session}`).status, delivery.get(`${file}?session=1_Ended1`).status]).toEqual([200, 401]);
      expect(delivery.get(file).status).toBe(200);
    }
    delivery.context.full = true;
    expect(delivery.get('ts:playlist.m3u8', { base: '' }).status).toBe(429);
  });

  it('answers 404 for removed variants, and ignores segments of unknown variants', () => {
    view.update(PLAYLISTS);
    append(0);
    view.update({ type: 'playlists', playlists: [], variants: [] } satisfies HlsUpdate);
    append(1);
    expect(delivery.get('medialist_7_hls.m3u8').status).toBe(404);
    expect(delivery.get('seg_7_0_hls.ts').status).toBe(404);
  });

  it('answers 404 once it is closed', () => {
    view.update(PLAYLISTS);
    view.close();
    expect(delivery.get('ts:playlist.m3u8').status).toBe(404);
    expect(delivery.get('medialist_7_hls.m3u8').status).toBe(404);
  });
});
