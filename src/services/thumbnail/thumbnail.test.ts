import { describe, expect, it } from 'vitest';
import { FakeDelivery } from '../../../test/fakes/fake-delivery.ts';
import { FakeStream } from '../../../test/fakes/fake-stream.ts';
import { audioTrack, videoTrack } from '../../../test/fakes/synthetic-media.ts';
import type { Packet } from '../../media/packet.ts';
import type { Track } from '../../media/track.ts';
import { ThumbnailPublisher } from './thumbnail-publisher.ts';
import { ThumbnailView } from './view/thumbnail-view.ts';

const VIDEO = videoTrack({ id: 0 });
const JPEG = videoTrack({ id: 1, variantName: 'jpeg', codec: 'JPEG', config: null });
const SECOND_JPEG = videoTrack({ id: 2, variantName: 'large', codec: 'JPEG', config: null });
const WEBP = videoTrack({ id: 3, variantName: 'webp', codec: 'WEBP', config: null });
const REASON = { code: 'peer-left', detail: 'bye' } as const;

function image(track: Track, text: string): Packet {
  return { track, pts: 0, dts: 0, duration: 90_000, keyframe: true, data: Buffer.from(text) };
}

function setUp(tracks: readonly Track[] | null = [VIDEO, audioTrack({ id: 9 }), JPEG, SECOND_JPEG, WEBP]) {
  const delivery = new FakeDelivery((settings, context) => new ThumbnailView(settings, context));
  const source = new FakeStream();
  const crossDomains = { urls: ['*'], headers: [] };
  const stream = new ThumbnailPublisher(delivery).attach(source, { crossDomains });
  if (tracks !== null) stream.onTracks(tracks);
  return { delivery, source, stream };
}

describe('thumbnails', () => {
  it('are the newest image of the first image encode of their kind', () => {
    const { delivery, stream } = setUp();
    stream.onPacket(image(JPEG, 'first'));
    stream.onPacket(image(JPEG, 'second'));
    stream.onPacket(image(SECOND_JPEG, 'large'));
    stream.onPacket(image(WEBP, 'web'));
    stream.onPacket(image(VIDEO, 'moving'));
    expect(delivery.get('thumb.jpg')).toMatchObject({
      status: 200,
      headers: ['Content-Type: image/jpeg', 'Cache-Control: no-cache, no-store'],
      text: 'second',
    });
    expect(delivery.get('thumb.webp?x=1')).toMatchObject({ status: 200, text: 'web' });
    expect(delivery.get('thumb.webp').headers).toContain('Content-Type: image/webp');
    expect(delivery.feed.request.crossDomains).toEqual({ urls: ['*'], headers: [] });
  });

  it('hold one image of each kind in memory', () => {
    const { delivery, stream } = setUp();
    for (let index = 0; index < 100; index += 1) stream.onPacket(image(JPEG, `frame ${index % 10}`));
    stream.onPacket(image(WEBP, 'web'));
    expect(delivery.feed.storedBytes).toBe('frame 9'.length + 'web'.length);
    stream.onTracks([VIDEO, WEBP]);
    expect(delivery.feed.storedBytes).toBe('web'.length);
    expect(delivery.get('thumb.jpg').status).toBe(404);
  });

  it('stay when the tracks change otherwise', () => {
    const { delivery, stream } = setUp();
    stream.onPacket(image(JPEG, 'old'));
    stream.onTracks([VIDEO, { ...JPEG, width: 100 }]);
    expect(delivery.get('thumb.jpg').text).toBe('old');
  });

  it('are refused with the reason', () => {
    const { delivery, stream } = setUp(null);
    expect(delivery.get('thumb.jpg')).toMatchObject({ status: 404, text: 'The stream has not started' });
    stream.onTracks([VIDEO, JPEG]);
    expect(delivery.get('thumb.png')).toMatchObject({
      status: 404,
      text: 'There is no thumbnail image: the output profile has no image encode for png',
    });
  });

  it.each(['thumb.gif', 'thumb', 'thumb.jpg.jpg', 'xthumb.jpg', 'llhls.m3u8'])('are not served for the file name %s', (file) => {
    expect(setUp().delivery.request(file)).toBeNull();
  });

  it('are waited for, five seconds long', () => {
    const { delivery, stream } = setUp();
    const early = delivery.request('thumb.jpg');
    const left = delivery.request('thumb.jpg');
    const late = delivery.request('thumb.webp');
    left?.abort();
    delivery.context.advance(4999);
    expect([early?.response, late?.response]).toEqual([null, null]);
    stream.onPacket(image(JPEG, 'now'));
    expect(early?.response).toMatchObject({ status: 200, text: 'now' });
    delivery.context.advance(1);
    expect(late?.response).toMatchObject({ status: 404, text: 'There is no thumbnail image' });
    expect(delivery.context.timers).toBe(0);
  });

  it('are refused at once beyond a thousand waiting requests', () => {
    const { delivery } = setUp();
    for (let count = 0; count < 1000; count += 1) delivery.request('thumb.jpg');
    expect(delivery.get('thumb.jpg')).toMatchObject({ status: 503 });
  });

  it('are known to a thread that starts late', () => {
    const { delivery, stream } = setUp();
    stream.onPacket(image(JPEG, 'now'));
    const { snapshot } = delivery.feed.request;
    const late = new ThumbnailView(null, delivery.context);
    for (const update of snapshot()) late.update(update);
    expect(snapshot()).toEqual([{ type: 'kinds', kinds: ['jpg', 'webp'] }, expect.objectContaining({ type: 'image', kind: 'jpg' })]);
  });

  it('end with their stream and answer 404 to held requests, even when closed twice', () => {
    const { delivery, stream } = setUp();
    const waiting = delivery.request('thumb.jpg');
    stream.close(REASON);
    stream.close(REASON);
    expect(waiting?.response?.status).toBe(404);
    expect(delivery.feed.storedBytes).toBe(0);
    stream.onTracks([JPEG]);
    stream.onPacket(image(JPEG, 'late'));
  });

  it('count bytes, and count each recipient of an image as a viewer', () => {
    const { delivery, source, stream } = setUp();
    delivery.feed.request.onBytesSent(1234);
    const session = delivery.feed.request.openSession?.({ id: 'a', onTerminate: () => undefined });
    expect([source.bytes, source.viewers]).toEqual([1234, 1]);
    session?.close();
    expect(source.viewers).toBe(0);
    delivery.get('thumb.png');
    const waiting = delivery.request('thumb.jpg');
    expect(delivery.context.viewers).toEqual([]);
    stream.onPacket(image(JPEG, 'now'));
    expect([waiting?.response?.status, delivery.get('thumb.jpg').status]).toEqual([200, 200]);
    expect(delivery.context.viewers.map(({ ttlMs }) => ttlMs)).toEqual([10_000, 10_000]);
  });

  it('are refused to a disconnected viewer', () => {
    const { delivery, stream } = setUp();
    stream.onPacket(image(JPEG, 'now'));
    delivery.context.refusing = true;
    expect(delivery.get('thumb.jpg')).toMatchObject({ status: 401, text: expect.stringContaining('terminated') });
  });
});
