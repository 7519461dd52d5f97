import { describe, expect, test } from 'vitest';
import { accept, RtmpServer, type ServerScript } from '../../../test/fakes/rtmp-server.ts';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { AmfObject } from './amf.ts';
import { controlMessage, userControlMessage } from './control.ts';
import { MessageType, UserControlEvent } from './message.ts';
import { PublishClient, type PublishClientOptions, RtmpRefused } from './publish-client.ts';

const TARGET = { app: 'live', stream: 'key', tcUrl: 'rtmp://h/live', fourCcs: [] };

/** A client and a server that answer each other at once. `piece`: number of bytes that arrive together. */
function talk(options: Partial<PublishClientOptions> = {}, script: ServerScript = accept, piece = Number.POSITIVE_INFINITY) {
  const toClient: Buffer[] = [];
  const toServer: Buffer[] = [];
  let opened = 0;
  const server = new RtmpServer((bytes) => toClient.push(bytes), script);
  const client = new PublishClient({
    ...TARGET,
    send: (bytes) => toServer.push(Buffer.from(bytes)),
    onPublishing: () => {
      opened += 1;
    },
    onDiscard: () => undefined,
    ...options,
  });
  const settle = (): void => {
    while (toClient.length + toServer.length > 0) {
      for (const bytes of toServer.splice(0)) server.receive(bytes);
      for (const bytes of toClient.splice(0)) {
        for (let at = 0; at < bytes.length; at += piece) client.receive(bytes.subarray(at, Math.min(bytes.length, at + piece)));
      }
    }
  };
  client.start();
  return { client, server, settle, opened: () => opened, deliver: (bytes: Buffer) => client.receive(bytes) };
}

describe('PublishClient', () => {
  test.each([1, 7, Number.POSITIVE_INFINITY])('gets to publish, fed %d bytes at a time', (piece) => {
    const { client, server, settle, opened } = talk({}, accept, piece);
    settle();
    expect(client.publishing).toBe(true);
    expect(opened()).toBe(1);
    expect(server.commands.map(({ name }) => name)).toEqual(['connect', 'releaseStream', 'FCPublish', 'createStream', 'publish']);
    const [connect] = server.commands;
    expect(connect?.args[0]).toMatchObject({
      fields: new Map([
        ['app', 'live'],
        ['type', 'nonprivate'],
        ['flashVer', 'FMLE/3.0 (compatible; Millrace)'],
        ['tcUrl', 'rtmp://h/live'],
      ]),
    });
    expect(server.commands.at(-1)?.args).toEqual([null, 'key', 'live']);
    client.finish();
    client.finish();
    settle();
    expect(server.commands.slice(5).map(({ name }) => name)).toEqual(['FCUnpublish', 'deleteStream']);
  });

  test('offers Enhanced RTMP only when it needs it, and reads the codecs of the server', () => {
    const answers =
      (properties: Record<string, unknown>): ServerScript =>
      (command, server) => {
        if (command.name === 'connect') server.say('_result', 1, AmfObject.of(properties as never), null);
        else accept(command, server);
      };
    const listed = talk({ fourCcs: ['hvc1'] }, answers({ fourCcList: ['hvc1', 'Opus'] }));
    listed.settle();
    expect(listed.server.commands[0]?.args[0]).toSatisfy((sent: AmfObject) => JSON.stringify(sent.get('fourCcList')) === '["hvc1"]');
    expect(['hvc1', 'Opus', 'av01'].map((fourCc) => listed.client.takes(fourCc))).toEqual([true, true, false]);
    const mapped = talk({ fourCcs: ['av01'] }, answers({ videoFourCcInfoMap: AmfObject.of({ av01: 4 }) }));
    mapped.settle();
    expect(mapped.client.takes('av01')).toBe(true);
    const anything = talk({ fourCcs: ['av01'] }, answers({ fourCcList: ['*'] }));
    anything.settle();
    expect(anything.client.takes('av01')).toBe(true);
    const old = talk({ fourCcs: ['av01'] });
    old.settle();
    expect(old.client.takes('av01')).toBe(false);
  });

  const status = (level: string, code: string) => AmfObject.of({ level, code, description: 'so it is' });
  test.each<[string, ServerScript, RegExp]>([
    [
      'connect',
      ({ name }, server) => name === 'connect' && server.say('_error', 1, null, status('error', 'NetConnection.Connect.Rejected')),
      /^NetConnection\.Connect\.Rejected: so it is$/,
    ],
    [
      'the stream',
      (command, server) => (command.name === 'createStream' ? server.say('_error', 4, null, null) : accept(command, server)),
      /^_error$/,
    ],
    [
      'the name',
      (command, server) =>
        command.name === 'publish'
          ? server.say('onStatus', 0, null, status('error', 'NetStream.Publish.BadName'))
          : accept(command, server),
      /BadName/,
    ],
    ['everything', (_command, server) => server.say('close', 0, null), /closed/],
  ])('a server may refuse %s', (_what, script, reason) => {
    const { settle, opened } = talk({}, script);
    expect(settle).toThrow(RtmpRefused);
    expect(opened()).toBe(0);
    const again = talk({}, script);
    expect(again.settle).toThrow(reason);
  });

  test('servers that know neither releaseStream nor FCPublish are good servers', () => {
    const { client, settle } = talk({}, (command, server) => {
      if (command.name === 'releaseStream' || command.name === 'FCPublish') server.say('_error', command.transactionId, null, null);
      else accept(command, server);
    });
    settle();
    expect(client.publishing).toBe(true);
  });

  test('an invalid stream id is a protocol error', () => {
    const { settle } = talk({}, (command, server) =>
      command.name === 'createStream' ? server.say('_result', 4, null, -1) : accept(command, server),
    );
    expect(settle).toThrow(/stream id/);
  });

  test('answers pings, and acknowledges within the window of the server', () => {
    const { server, settle } = talk();
    settle();
    server.send(controlMessage(MessageType.WINDOW_ACK_SIZE, 200));
    server.send(userControlMessage(UserControlEvent.PING_REQUEST, 77));
    settle();
    const heard = server.messages.slice(-2).map(({ typeId, payload }) => [typeId, Buffer.from(payload).toString('hex')]);
    expect(heard).toContainEqual([MessageType.USER_CONTROL, '00070000004d']);
    expect(heard.map(([typeId]) => typeId)).toContain(MessageType.ACKNOWLEDGEMENT);
  });

  test('sends media without a copy, in chunks when it is long', () => {
    const { client, server, settle } = talk();
    settle();
    const long = Buffer.alloc(200_000, 7);
    const out: Uint8Array[] = [];
    const bytes = client.media('video', 40, [Buffer.of(0x17, 1, 0, 0, 0), long], out);
    expect(out.reduce((sum, piece) => sum + piece.length, 0)).toBe(bytes);
    expect(out.filter((piece) => piece.buffer === long.buffer && piece.length > 1000)).toHaveLength(4);
    for (const piece of out) server.receive(Buffer.from(piece));
    expect(server.messages.at(-1)).toMatchObject({ typeId: MessageType.VIDEO, streamId: 1, timestamp: 40 });
    expect(
      Buffer.from(server.messages.at(-1)?.payload ?? [])
        .subarray(5)
        .equals(long),
    ).toBe(true);
  });

  test('survives arbitrary answers of a server', () => {
    const answers: Buffer[] = [];
    const recorder = talk();
    recorder.settle();
    const scripted = new RtmpServer((bytes) => answers.push(bytes));
    for (const name of ['connect', 'createStream', 'publish'])
      accept({ name, transactionId: name === 'connect' ? 1 : 4, args: [] }, scripted);
    survivesHostileBytes(
      (data) => {
        // The bytes follow the handshake, so they attack the commands.
        const { deliver, settle } = talk({}, () => undefined);
        settle();
        try {
          deliver(Buffer.from(data));
        } catch (error) {
          if (!(error instanceof RtmpRefused)) throw error;
        }
      },
      [Buffer.concat(answers)],
    );
  });
});
