/** The server's side of an RTMP connection for tests, without a socket: follows a script, and keeps the received messages. */
import { AmfObject, type AmfValue } from '../../src/wire/rtmp/amf.ts';
import { ChunkReader } from '../../src/wire/rtmp/chunk-reader.ts';
import { ChunkWriter } from '../../src/wire/rtmp/chunk-writer.ts';
import { commandMessage, parseCommand, type RtmpCommand } from '../../src/wire/rtmp/command.ts';
import { parseControlValue } from '../../src/wire/rtmp/control.ts';
import { ServerHandshake } from '../../src/wire/rtmp/handshake.ts';
import { MessageType, type RtmpMessage } from '../../src/wire/rtmp/message.ts';

/** The server's answer to a command. */
export type ServerScript = (command: RtmpCommand, server: RtmpServer) => void;

export class RtmpServer {
  readonly messages: RtmpMessage[] = [];
  readonly #handshake = new ServerHandshake();
  readonly #writer = new ChunkWriter();
  readonly #reader: ChunkReader;
  readonly #reply: (bytes: Buffer) => void;

  constructor(reply: (bytes: Buffer) => void, script: ServerScript = accept) {
    this.#reply = reply;
    this.#reader = new ChunkReader({
      onMessage: (message) => {
        this.messages.push(message);
        if (message.typeId === MessageType.SET_CHUNK_SIZE) this.#reader.setChunkSize(parseControlValue(message));
        if (message.typeId === MessageType.COMMAND_AMF0) script(parseCommand(message), this);
      },
    });
  }

  get commands(): RtmpCommand[] {
    return this.messages.filter(({ typeId }) => typeId === MessageType.COMMAND_AMF0).map((message) => parseCommand(message));
  }

  receive(data: Buffer): void {
    let rest = data;
    if (!this.#handshake.done) {
      const { consumed, reply } = this.#handshake.push(data);
      if (reply !== null) this.#reply(reply);
      rest = data.subarray(consumed);
    }
    if (rest.length > 0) this.#reader.push(rest);
  }

  say(name: string, transactionId: number, ...args: readonly AmfValue[]): void {
    this.send(commandMessage({ name, transactionId, args }, 0));
  }

  send(message: RtmpMessage): void {
    this.#reply(this.#writer.write(message));
  }
}

const publishStarted = AmfObject.of({ level: 'status', code: 'NetStream.Publish.Start', description: 'go' });

/** Accepts all publishers. */
export const accept: ServerScript = ({ name, transactionId }, server) => {
  if (name === 'connect') server.say('_result', transactionId, null, null);
  if (name === 'createStream') server.say('_result', transactionId, null, 1);
  if (name === 'publish') server.say('onStatus', 0, null, publishStarted);
};
