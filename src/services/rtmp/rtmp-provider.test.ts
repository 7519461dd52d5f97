import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { FakeIngestGate } from '../../../test/fakes/fake-ingest-gate.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { informationOf, RtmpPublisher } from '../../../test/fakes/rtmp-publisher.ts';
import { AAC_CONFIG, AAC_FRAME, cleanUp, holdSweeps, publishing, socketPolls, start } from '../../../test/support/rtmp-bench.ts';
import type { IngestRefused } from '../../core/ingest.ts';
import { systemClock } from '../../util/clock.ts';
import { AmfObject } from '../../wire/rtmp/amf.ts';
import { serializeAmf0 } from '../../wire/rtmp/amf0.ts';
import { controlMessage, userControlMessage } from '../../wire/rtmp/control.ts';
import { MessageType, UserControlEvent } from '../../wire/rtmp/message.ts';
import { RtmpProvider } from './rtmp-provider.ts';

describe('the conversation', () => {
  test('answers connect, createStream, FCPublish and publish as encoders know it', async () => {
    const { port } = await start();
    const publisher = await RtmpPublisher.open(port);
    cleanUp(() => publisher.close());
    publisher.connect({ tcUrl: 'rtmp://media.example/app', objectEncoding: 0 });
    publisher.call('releaseStream', 2, null, 'stream');
    publisher.call('FCPublish', 3, null, 'stream');
    publisher.call('createStream', 4, null);
    publisher.call('publish', 5, null, 'stream', 'live');
    await publisher.command('onStatus');
    const wire = publisher.messages.map((m) => [
      m.typeId,
      m.streamId,
      m.typeId === MessageType.COMMAND_AMF0 ? '' : Buffer.from(m.payload).toString('hex'),
    ]);
    expect(wire).toEqual([
      [MessageType.WINDOW_ACK_SIZE, 0, '002625a0'],
      [MessageType.SET_PEER_BANDWIDTH, 0, '002625a002'],
      [MessageType.USER_CONTROL, 0, '000000000000'],
      [MessageType.COMMAND_AMF0, 0, ''],
      [MessageType.SET_CHUNK_SIZE, 0, '0000ea60'],
      [MessageType.COMMAND_AMF0, 0, ''],
      [MessageType.COMMAND_AMF0, 0, ''],
      [MessageType.USER_CONTROL, 0, '000000000001'],
      [MessageType.COMMAND_AMF0, 1, ''],
    ]);
    const [connected, fcPublish, created, status] = publisher.commands();
    expect(connected).toEqual({
      name: '_result',
      transactionId: 1,
      args: [
        AmfObject.of({ fmsVer: 'FMS/3,5,2,654', capabilities: 31, mode: 1 }),
        AmfObject.of({
          level: 'status',
          code: 'NetConnection.Connect.Success',
          description: 'Connection succeeded.',
          clientid: expect.any(Number) as number,
          objectEncoding: 0,
          data: new AmfObject([['version', '3,5,2,654']], 'ecma-array'),
        }),
      ],
    });
    expect(fcPublish).toMatchObject({ name: 'onFCPublish', transactionId: 0 });
    expect(informationOf(fcPublish!)).toMatchObject({ level: 'status', code: 'NetStream.Publish.Start', description: 'FCPublish' });
    expect(created).toEqual({ name: '_result', transactionId: 4, args: [null, 1] });
    expect(informationOf(status!)).toMatchObject({ level: 'status', code: 'NetStream.Publish.Start', description: 'Publishing' });
  });

  test('lists the supported codecs to an Enhanced RTMP client', async () => {
    const { port } = await start();
    const publisher = await RtmpPublisher.open(port);
    cleanUp(() => publisher.close());
    publisher.connect({ tcUrl: 'rtmp://media.example/app', objectEncoding: 3, fourCcList: ['*'] });
    const result = await publisher.command('_result');
    const properties = result.args[0] as AmfObject;
    expect(properties.get('fourCcList')).toEqual(['avc1', 'hvc1', 'vp08', 'vp09', 'av01', 'mp4a', 'Opus', '.mp3']);
    expect(properties.get('capsEx')).toBe(6);
    expect(informationOf(result)).toMatchObject({ objectEncoding: 3 });
  });

  test('understands AMF3 commands', async () => {
    const { gate, port } = await start();
    const publisher = await RtmpPublisher.open(port);
    cleanUp(() => publisher.close());
    publisher.connect({ tcUrl: 'rtmp://media.example/app', objectEncoding: 3 });
    const payload = Buffer.concat([Buffer.from([0]), serializeAmf0(['publish', 5, null, 'amf3'])]);
    publisher.send({ chunkStreamId: 3, typeId: MessageType.COMMAND_AMF3, streamId: 1, timestamp: 0, payload });
    expect((await gate.stream()).name).toBe('amf3');
  });

  test('answers a ping and acknowledges half a window', async () => {
    const { publisher } = await publishing();
    publisher.send(userControlMessage(UserControlEvent.PING_REQUEST, 4711));
    publisher.send(controlMessage(MessageType.WINDOW_ACK_SIZE, 20_000));
    publisher.setChunkSize(65_536);
    publisher.video(0, '00'.repeat(12_000));
    await publisher.until(() => publisher.messages.some((m) => m.typeId === MessageType.ACKNOWLEDGEMENT));
    const pong = publisher.messages.find((m) => m.typeId === MessageType.USER_CONTROL && m.payload[1] === UserControlEvent.PING_RESPONSE);
    expect(Buffer.from(pong!.payload).toString('hex')).toBe('000700001267');
  });

  test('acknowledges to a peer without a window size only when the peer waits', async () => {
    const { sweep } = holdSweeps();
    const { publisher, stream } = await publishing();
    const answers = (type: number) => publisher.messages.filter(({ typeId }) => typeId === type).length;
    const acknowledged = () => answers(MessageType.ACKNOWLEDGEMENT) > 0;
    publisher.setChunkSize(65_536);
    publisher.metadata({ audiocodecid: 10 });
    publisher.audio(0, AAC_CONFIG);
    for (let frame = 1; frame <= 30; frame += 1) {
      publisher.audio(frame, AAC_FRAME + '00'.repeat(60_000));
      await stream.until(({ packets }) => packets.length === frame);
      sweep();
    }
    // An acknowledgement would have come before these answers.
    for (const pings of [1, 2]) {
      const before = answers(MessageType.USER_CONTROL);
      publisher.send(userControlMessage(UserControlEvent.PING_REQUEST, pings));
      await publisher.until(() => answers(MessageType.USER_CONTROL) > before);
    }
    expect(acknowledged()).toBe(false);
    // The first publisher sees that it continues.
    sweep();
    sweep();
    await publisher.until(acknowledged);
  });
});

describe('addressing', () => {
  test.each([
    { tcUrl: 'rtmp://media.example/app', key: 'stream', target: 'media.example app stream' },
    { tcUrl: 'rtmp://media.example:1935/app', key: 'stream?policy=p&signature=s', target: 'media.example app stream' },
    { tcUrl: 'rtmp://media.example/app/first', key: 'second', target: 'media.example app first' },
    { tcUrl: 'rtmp://media.example/app?a=1', key: 'stream?b=2', target: 'media.example app stream' },
    { tcUrl: 'rtmp://[2001:db8::1]/app', key: 'stream', target: '2001:db8::1 app stream' },
    { tcUrl: 'rtmp:///app', key: 'stream', target: '127.0.0.1 app stream' },
    { tcUrl: 'nonsense', key: 'stream', target: '127.0.0.1 app stream' },
  ])('$tcUrl and key $key', async ({ tcUrl, key, target }) => {
    const { stream } = await publishing({}, { tcUrl, key });
    expect(`${stream.target.host} ${stream.target.app} ${stream.name}`).toBe(target);
    expect(stream.request).toMatchObject({
      provider: 'rtmp',
      sourceType: 'Rtmp',
      sourceUrl: expect.stringMatching(/^TCP:\/\/127\.0\.0\.1:\d+$/) as string,
    });
  });

  test('the name of FCPublish is used when publish has none', async () => {
    const { gate, port } = await start();
    const publisher = await RtmpPublisher.open(port);
    cleanUp(() => publisher.close());
    publisher.connect({ tcUrl: 'rtmp://media.example/app' });
    publisher.call('FCPublish', 2, null, 'announced?x=1');
    publisher.call('publish', 3, null);
    expect((await gate.stream()).name).toBe('announced');
  });

  /** Notifications when a publication is refused. */
  async function refusalOf(port: number, tcUrl: string, key: string) {
    const publisher = await RtmpPublisher.open(port);
    publisher.connect({ tcUrl });
    publisher.call('publish', 3, null, key);
    await publisher.closed;
    return informationOf(await publisher.command('onStatus'));
  }

  test('a missing stream name is rejected with a status, and logged', async () => {
    const { port, logger } = await start();
    expect(await refusalOf(port, 'rtmp://media.example/app', '')).toEqual({
      level: 'error',
      code: 'NetStream.Publish.BadName',
      description: 'There is no stream key: publish to rtmp://HOST/APP/KEY, or fill in the stream key of your encoder.',
    });
    expect((await logger.line('RTMP connection closed')).fields).toMatchObject({ code: 'denied' });
    expect(logger.matching('publisher refused: there is no stream key behind rtmp://…/app')).toMatchObject([
      { level: 'warn', fields: { code: 'no-stream-key', app: 'app', peer: expect.stringMatching(/^127/) as string } },
    ]);
  });

  test.each([
    ['no-virtual-host', 'NetConnection.Connect.Rejected', "There is no virtual host for 'media.example'."],
    ['no-application', 'NetConnection.Connect.InvalidApp', "There is no application 'app'."],
    ['provider-disabled', 'NetConnection.Connect.InvalidApp', "Application 'app' takes no RTMP."],
    ['duplicate-name', 'NetStream.Publish.BadName', "Stream 'stream' is already being published."],
    ['invalid-name', 'NetStream.Publish.BadName', 'The stream key is no name: it must not contain / : ? # or blanks.'],
    ['shutting-down', 'NetStream.Publish.Rejected', 'The server is shutting down.'],
  ] as const)('an ingest refused for %s is answered with %s and logged', async (refusal: IngestRefused['code'], code, description) => {
    const { gate, port, logger } = await start();
    gate.refusal = refusal;
    expect(await refusalOf(port, 'rtmp://media.example/app', 'stream')).toEqual({ level: 'error', code, description });
    const line = await logger.line('RTMP connection closed');
    expect(line.fields).toMatchObject({ code: 'denied', detail: expect.stringContaining(refusal) as string });
    expect(logger.matching(`publisher refused: refused by the test: ${refusal}`)).toMatchObject([
      { level: 'warn', fields: { code: refusal, app: 'app', stream: 'stream' } },
    ]);
  });

  test('a connect that names no application is answered with an error', async () => {
    const { port, logger } = await start();
    const publisher = await RtmpPublisher.open(port);
    publisher.connect({ tcUrl: 'rtmp://media.example/' });
    await publisher.closed;
    expect(informationOf(await publisher.command('_error'))).toEqual({
      level: 'error',
      code: 'NetConnection.Connect.InvalidApp',
      description: 'The URL names no application: it must be rtmp://HOST/APP/KEY.',
    });
    await logger.line('publisher refused: connect names no application: neither tcUrl nor app can be read');
  });

  test('a player gets the answer that RTMP is for publishing only', async () => {
    const { port, logger } = await start();
    const player = await RtmpPublisher.open(port);
    player.connect({ tcUrl: 'rtmp://media.example/app' });
    player.call('createStream', 2, null);
    player.call('play', 3, null, 'live?token=secret');
    await player.closed;
    expect(informationOf(await player.command('onStatus'))).toEqual({
      level: 'error',
      code: 'NetStream.Play.Failed',
      description: 'RTMP is for publishing only: play this stream by LL-HLS, WebRTC or SRT.',
    });
    await logger.line("viewer refused: RTMP is not served to players: 'app/live'");
    expect(JSON.stringify(logger.lines)).not.toContain('secret');
  });
});

describe('the end', () => {
  test.each([
    { name: 'FCUnpublish', args: [null, 'stream'] },
    { name: 'unpublish', args: [null] },
    { name: 'deleteStream', args: [null, 1] },
    { name: 'closeStream', args: [null] },
  ])('$name ends the stream, and another may follow', async ({ name, args }) => {
    const { publisher, stream, gate, logger } = await publishing();
    publisher.call(name, 6, ...args);
    await stream.until((it) => it.closed);
    expect(stream.closeReason).toEqual({ code: 'peer-left', detail: name });
    publisher.call('publish', 7, null, 'again');
    expect((await gate.stream(1)).name).toBe('again');
    expect(logger.matching('RTMP connection closed')).toHaveLength(0);
  });

  test('FCUnpublish of another name and deleteStream of another stream have no effect', async () => {
    const { publisher, stream } = await publishing();
    publisher.call('FCUnpublish', 6, null, 'other');
    publisher.call('deleteStream', 7, null, 2);
    publisher.metadata({ audiocodecid: 10 });
    publisher.audio(0, AAC_CONFIG);
    publisher.audio(0, AAC_FRAME);
    await stream.until((it) => it.packets.length === 1);
    expect(stream.closed).toBe(false);
  });

  test('the core can have the connection closed', async () => {
    const { publisher, stream, logger } = await publishing();
    stream.request.onClose({ code: 'replaced', detail: 'another publisher took over' });
    await publisher.closed;
    expect((await logger.line('RTMP connection closed')).fields).toMatchObject({ code: 'replaced' });
  });

  test('a congested stream does not read from its peer until it is relieved', async () => {
    const { publisher, stream, port } = await publishing();
    publisher.metadata({ audiocodecid: 10 });
    publisher.audio(0, AAC_CONFIG);
    publisher.audio(0, AAC_FRAME);
    await stream.until((it) => it.packets.length === 1);
    stream.request.onCongested?.();
    for (let frame = 1; frame <= 500; frame += 1) publisher.audio(frame, AAC_FRAME + '00'.repeat(4000));
    // Another client is served meanwhile.
    const other = await RtmpPublisher.open(port);
    cleanUp(() => other.close());
    expect(stream.packets.length).toBeLessThan(250);
    stream.request.onRelieved?.();
    await stream.until((it) => it.packets.length === 501);
  });

  test('media of a publisher that leaves before its acknowledgement is read to the end', async () => {
    const { publisher, stream } = await publishing();
    publisher.send(controlMessage(MessageType.WINDOW_ACK_SIZE, 20_000));
    publisher.metadata({ audiocodecid: 10 });
    publisher.audio(0, AAC_CONFIG);
    publisher.audio(0, AAC_FRAME);
    await stream.until((it) => it.packets.length === 1);
    stream.request.onCongested?.();
    for (let frame = 1; frame <= 100; frame += 1) publisher.audio(frame, AAC_FRAME + '00'.repeat(4000));
    // The system has all of it, more than one read brings, and answers data for the publisher with a reset.
    await new Promise<void>((resolve) => publisher.socket.end(resolve));
    publisher.socket.destroy();
    stream.request.onRelieved?.();
    await stream.until((it) => it.closed);
    expect(stream.packets).toHaveLength(101);
    expect(stream.closeReason).toEqual({ code: 'peer-left', detail: 'connection ended by the peer' });
  });

  test('a publisher of a congested stream gets its acknowledgement after the congestion', async () => {
    const polled = await socketPolls();
    const { publisher, stream } = await publishing();
    const acknowledged = () => publisher.messages.some(({ typeId }) => typeId === MessageType.ACKNOWLEDGEMENT);
    publisher.send(controlMessage(MessageType.WINDOW_ACK_SIZE, 20_000));
    publisher.metadata({ audiocodecid: 10 });
    publisher.audio(0, AAC_CONFIG);
    publisher.audio(0, AAC_FRAME + '00'.repeat(12_000));
    await stream.until((it) => it.packets.length === 1);
    stream.request.onCongested?.();
    await polled();
    expect(acknowledged()).toBe(false);
    stream.request.onRelieved?.();
    await publisher.until(acknowledged);
  });

  test('stopping the provider ends every stream, also when done twice', async () => {
    const { publisher, stream, provider } = await publishing();
    await Promise.all([provider.stop(), provider.stop()]);
    await publisher.closed;
    expect(stream.closeReason?.code).toBe('shutdown');
    expect(provider.connections).toBe(0);
    expect(provider.port).toBe(0);
  });

  test('stopping the provider cuts a refused peer that does not leave', async () => {
    const { port, provider } = await start({ timeouts: { linger: 600_000 } });
    const publisher = await RtmpPublisher.open(port);
    publisher.socket.allowHalfOpen = true;
    cleanUp(() => publisher.close());
    publisher.connect({ tcUrl: 'rtmp://media.example/app' });
    publisher.call('publish', 3, null, '');
    await publisher.command('onStatus');
    if (!publisher.socket.readableEnded) await once(publisher.socket, 'end');
    await provider.stop();
    await expect
      .poll(() => {
        if (!publisher.socket.destroyed) publisher.socket.write('x');
        return publisher.socket.destroyed;
      })
      .toBe(true);
  });

  test('an address in use rejects the start', async () => {
    const { port } = await start();
    const second = new RtmpProvider({
      gate: new FakeIngestGate(),
      logger: new RecordingLogger(),
      clock: systemClock,
      host: '127.0.0.1',
      port,
    });
    await expect(second.start()).rejects.toThrow(/EADDRINUSE/);
    expect(second.port).toBe(0);
  });
});
