/** Asks a STUN server (RFC 8489) for the public address of this machine. */
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { isIPv6, SocketAddress } from 'node:net';
import { messageOf } from '../../../util/message-of.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';
import { parseStun, readXorMappedAddress, StunAttribute, StunType, serializeStun } from '../../../wire/stun/stun-message.ts';

const DEFAULT_PORT = 3478;
const MAX_ATTEMPTS = 4;
const ATTEMPT_MS = 500;

/**
 * `server` is `host[:port]`, an IPv6 address in brackets if a port follows. The result has the family by which the server is reached, IPv4
 * if its name has both. Rejects without an answer within two seconds.
 */
export async function publicAddress(server: string): Promise<string> {
  const { name, port } = readServer(server);
  const known = await lookup(name, { all: true, order: 'ipv4first' }).catch((error: unknown) => {
    throw new Error(`the STUN server ${server} is not found: ${messageOf(error)}`, { cause: error });
  });
  const { address: host = name, family = 4 } = known[0] ?? {};
  const socket = createSocket(family === 6 ? 'udp6' : 'udp4');
  const transaction = randomBytes(12);
  const request = serializeStun({ type: StunType.BINDING_REQUEST, transaction, attributes: [], password: null });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let left = MAX_ATTEMPTS;
  const ask = (): void => {
    if (left === 0) reject(new Error(`the STUN server ${server} does not answer`));
    left -= 1;
    socket.send(request, port, host, (error) => {
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

function readServer(server: string): { name: string; port: number } {
  const match = isIPv6(server) ? [server, server] : /^(\[[^\]]+\]|[^:[\]]+)(?::(\d{1,5}))?$/.exec(server.trim());
  const port = Number(match?.[2] ?? DEFAULT_PORT);
  if (match === null || port < 1 || port > 65_535) throw new TypeError(`the STUN server '${server}' is not <host>[:<port>]`);
  return { name: (match[1] ?? '').replace(/^\[(.*)\]$/, '$1'), port };
}

/** Null for anything that is not the answer to our question. */
function readAnswer(datagram: Buffer, transaction: Buffer): string | null {
  try {
    const message = parseStun(datagram);
    const value = message.attributes.get(StunAttribute.XOR_MAPPED_ADDRESS);
    if (message.type !== StunType.BINDING_SUCCESS || !message.transaction.equals(transaction) || value === undefined) return null;
    const { host } = readXorMappedAddress(value, transaction);
    // In the spelling of the system.
    return isIPv6(host) ? new SocketAddress({ address: host, family: 'ipv6' }).address : host;
  } catch (error) {
    if (error instanceof ProtocolError) return null;
    throw error;
  }
}
