import { afterEach, describe, expect, it } from 'vitest';
import { FakeWork } from '../../../test/fakes/fake-work.ts';
import { LEFT, ladder, named, seconds, setUp, source, tearDown, told } from '../../../test/fakes/multiplex-core.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { audioPacket, audioTrack, videoTrack } from '../../../test/fakes/source.ts';
import { AVCC } from '../../../test/fixtures/bitstreams.ts';
import { StreamLineage } from '../../core/stream-lineage.ts';
import { Urgency } from '../../core/urgency.ts';
import type { Packet } from '../../media/packet.ts';
import { readDefinition } from './channel-definition.ts';
import { MultiplexChannel } from './multiplex-channel.ts';

afterEach(tearDown);

describe('multiplex channels', () => {
  it('wait for all their sources, play, and stop', async () => {
    const { app, of, channel, encoder, stream } = await setUp();
    const high = encoder('high');
    await high.frame();
    await of(app).save(ladder('ch', 'high', 'low'));
    const ch = channel('ch');
    expect([ch.state, ch.pullingMessage]).toEqual(['Pulling', 'Multiplex Channel : #default#app/ch: Wait for stream low']);
    expect(app.stream('ch')).toBeUndefined();
    const low = encoder('low');
    await low.frame();
    of(app).look();
    expect([ch.state, ch.pullingMessage, ch.onAir]).toEqual(['Playing', '', false]);
    await high.frame();
    await low.frame();
    expect(app.stream('ch')?.sourceType).toBe('Multiplex');
    expect(named(stream('app/ch'))).toEqual(['0 high_video', '1 low_video']);
    expect(stream('app/ch').playlists).toEqual(['abr: high,low']);
    await of(app).remove('ch');
    expect([ch.state, app.stream('ch'), of(app).get('ch')]).toEqual(['Stopped', undefined, undefined]);
    expect(stream('app/high').closed).toBe(false);
  });

  it('wait while another node makes them, and stop when another node takes over', async () => {
    const work = new FakeWork('others');
    const { app, of, channel, encoder } = await setUp({ work });
    const high = encoder('high');
    await high.frame();
    await of(app).save(ladder('ch', 'high'));
    const ch = channel('ch');
    const elsewhere = ['Pulling', 'Multiplex Channel : #default#app/ch: another node makes it'];
    expect([[ch.state, ch.pullingMessage], [...work.asked]]).toEqual([elsewhere, ['multiplex/default/app/ch']]);
    work.state = 'ours';
    of(app).look();
    await high.frame();
    expect([ch.onAir, app.stream('ch')?.name]).toEqual([true, 'ch']);
    work.state = 'others';
    of(app).look();
    expect([ch.onAir, [ch.state, ch.pullingMessage], app.stream('ch')]).toEqual([false, elsewhere, undefined]);
  });

  it('are claimed only by a node that has all of their sources', async () => {
    const work = new FakeWork();
    const { app, of, channel, encoder } = await setUp({ work });
    const asks = (): boolean => {
      work.asked.clear();
      of(app).look();
      return work.asked.has('multiplex/default/app/ch');
    };
    const high = encoder('high');
    await high.frame();
    await of(app).save(ladder('ch', 'high', 'low'));
    expect([asks(), channel('ch').pullingMessage]).toEqual([false, 'Multiplex Channel : #default#app/ch: Wait for stream low']);
    const low = encoder('low');
    await low.frame();
    expect([asks(), channel('ch').state]).toEqual([true, 'Playing']);
    await high.frame();
    low.ingest.close(LEFT);
    expect([channel('ch').onAir, asks()]).toEqual([true, true]);
    high.ingest.close(LEFT);
    expect([channel('ch').onAir, asks()]).toEqual([false, false]);
  });

  it('have the state None before their first look for sources', async () => {
    const { app, orchestrator } = await setUp();
    const find = () => orchestrator.application('default', 'app')?.outbound('x');
    const options = {
      definition: ladder('ch', 'x'),
      application: app,
      find,
      loop: () => null,
      lineage: new StreamLineage(),
      logger: new RecordingLogger(),
    };
    expect(new MultiplexChannel(options).state).toBe('None');
  });

  it('do not start with a source that is made of them, and drop such a source later', async () => {
    const { app, of, channel, encoder, lineage, logger } = await setUp();
    const at = (stream: string) => ({ vhost: 'default', app: 'app', stream });
    const high = encoder('high');
    const low = encoder('low');
    await high.frame();
    await low.frame();
    const other = lineage.add(at('low'), at('ch'));
    await of(app).save(ladder('ch', 'high', 'low'));
    const ch = channel('ch');
    const refused = 'Multiplex Channel : #default#app/ch: Failed to mirror stream stream://default/app/low (err : 508)';
    expect([ch.state, ch.pullingMessage]).toEqual(['Pulling', refused]);
    expect(told(logger)).toContain('default/app/ch would be made of itself: default/app/ch <- default/app/low <- default/app/ch');
    other();
    of(app).look();
    await high.frame();
    expect([ch.state, ch.onAir]).toEqual(['Playing', true]);
    expect(lineage.loopOf(at('low'), at('ch'))).not.toBeNull();
    low.ingest.close(LEFT);
    expect(lineage.loopOf(at('low'), at('ch'))).toBeNull();
    const again = encoder('low');
    await again.frame();
    const back = lineage.add(at('low'), at('ch'));
    of(app).look();
    expect([ch.state, ch.pullingMessage, ch.onAir]).toEqual(['Pulling', refused, true]);
    back();
    of(app).look();
    expect(ch.state).toBe('Playing');
  });

  it('take only the mapped tracks, with their new names and attributes', async () => {
    const { app, of, encoder, stream } = await setUp();
    const one = encoder('one', [videoTrack({ language: 'de' }), audioTrack({ language: 'fr', characteristics: 'public.easy-to-read' })]);
    await one.frame();
    const trackMap = [{ sourceTrackName: 'audio', newTrackName: 'sound', bitrateConf: 96_000 }];
    const definition = { outputStream: { name: 'ch' }, sourceStreams: [{ ...source('one'), trackMap }] };
    await of(app).save(readDefinition(definition));
    await one.frame({ audio: true });
    const [track] = stream('app/ch').tracks;
    expect(track).toMatchObject({
      type: 'audio',
      variantName: 'sound',
      bitrateConf: 96_000,
      language: 'fr',
      characteristics: 'public.easy-to-read',
    });
    expect(named(stream('app/ch'))).toEqual(['0 sound']);
    expect(stream('app/ch').packets.every((packet) => packet.track.type === 'audio')).toBe(true);
  });

  it('give all tracks with one name the new name, in order', async () => {
    const { app, of, encoder, stream } = await setUp();
    const one = encoder('one', [videoTrack(), audioTrack({ id: 1, language: 'de' }), audioTrack({ id: 2, language: 'en' })]);
    await one.frame();
    await of(app).save(
      readDefinition({
        outputStream: { name: 'ch' },
        sourceStreams: [source('one', 'v', [{ sourceTrackName: 'audio', newTrackName: 'a' }])],
      }),
    );
    await one.frame();
    expect(named(stream('app/ch'))).toEqual(['0 v', '1 a', '2 a']);
    expect(stream('app/ch').tracks.map(({ language }) => language)).toEqual(['', 'de', 'en', '']);
  });

  it('apply the output profiles of the application when BypassTranscoder is off', async () => {
    const { app, of, encoder, stream } = await setUp();
    const one = encoder('one');
    await one.frame();
    await of(app).save(readDefinition({ ...ladder('ch', 'one'), outputStream: { name: 'ch', bypassTranscoder: false } }));
    await one.frame();
    expect(named(stream('app/ch'))).toEqual(['0 video']);
    expect(stream('app/ch').playlists).toEqual([]);
  });

  it('duplicate a stream into an application of another virtual host', async () => {
    const { second, of, encoder, stream } = await setUp();
    const one = encoder('one');
    await one.frame();
    await of(second).save(ladder('copy', 'one'));
    await one.frame();
    expect(named(stream('second/copy'))).toEqual(['0 one_video']);
    one.ingest.close(LEFT);
    expect(of(second).get('copy')?.pullingMessage).toBe('Multiplex Channel : #other#second/copy: Wait for stream one');
  });

  it('begin each video track with a keyframe', async () => {
    const { app, of, encoder, stream } = await setUp();
    const [one, two] = [encoder('one'), encoder('two')];
    await one.frame();
    await two.frame();
    await of(app).save(ladder('ch', 'one', 'two'));
    await one.frame({ keyframe: false });
    await one.frame();
    for (let frame = 0; frame < 3; frame += 1) await two.frame({ keyframe: false });
    await one.frame({ keyframe: false });
    await two.frame();
    const { packets } = stream('app/ch');
    expect(packets.map(({ track, keyframe }) => `${track.variantName} ${keyframe}`)).toEqual([
      'one_video true',
      'one_video false',
      'two_video true',
    ]);
  });

  it('align sources that started at different times by the wall clock', async () => {
    const { app, of, clock, encoder, stream } = await setUp();
    const one = encoder('one');
    await one.run(17);
    const two = encoder('two');
    await two.frame();
    await of(app).save(ladder('ch', 'one', 'two'));
    clock.advance(100);
    await one.run(5, [two]);
    const { packets } = stream('app/ch');
    const times = (name: string): number[] => packets.filter(({ track }) => track.variantName === name).map(seconds);
    expect(times('one_video')).toHaveLength(5);
    for (const [index, time] of times('one_video').entries()) expect(times('two_video')[index]).toBeCloseTo(time + 0.1, 3);
  });

  it('continue with the tracks of the other sources when a source ends, and with its tracks when it returns', async () => {
    const { app, of, clock, channel, encoder, stream } = await setUp();
    const one = encoder('one');
    const two = encoder('two');
    await one.run(1, [two]);
    await of(app).save(ladder('ch', 'one', 'two'));
    await one.run(5, [two]);
    const served = stream('app/ch');
    two.ingest.close(LEFT);
    const ch = channel('ch');
    expect([ch.state, ch.pullingMessage, ch.onAir]).toEqual(['Pulling', 'Multiplex Channel : #default#app/ch: Wait for stream two', true]);
    await one.run(200);
    expect(served.packets.filter(({ track }) => track.variantName === 'one_video')).toHaveLength(205);
    expect(named(served)).toEqual(['0 one_video', '1 two_video']);

    const returned = encoder('two', [videoTrack({ config: AVCC.baseline360 })]);
    await one.run(1, [returned]);
    of(app).look();
    expect(ch.state).toBe('Playing');
    await one.run(3, [returned]);
    expect(served.closed).toBe(false);
    expect(stream('app/ch')).toBe(served);
    const twos = served.packets.filter(({ track }) => track.id === 1);
    expect(twos.map((packet) => Math.round(seconds(packet) * 10) / 10)).toEqual([0, 0.1, 0.2, 0.3, 0.4, 20.6, 20.7, 20.8]);
    expect(twos.at(-1)?.track).toMatchObject({ height: 360, variantName: 'two_video' });
    expect(
      served.packets
        .filter(({ track }) => track.id === 0)
        .map(seconds)
        .at(-1),
    ).toBeCloseTo(20.8, 3);
    clock.advance(0);
  });

  it('end with their last source, and restart when all sources are back', async () => {
    const { app, of, channel, encoder, stream } = await setUp();
    const one = encoder('one');
    await one.frame();
    await of(app).save(ladder('ch', 'one'));
    await one.frame();
    const before = stream('app/ch');
    one.ingest.close(LEFT);
    expect([before.closed, app.stream('ch'), channel('ch').state]).toEqual([true, undefined, 'Pulling']);
    const again = encoder('one');
    await again.frame();
    of(app).look();
    await again.frame();
    expect(stream('app/ch')).not.toBe(before);
    expect(named(stream('app/ch'))).toEqual(['0 one_video']);
  });

  it('keep their viewers without any source when the application has KeepStreamMs', async () => {
    const { app, of, channel, encoder, stream } = await setUp({ more: { sourceLoss: { keepStreamMs: 60_000 } } });
    const one = encoder('one');
    await one.run(1);
    await of(app).save(ladder('ch', 'one'));
    await one.run(5);
    const served = stream('app/ch');
    app.stream('one')?.terminate({ code: 'deleted', detail: 'deleted through the API' });
    expect([channel('ch').state, channel('ch').onAir, served.closed]).toEqual(['Pulling', false, false]);
    const again = encoder('one');
    await again.run(1);
    of(app).look();
    await again.run(5);
    expect([channel('ch').state, stream('app/ch') === served, served.closed]).toEqual(['Playing', true, false]);
    const times = served.packets.map(seconds);
    expect(times).toHaveLength(10);
    expect(times.every((time, index) => index === 0 || time > (times[index - 1] ?? time))).toBe(true);
  });

  it('keep timestamps increasing when the clock of a source jumps back', async () => {
    const { app, of, channel, encoder, stream, clock } = await setUp();
    const [one, two] = [encoder('one'), encoder('two')];
    await one.run(1, [two]);
    await of(app).save(ladder('ch', 'one', 'two'));
    await one.run(20, [two]);
    const outbound = app.outbound('two');
    if (outbound === undefined) throw new Error('no output stream');
    outbound.startedAt -= 1000;
    await two.frame({ keyframe: false });
    await one.run(20, [two]);
    const times = stream('app/ch').packets.filter(({ track }) => track.variantName === 'two_video');
    expect(times.every((packet, index) => index === 0 || seconds(packet) > seconds(times[index - 1] ?? packet))).toBe(true);
    // Ten frames overlap the present media.
    expect(times).toHaveLength(20 + 20 - 10 + 1);
    outbound.startedAt += 3000;
    await one.run(2, [two]);
    const last = stream('app/ch')
      .packets.filter(({ track }) => track.variantName === 'two_video')
      .slice(-3);
    expect(seconds(last[1] as Packet) - seconds(last[0] as Packet)).toBeCloseTo(3.1, 3);
    expect(channel('ch').onAir).toBe(true);
    clock.advance(0);
  });

  it('name a source that they cannot pull, and log the reason', async () => {
    const { app, of, channel, encoder, logger } = await setUp();
    await encoder('one').frame();
    const other = {
      outputStream: { name: 'ch' },
      sourceStreams: [{ ...source('one'), trackMap: [{ sourceTrackName: 'nope', newTrackName: 'v' }] }],
    };
    await of(app).save(readDefinition(other));
    expect(channel('ch').pullingMessage).toBe(
      'Multiplex Channel : #default#app/ch: Failed to mirror stream stream://default/app/one (err : 404)',
    );
    expect(told(logger)).toContain('the map of the source names none of its tracks');
    expect(app.outbound('one')?.tapped).toBe(false);
    const web = { outputStream: { name: 'web' }, sourceStreams: [{ ...source('one'), url: 'http://127.0.0.1/x' }] };
    await of(app).save(readDefinition(web));
    expect(channel('web').pullingMessage).toBe(
      'Multiplex Channel : #default#app/web: Failed to mirror stream http://127.0.0.1/x (err : 400)',
    );
  });

  it('stay on the air however long a source is away', async () => {
    const { app, of, channel, encoder, stream } = await setUp();
    const [one, two] = [encoder('one'), encoder('two')];
    await one.run(1, [two]);
    await of(app).save(ladder('ch', 'one', 'two'));
    await one.run(3, [two]);
    two.ingest.close(LEFT);
    for (let look = 0; look < 180; look += 1) {
      await one.run(5);
      of(app).look();
    }
    expect([channel('ch').onAir, channel('ch').pullingMessage]).toEqual([true, 'Multiplex Channel : #default#app/ch: Wait for stream two']);
    expect(stream('app/ch').packets.at(-1)?.pts).toBeGreaterThan(80 * 1000);
    expect(stream('app/ch').closed).toBe(false);
  });

  it('continue with a source that returned although another returned without its tracks, and log that once', async () => {
    const { app, of, channel, encoder, stream, logger } = await setUp();
    const [one, ...others] = ['one', 'two', 'three', 'four'].map((name) => encoder(name));
    if (one === undefined) throw new Error('no encoder');
    await one.run(1, others);
    await of(app).save(ladder('ch', 'one', 'two', 'three', 'four'));
    await one.run(3, others);
    for (const { ingest } of others) ingest.close(LEFT);
    const mute = encoder('two', [audioTrack({ id: 0 })]);
    mute.ingest.push({ ...audioPacket(0), trackId: 0 });
    const three = encoder('three');
    await one.run(1, [three]);
    of(app).look();
    const before = logger.lines.length;
    for (let look = 0; look < 10; look += 1) of(app).look();
    expect(logger.lines.slice(before)).toEqual([]);
    expect(
      told(logger)
        .split('\n')
        .filter((line) => line.includes('err : 404')),
    ).toEqual([
      'Multiplex Channel : #default#app/ch: Failed to mirror stream stream://default/app/two (err : 404): the map of the source names none of its tracks',
    ]);
    expect(channel('ch').pullingMessage).toContain('stream://default/app/two (err : 404)');
    await one.run(3, [three]);
    const names = stream('app/ch').packets.map(({ track }) => track.variantName);
    expect(names.filter((name) => name === 'three_video')).toHaveLength(6);
    // The rungs of absent sources stay, for their return.
    expect(named(stream('app/ch'))).toEqual(['0 one_video', '1 two_video', '2 three_video', '3 four_video']);
    expect([app.outbound('two')?.tapped, app.outbound('three')?.tapped]).toEqual([false, true]);
  });

  it('leave out missing tracks, and add them when they appear later', async () => {
    const { app, of, encoder, stream, logger } = await setUp();
    const one = encoder('one', [videoTrack()]);
    await one.frame();
    const map = [{ sourceTrackName: 'audio', newTrackName: 'sound' }];
    const playlists = [
      {
        name: 'p',
        fileName: 'p',
        renditions: [
          { name: 'r', video: 'v', audio: 'sound' },
          { name: 'mute', video: 'v' },
        ],
      },
    ];
    await of(app).save(readDefinition({ outputStream: { name: 'ch' }, sourceStreams: [source('one', 'v', map)], playlists }));
    await one.frame();
    expect([named(stream('app/ch')), stream('app/ch').playlists]).toEqual([['0 v'], ['p: mute']]);
    expect(told(logger)).toContain('no track named audio');
    one.ingest.setTracks([videoTrack(), audioTrack()]);
    await one.frame();
    expect([named(stream('app/ch')), stream('app/ch').playlists]).toEqual([['0 v', '2 sound'], ['p: r,mute']]);
  });

  it('do not count as viewers of their sources, and pass the demand of their own viewers on', async () => {
    const { app, of, encoder, stream } = await setUp();
    const one = encoder('one');
    await one.frame();
    await of(app).save(ladder('ch', 'one'));
    expect(one.ingest.urgency).toBe(Urgency.REAL_TIME);
    await one.frame();
    await one.frame();
    expect(one.ingest.urgency).toBe(Urgency.NONE);
    stream('app/ch').urgency = Urgency.LOW_LATENCY;
    expect(one.ingest.urgency).toBe(Urgency.LOW_LATENCY);
    expect(app.meter.totalSessions).toBe(0);
    expect(app.meter.ingests.multiplex).toBe(1);
    app.outbound('ch')?.requestKeyframe(0);
    expect(one.wanted).toEqual([0]);
    const before = one.watched;
    app.outbound('ch')?.wake();
    expect(one.watched).toBe(before + 1);
  });

  it('end after PacketSilenceTimeoutMs without packets, and restart with the next packet', async () => {
    const { app, of, channel, encoder } = await setUp({ providers: { packetSilenceTimeoutMs: 50 } });
    const one = encoder('one');
    await one.frame();
    await of(app).save(ladder('ch', 'one'));
    await one.frame();
    const clockOf = one;
    expect(app.stream('ch')).toBeDefined();
    await clockOf.run(1);
    await expect
      .poll(async () => {
        // The clock of the test stands still by itself.
        await Promise.resolve();
        return app.stream('ch') === undefined;
      })
      .toBe(true);
    expect(channel('ch').pullingMessage).toMatch(/^Multiplex Channel : #default#app\/ch: the stream was closed: no audio and no video/);
    of(app).look();
    expect([channel('ch').state, channel('ch').onAir]).toEqual(['Playing', false]);
    await one.frame();
    expect(app.stream('ch')).toBeDefined();
  });

  it('wait while another stream has their name', async () => {
    const { app, of, channel, encoder } = await setUp();
    const [one, squatter] = [encoder('one'), encoder('ch')];
    await one.frame();
    await squatter.frame();
    await of(app).save(ladder('ch', 'one'));
    expect(channel('ch').pullingMessage).toBe(
      "Multiplex Channel : #default#app/ch: stream 'ch' is already being published by TCP://encoder",
    );
    expect(app.outbound('one')?.tapped).toBe(false);
    squatter.ingest.close(LEFT);
    of(app).look();
    await one.frame();
    expect(app.stream('ch')?.sourceType).toBe('Multiplex');
  });

  it('restart after a deletion of their stream, and stop with their application', async () => {
    const { app, of, channels, channel, encoder, orchestrator } = await setUp();
    const one = encoder('one');
    await one.frame();
    await of(app).save(ladder('ch', 'one'));
    await one.frame();
    app.stream('ch')?.terminate({ code: 'deleted', detail: 'deleted through the API' });
    expect([channel('ch').state, channel('ch').onAir]).toEqual(['Pulling', false]);
    of(app).look();
    await one.frame();
    expect(app.stream('ch')).toBeDefined();
    const ch = channel('ch');
    await orchestrator.deleteApplication('default', 'app');
    channels.look();
    expect([ch.state, channels.of(app)]).toEqual(['Stopped', null]);
  });

  it('refuse to be made of themselves', async () => {
    const { app, second, of, channels, channel, encoder } = await setUp();
    expect(channels.loopOf(app, ladder('self', 'self'))).toBe('the channel would be made of itself: default/app/self <- default/app/self');
    await encoder('one').frame();
    await of(app).save(ladder('a', 'one'));
    const b = readDefinition({ ...ladder('b', 'a') });
    await of(second).save(b);
    const loop = readDefinition({
      outputStream: { name: 'a' },
      sourceStreams: [{ ...source('x'), url: 'stream://other/second/b' }],
    });
    expect(channels.loopOf(app, loop)).toBe('the channel would be made of itself: default/app/a <- other/second/b <- default/app/a');
    expect(channels.loopOf(app, ladder('c', 'a'))).toBeNull();
    // A file needs no lease.
    await of(app).save(loop);
    expect(channel('a').pullingMessage).toBe(
      'Multiplex Channel : #default#app/a: Failed to mirror stream stream://other/second/b (err : 508)',
    );
  });
});
