/** Captions inside of the video, as playlists of both kinds declare them. */
import { describe, expect, it } from 'vitest';
import { FakeDelivery } from '../../../../test/fakes/fake-delivery.ts';
import { FakeStream } from '../../../../test/fakes/fake-stream.ts';
import { audioPackets, audioTrack, constantFrames, interleave, videoPackets, videoTrack } from '../../../../test/fakes/synthetic-media.ts';
import { captionUnit, FIELD_1, FIELD_2, PACKET_START, type Triplet } from '../../../../test/support/captions.ts';
import { LlhlsSimulation } from '../../../../test/validator/llhls-simulation.ts';
import { insertBeforeSlices } from '../../../codecs/nal/sei-writer.ts';
import { VideoCodec } from '../../../media/codec.ts';
import type { Packet } from '../../../media/packet.ts';
import type { VideoTrack } from '../../../media/track.ts';
import { HlsView } from '../view/ts/hls-view.ts';
import type { HlsViewSettings } from '../wire/view-settings.ts';
import { CaptionGroups, CaptionWatch } from './caption-watch.ts';
import { HlsPublisher } from './ts/hls-publisher.ts';

const video = videoTrack();
const audio = audioTrack();
const SLICE = Uint8Array.of(0, 0, 0, 3, 0x65, 1, 2);
const CC1: Triplet = [FIELD_1, 0x14, 0x20];
const CC3: Triplet = [FIELD_2, 0x15, 0x20];

/** Frames, some with captions, as `captioned` says. */
function frames(seconds: number, captioned: (packet: Packet, index: number) => readonly Triplet[] | null, track = video, from = 0) {
  return videoPackets(track, constantFrames({ rate: 30, gop: 60, seconds, from })).map((packet, index) => {
    const triplets = captioned(packet, index);
    const data = triplets === null ? SLICE : insertBeforeSlices('H264', SLICE, [captionUnit('H264', triplets)]);
    return { ...packet, data };
  });
}

const captionLines = (text: string): string[] => text.split('\n').filter((line) => /VERSION|CLOSED-CAPTIONS/.test(line));
const media = (channel: string, group = 'cc'): string =>
  `#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="${group}",NAME="${channel}",DEFAULT=NO,AUTOSELECT=YES,INSTREAM-ID="${channel}"`;

describe('captions in LL-HLS', () => {
  const master = (packets: readonly Packet[], tracks: readonly VideoTrack[] = [video]): string => {
    const simulation = new LlhlsSimulation([...tracks, audio]);
    simulation.run(interleave([...packets], audioPackets(audio, 40)));
    expect(simulation.problems).toEqual([]);
    return simulation.delivery.get('llhls.m3u8').text;
  };

  it('are declared with their channels', () => {
    const lines = captionLines(master(frames(20, (_, index) => (index === 40 ? [CC3, CC1] : null))));
    expect(lines).toEqual(['#EXT-X-VERSION:6', media('CC1'), media('CC3'), expect.stringMatching(/,CLOSED-CAPTIONS="cc"$/)]);
  });

  it('need a later version when they are services', () => {
    const [version, line] = captionLines(
      master(
        frames(20, (_, index) =>
          index === 40
            ? [
                [PACKET_START, 0x01, 0x21],
                [2, 0x41, 0],
              ]
            : null,
        ),
      ),
    );
    expect([version, line]).toEqual(['#EXT-X-VERSION:6', undefined]);
    const whole: readonly Triplet[] = [
      [PACKET_START, 0x02, 0x21],
      [2, 0x41, 0],
    ];
    expect(captionLines(master(frames(20, (_, index) => (index === 40 ? whole : null)))).slice(0, 2)).toEqual([
      '#EXT-X-VERSION:7',
      media('SERVICE1'),
    ]);
  });

  it('are not mentioned in playlists before the first caption, because captions may start later', () => {
    expect(master(frames(20, () => null))).not.toContain('CLOSED-CAPTIONS');
  });

  it('that start later are found at keyframes', () => {
    const late = (keyframe: boolean) => frames(40, (packet) => (packet.dts > 15 * 90_000 && packet.keyframe === keyframe ? [CC1] : null));
    expect(captionLines(master(late(true)))).toContain(media('CC1'));
    expect(captionLines(master(late(false)))).not.toContain(media('CC1'));
  });
});

it('captions in HLS over MPEG-TS are declared for their variants', () => {
  const delivery = new FakeDelivery((given, context) => new HlsView(given as HlsViewSettings, context));
  const stream = new FakeStream();
  const low = videoTrack({ id: 2, variantName: 'low' });
  const rendition = { name: 'r', audioVariantName: 'audio', videoIndexHint: -1, audioIndexHint: -1 };
  const options = { webrtcAutoAbr: true, hlsChunklistPathDepth: -1, enableTsPackaging: true, enableSubtitles: true };
  const renditions = [
    { ...rendition, videoVariantName: 'low' },
    { ...rendition, videoVariantName: 'video' },
  ];
  stream.playlists = [{ name: 'playlist', fileName: 'playlist', options, renditions }];
  stream.tracks = [video, audio, low];
  const hls = new HlsPublisher(delivery).attach(stream, { segmentDuration: 2, segmentCount: 4, createDefaultPlaylist: true });
  hls.onTracks(stream.tracks);
  for (const packet of [...frames(3, () => null, low), ...frames(3, (_, index) => (index > 70 ? [CC1] : null))]) hls.onPacket(packet);
  const [version, line, inf, ...more] = captionLines(delivery.get('ts:playlist.m3u8').text);
  expect([version, line, more]).toEqual(['#EXT-X-VERSION:3', media('CC1'), []]);
  expect(inf).toMatch(/,CLOSED-CAPTIONS="cc"$/);
});

it('captions are searched in tracks that support them, and forgotten with their track', () => {
  const watch = new CaptionWatch();
  const [first] = frames(1, () => [CC1]);
  expect(watch.look({ ...first!, track: videoTrack({ codec: VideoCodec.VP9 }) })).toBe(false);
  expect([watch.look(first!), watch.of(video)]).toEqual([true, ['CC1']]);
  watch.keep([audio]);
  expect(watch.of(video)).toEqual([]);
});

it('variants with the same captions share a group, variants with other captions get another group', () => {
  const groups = new CaptionGroups();
  const ids = [['CC1'], ['CC1', 'CC3'], ['CC1'], []].map((channels) => groups.idOf(channels));
  expect(ids).toEqual(['cc', 'cc_2', 'cc', null]);
  expect(groups.text).toBe([media('CC1'), media('CC1', 'cc_2'), media('CC3', 'cc_2'), ''].join('\n'));
});
