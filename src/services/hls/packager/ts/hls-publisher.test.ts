import { describe, expect, it } from 'vitest';
import { FakeDelivery } from '../../../../../test/fakes/fake-delivery.ts';
import { audioTrack, dataTrack, videoTrack } from '../../../../../test/fakes/synthetic-media.ts';
import { ASC, AVCC } from '../../../../../test/fixtures/bitstreams.ts';
import type { Track } from '../../../../media/track.ts';
import { HlsView } from '../../view/ts/hls-view.ts';
import type { HlsSettings } from '../../wire/settings.ts';
import type { HlsViewSettings } from '../../wire/view-settings.ts';
import { HlsPublisher } from './hls-publisher.ts';

const SETTINGS: HlsSettings = { segmentDuration: 2, segmentCount: 3, createDefaultPlaylist: true, crossDomains: undefined };
const TRACKS: readonly Track[] = [
  videoTrack({ id: 0, variantName: 'v', config: AVCC.main1080 }),
  audioTrack({ id: 1, variantName: 'a', config: ASC.plainStereo48 }),
];

describe('HlsPublisher.defaultPlaylist', () => {
  const publisher = new HlsPublisher(new FakeDelivery((given, context) => new HlsView(given as HlsViewSettings, context)));

  it('has the first supported video and audio track', () => {
    const [video, audio] = TRACKS as readonly [Track, Track];
    const vp8 = { ...video, codec: 'VP8', config: null, id: 2, variantName: 'vp8' } as Track;
    expect(publisher.defaultPlaylist([vp8, audio, video], SETTINGS)).toMatchObject({
      name: 'hls_default',
      fileName: 'playlist',
      options: { enableTsPackaging: true },
      renditions: [{ name: 'default', videoVariantName: 'v', audioVariantName: 'a', videoIndexHint: -1, audioIndexHint: -1 }],
    });
    expect(publisher.defaultPlaylist([audio], SETTINGS)).toMatchObject({ renditions: [{ videoVariantName: '', audioVariantName: 'a' }] });
  });

  it('is null without a track to serve or when it is switched off', () => {
    const broken = { ...TRACKS[0]!, config: Uint8Array.of(1, 2) } as Track;
    expect(publisher.defaultPlaylist([dataTrack(1), broken], SETTINGS)).toBeNull();
    expect(publisher.defaultPlaylist(TRACKS, { ...SETTINGS, createDefaultPlaylist: false })).toBeNull();
  });
});
