import { createHmac, randomFillSync } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ProtocolError } from '../../util/protocol-error.ts';
import { ClientHandshake, ServerHandshake } from './handshake.ts';

const BLOCK = 1536;
const PLAYER_TEXT = 'Genuine Adobe Flash Player 001';
const SERVER_TEXT = 'Genuine Adobe Flash Media Server 001';
const TAIL = 'f0eec24a8068bee82e00d0d1029e7e576eec5d2d29806fab93b8e636cfeb31ae';

function hmac(key: Buffer | string, ...parts: Buffer[]): Buffer {
  const signer = createHmac('sha256', key);
  for (const part of parts) signer.update(part);
  return signer.digest();
}

/** A signed C1 made step by step from the published description, not with the code under test. */
function signedClientBlock(scheme: 0 | 1): { block: Buffer; digest: Buffer; offset: number } {
  const block = randomFillSync(Buffer.alloc(BLOCK));
  block.writeUInt32BE(0, 0);
  block.writeUInt32BE(0x0a00_2d02, 4);
  const base = scheme === 0 ? 8 : 772;
  const offset = ((block[base]! + block[base + 1]! + block[base + 2]! + block[base + 3]!) % 728) + base + 4;
  const digest = hmac(PLAYER_TEXT, block.subarray(0, offset), block.subarray(offset + 32));
  digest.copy(block, offset);
  return { block, digest, offset };
}

describe('server side', () => {
  test('answers a simple client with its own block echoed', () => {
    const c1 = randomFillSync(Buffer.alloc(BLOCK));
    c1.writeUInt32BE(0, 4);
    const handshake = new ServerHandshake();
    const { consumed, reply } = handshake.push(Buffer.concat([Buffer.from([3]), c1]));
    expect(consumed).toBe(BLOCK + 1);
    expect(reply).toHaveLength(1 + 2 * BLOCK);
    expect(reply![0]).toBe(3);
    expect(reply!.readUInt32BE(5)).toBe(0);
    expect(reply!.subarray(1 + BLOCK).equals(c1)).toBe(true);
    expect(handshake.done).toBe(false);
    const rest = handshake.push(Buffer.concat([Buffer.alloc(BLOCK), Buffer.from('next')]));
    expect(rest).toEqual({ consumed: BLOCK, reply: null });
    expect(handshake.done).toBe(true);
    expect(handshake.usedDigest).toBe(false);
  });

  test.each([0, 1] as const)('signs its blocks for a client that signed with scheme %d', (scheme) => {
    const { block, digest } = signedClientBlock(scheme);
    const handshake = new ServerHandshake();
    const { reply } = handshake.push(Buffer.concat([Buffer.from([3]), block]));
    expect(handshake.usedDigest).toBe(true);
    const s1 = reply!.subarray(1, 1 + BLOCK);
    const s2 = reply!.subarray(1 + BLOCK);
    expect(s1.readUInt32BE(4)).not.toBe(0);
    const base = scheme === 0 ? 8 : 772;
    const offset = ((s1[base]! + s1[base + 1]! + s1[base + 2]! + s1[base + 3]!) % 728) + base + 4;
    expect(s1.subarray(offset, offset + 32)).toEqual(hmac(SERVER_TEXT, s1.subarray(0, offset), s1.subarray(offset + 32)));
    const key = hmac(Buffer.concat([Buffer.from(SERVER_TEXT), Buffer.from(TAIL, 'hex')]), digest);
    expect(s2.subarray(BLOCK - 32)).toEqual(hmac(key, s2.subarray(0, BLOCK - 32)));
  });

  test('treats a client with a version but a wrong digest as a simple one', () => {
    const { block, offset } = signedClientBlock(0);
    block[offset]! ^= 1;
    const handshake = new ServerHandshake();
    const { reply } = handshake.push(Buffer.concat([Buffer.from([3]), block]));
    expect(handshake.usedDigest).toBe(false);
    expect(reply!.subarray(1 + BLOCK).equals(block)).toBe(true);
  });

  test.each([
    { name: 'RTMPE', first: 6 },
    { name: 'TLS', first: 0x16 },
    { name: 'HTTP', first: 0x47 },
  ])('refuses $name at the first byte', ({ first }) => {
    expect(() => new ServerHandshake().push(Buffer.from([first]))).toThrow(ProtocolError);
  });

  test('the reply comes after the last byte of the hello', () => {
    const hello = Buffer.concat([Buffer.from([3]), Buffer.alloc(BLOCK)]);
    const handshake = new ServerHandshake();
    for (let i = 0; i < hello.length - 1; i += 1) expect(handshake.push(hello.subarray(i, i + 1))).toEqual({ consumed: 1, reply: null });
    expect(handshake.push(hello.subarray(-1)).reply).not.toBeNull();
  });
});

describe('both sides', () => {
  test.each(['simple', 'digest'] as const)('agree on the %s variant', (variant) => {
    const client = new ClientHandshake({ variant });
    const server = new ServerHandshake();
    const first = server.push(client.hello);
    const second = client.push(Buffer.concat([first.reply!, Buffer.from('early')]));
    expect(second.consumed).toBe(first.reply!.length);
    expect(server.push(second.reply!)).toEqual({ consumed: BLOCK, reply: null });
    expect([client.done, server.done, client.usedDigest, server.usedDigest]).toEqual([
      true,
      true,
      variant === 'digest',
      variant === 'digest',
    ]);
    expect(server.push(Buffer.from('x'))).toEqual({ consumed: 0, reply: null });
    expect(client.push(Buffer.from('x'))).toEqual({ consumed: 0, reply: null });
  });

  test('a client refuses an answer that does not prove its digest', () => {
    const client = new ClientHandshake({ variant: 'digest' });
    const { reply } = new ServerHandshake().push(client.hello);
    reply![reply!.length - 1]! ^= 1;
    expect(() => client.push(reply!)).toThrow(ProtocolError);
  });

  test('bytes may be cut anywhere', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('simple' as const, 'digest' as const),
        fc.array(fc.integer({ min: 1, max: 1500 }), { minLength: 1 }),
        (variant, cuts) => {
          const client = new ClientHandshake({ variant });
          const server = new ServerHandshake();
          const feed = (to: ServerHandshake | ClientHandshake, bytes: Buffer): Buffer => {
            const replies: Buffer[] = [];
            for (let at = 0, i = 0; at < bytes.length; i += 1) {
              const { consumed, reply } = to.push(bytes.subarray(at, at + cuts[i % cuts.length]!));
              at += consumed;
              if (reply !== null) replies.push(reply);
            }
            return Buffer.concat(replies);
          };
          feed(server, feed(client, feed(server, client.hello)));
          expect([client.done, server.done]).toEqual([true, true]);
        },
      ),
      { numRuns: 30 },
    );
  });

  test('random bytes give a ProtocolError or wait for more', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 4000 }), (bytes) => {
        try {
          new ServerHandshake().push(Buffer.from(bytes));
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
    );
  });
});
