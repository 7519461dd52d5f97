/** Asks a STUN server (RFC 8489) which address this machine has outside. */
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { ProtocolError } from '../../util/protocol-error.ts';
import { parseStun, readXorMappedAddress, StunAttribute, StunType, serializeStun } from '../stun/stun-message.ts';

const DEFAULT_PORT = 3478;
const ATTEMPTS = 4;
const ATTEMPT_MS = 500;

/** `server` is `host[:port]`. Rejects when no answer comes within two seconds. */
export async function publicAddress(server: string): Promise<string> {
  const [host = '', port = `${DEFAULT_PORT}`] = server.split(':');
  const socket = createSocket('udp4');
  const transaction = randomBytes(12);
  const request = serializeStun({ type: StunType.BINDING_REQUEST, transaction, attributes: [], password: null });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let left = ATTEMPTS;
  const ask = (): void => {
    if (left === 0) reject(new Error(`the STUN server ${server} does not answer`));
    left -= 1;
    socket.send(request, Number(port), host, (error) => {
      if (error !== null) reject(new Error(`the STUN server ${server} cannot be asked: ${error.message}`, { cause: error }));
    });
  };
  socket.on('error', reject);
  socket.on('message', (datagram) => {
    const address = readAnswer(datagram, transaction);
    if (address !== null) resolve(address);
  });
  ask();
  const timer = setInterval(ask, ATTEMPT_MS);
  try {
    return await promise;
  } finally {
    clearInterval(timer);
    socket.close();
  }
}

/** Null for anything that is not the answer to our question. */
function readAnswer(datagram: Buffer, transaction: Buffer): string | null {
  try {
    const message = parseStun(datagram);
    const value = message.attributes.get(StunAttribute.XOR_MAPPED_ADDRESS);
    if (message.type !== StunType.BINDING_SUCCESS || !message.transaction.equals(transaction) || value === undefined) return null;
    return readXorMappedAddress(value, transaction).host;
  } catch (error) {
    if (error instanceof ProtocolError) return null;
    throw error;
  }
}
