import { describe, expect, it } from 'vitest';
import { FakeEgress } from '../../../test/fakes/fake-egress.ts';
import { FakeStream } from '../../../test/fakes/fake-stream.ts';
import { audioTrack, videoTrack } from '../../../test/fakes/synthetic-media.ts';
import type { Packet } from '../../media/packet.ts';
import type { Track } from '../../media/track.ts';
import { ThumbnailPublisher } from './thumbnail-publisher.ts';
import { ThumbnailView } from './thumbnail-view.ts';

const VIDEO = videoTrack({ id: 0 });
const JPEG = videoTrack({ id: 1, variantName: 'jpeg', codec: 'JPEG', config: null });
const SECOND_JPEG = videoTrack({ id: 2, variantName: 'large', codec: 'JPEG', config: null });
const WEBP = videoTrack({ id: 3, variantName: 'webp', codec: 'WEBP', config: null });
const REASON = { code: 'peer-left', detail: 'bye' } as const;

function image(track: Track, text: string): Packet {
  return { track, pts: 0, dts: 0, duration: 90_000, keyframe: true, data: Buffer.from(text) };
}

function setUp(tracks: readonly Track[] | null = [VIDEO, audioTrack({ id: 9 }), JPEG, SECOND_JPEG, WEBP]) {
  const egress = new FakeEgress((settings, context) => new ThumbnailView(settings, context));
  const source = new FakeStream();
  const crossDomains = { urls: ['*'], headers: [] };
  const stream = new ThumbnailPublisher(egress).attach(source, { crossDomains });
  if (tracks !== null) stream.onTracks(tracks);
  return { egress, source, stream };
}

describe('thumbnails', () => {
  it('are the newest image of the first image encode of their kind', () => {
    const { egress, stream } = setUp();
    stream.onPacket(image(JPEG, 'first'));
    stream.onPacket(image(JPEG, 'second'));
    stream.onPacket(image(SECOND_JPEG, 'large'));
    stream.onPacket(image(WEBP, 'web'));
    stream.onPacket(image(VIDEO, 'moving'));
    expect(egress.get('thumb.jpg')).toMatchObject({
      status: 200,
      headers: ['Content-Type: image/jpeg', 'Cache-Control: no-cache, no-store'],
      text: 'second',
    });
    expect(egress.get('thumb.webp?x=1')).toMatchObject({ status: 200, text: 'web' });
    expect(egress.get('thumb.webp').headers).toContain('Content-Type: image/webp');
    expect(egress.outlet.request.crossDomains).toEqual({ urls: ['*'], headers: [] });
  });

  it('take memory for one image of each kind', () => {
    const { egress, stream } = setUp();
    for (let index = 0; index < 100; index += 1) stream.onPacket(image(JPEG, `frame ${index % 10}`));
    stream.onPacket(image(WEBP, 'web'));
    expect(egress.outlet.storedBytes).toBe('frame 9'.length + 'web'.length);
    stream.onTracks([VIDEO, WEBP]);
    expect(egress.outlet.storedBytes).toBe('web'.length);
    expect(egress.get('thumb.jpg').status).toBe(404);
  });

  it('stay when the tracks change otherwise', () => {
    const { egress, stream } = setUp();
    stream.onPacket(image(JPEG, 'old'));
    stream.onTracks([VIDEO, { ...JPEG, width: 100 }]);
    expect(egress.get('thumb.jpg').text).toBe('old');
  });

  it('are refused with the reason', () => {
    const { egress, stream } = setUp(null);
    expect(egress.get('thumb.jpg')).toMatchObject({ status: 404, text: 'The stream has not started' });
    stream.onTracks([VIDEO, JPEG]);
    expect(egress.get('thumb.png')).toMatchObject({
      status: 404,
      text: 'There is no thumbnail image: the output profile has no image encode for png',
    });
  });

  it.each(['thumb.gif', 'thumb', 'thumb.jpg.jpg', 'xthumb.jpg', 'llhls.m3u8'])('are not %s', (file) => {
    expect(setUp().egress.request(file)).toBeNull();
  });

  it('are waited for, five seconds long', () => {
    const { egress, stream } = setUp();
    const early = egress.request('thumb.jpg');
    const left = egress.request('thumb.jpg');
    const late = egress.request('thumb.webp');
    left?.abort();
    egress.context.advance(4999);
    expect([early?.response, late?.response]).toEqual([null, null]);
    stream.onPacket(image(JPEG, 'now'));
    expect(early?.response).toMatchObject({ status: 200, text: 'now' });
    egress.context.advance(1);
    expect(late?.response).toMatchObject({ status: 404, text: 'There is no thumbnail image' });
    expect(egress.context.timers).toBe(0);
  });

  it('are refused at once to those beyond a thousand that wait', () => {
    const { egress } = setUp();
    for (let count = 0; count < 1000; count += 1) egress.request('thumb.jpg');
    expect(egress.get('thumb.jpg')).toMatchObject({ status: 503 });
  });

  it('are known to a thread that starts late', () => {
    const { egress, stream } = setUp();
    stream.onPacket(image(JPEG, 'now'));
    const { snapshot } = egress.outlet.request;
    const late = new ThumbnailView(null, egress.context);
    for (const update of snapshot()) late.update(update);
    expect(snapshot()).toEqual([{ type: 'kinds', kinds: ['jpg', 'webp'] }, expect.objectContaining({ type: 'image', kind: 'jpg' })]);
  });

  it('end with their stream, answering whoever waits, twice if need be', () => {
    const { egress, stream } = setUp();
    const waiting = egress.request('thumb.jpg');
    stream.close(REASON);
    stream.close(REASON);
    expect(waiting?.response?.status).toBe(404);
    expect(egress.outlet.storedBytes).toBe(0);
    stream.onTracks([JPEG]);
    stream.onPacket(image(JPEG, 'late'));
  });

  it('count bytes but no viewers', () => {
    const { egress, source } = setUp();
    egress.outlet.request.onBytesSent(1234);
    expect([source.bytes, source.viewers, egress.outlet.request.openSession]).toEqual([1234, 0, null]);
  });
});
