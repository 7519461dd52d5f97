import { createDecipheriv, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ProtocolError } from '../../util/protocol-error.ts';
import { KeyFlag } from './header.ts';
import { deriveWrappingKey, unwrapKeys, wrapKeys } from './key-wrap.ts';
import { PayloadCipher } from './payload-cipher.ts';
import { SessionKeys } from './session-keys.ts';

const PASSPHRASE = 'correct horse battery';
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

describe('key wrapping', () => {
  test('gives the example of RFC 3394 §4.1 and §4.6', () => {
    const key128 = hex('00112233445566778899AABBCCDDEEFF');
    expect(wrapKeys(hex('000102030405060708090A0B0C0D0E0F'), key128)).toEqual(hex('1FA68B0A8112B447 AEF34BD8FB5A7B82 9D3E862371D2CFE5'));
    const wrapped = hex('28C9F404C4B810F4 CBCCB35CFB87F826 3F5786E2D80ED326 CBC7F0E71A99F43B FB988B9B7A02DD21');
    const wrapping = hex('000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F');
    expect(unwrapKeys(wrapping, wrapped)).toEqual(hex('00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F'));
  });

  test('another passphrase unwraps to null', () => {
    const salt = randomBytes(16);
    const wrapped = wrapKeys(deriveWrappingKey(PASSPHRASE, salt, 24), randomBytes(24));
    expect(unwrapKeys(deriveWrappingKey('something else', salt, 24), wrapped)).toBeNull();
  });
});

describe('payload encryption', () => {
  test('is AES-CTR with the counter of the draft, for every length', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(16, 24, 32),
        fc.integer({ min: 0, max: 2 ** 31 - 1 }),
        fc.integer({ min: 0, max: 1456 }),
        (keyLength, sequence, length) => {
          const key = randomBytes(keyLength);
          const salt = randomBytes(16);
          const payload = randomBytes(length);
          const encrypted = Buffer.alloc(length);
          new PayloadCipher(key, salt).apply(sequence, payload, 0, length, encrypted, 0);
          const counter = Buffer.concat([salt.subarray(0, 14), Buffer.alloc(2)]);
          counter.writeUInt32BE((counter.readUInt32BE(10) ^ sequence) >>> 0, 10);
          const reference = createDecipheriv(`aes-${keyLength * 8}-ctr`, key, counter);
          expect(reference.update(encrypted)).toEqual(payload);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('session keys', () => {
  const send = (from: SessionKeys, to: SessionKeys, sequence: number): string | null => {
    const flag = from.keyFlag;
    const payload = from.encrypt(sequence, Buffer.from(`payload ${sequence}`));
    return to.decrypt(flag, sequence, payload, 0) ? Buffer.from(payload).toString() : null;
  };

  test.each([16, 24, 32] as const)('of %i bytes serve both directions', (keyLength) => {
    const caller = SessionKeys.generate(PASSPHRASE, keyLength);
    const listener = SessionKeys.receive(PASSPHRASE, caller.message());
    if (listener === null) throw new Error('not taken');
    expect(listener.keyLength).toBe(keyLength);
    expect(send(caller, listener, 1)).toBe('payload 1');
    expect(send(listener, caller, 2 ** 31 - 1)).toBe(`payload ${2 ** 31 - 1}`);
    expect(listener.decrypt(KeyFlag.ODD, 1, new Uint8Array(10), 0)).toBe(false);
    expect(listener.decrypt(KeyFlag.NONE, 1, new Uint8Array(10), 0)).toBe(false);
  });

  test('cannot be read with another passphrase', () => {
    expect(SessionKeys.receive('something else', SessionKeys.generate(PASSPHRASE, 16).message())).toBeNull();
    expect(() => SessionKeys.receive(PASSPHRASE, new Uint8Array(40))).toThrow(ProtocolError);
  });

  test('are replaced after their number of packets, once the peer has confirmed the next one', () => {
    const caller = SessionKeys.generate(PASSPHRASE, 16, { every: 10, announceBefore: 4 });
    const listener = SessionKeys.receive(PASSPHRASE, caller.message());
    if (listener === null) throw new Error('not taken');
    const flags: number[] = [];
    for (let sequence = 0; sequence < 40; sequence += 1) {
      flags.push(caller.keyFlag);
      expect(send(caller, listener, sequence)).toBe(`payload ${sequence}`);
      const { announcement } = caller;
      if (announcement === null || sequence < 15) continue;
      expect(listener.accept(announcement)).toBe(true);
      caller.confirm(new Uint8Array(4));
      expect(caller.announcement).toBe(announcement);
      caller.confirm(announcement);
      expect(caller.announcement).toBeNull();
    }
    // Announced after 6 packets, confirmed after 16, so in use from the 18th on; the next change is on time.
    const first = flags.lastIndexOf(KeyFlag.EVEN, 20);
    expect(flags.slice(0, first + 1)).toEqual(new Array(first + 1).fill(KeyFlag.EVEN));
    expect(first).toBe(16);
    expect(flags.slice(17, 27)).toEqual(new Array(10).fill(KeyFlag.ODD));
    expect(flags[27]).toBe(KeyFlag.EVEN);
  });

  describe('of packets that are late', () => {
    const confirmed = (keys: SessionKeys): Uint8Array => {
      const { announcement } = keys;
      if (announcement === null) throw new Error('no key is announced');
      keys.confirm(announcement);
      return announcement;
    };
    const open = (caller: SessionKeys): SessionKeys => {
      const listener = SessionKeys.receive(PASSPHRASE, caller.message());
      if (listener === null) throw new Error('not taken');
      return listener;
    };
    const sealed = (from: SessionKeys, sequence: number) => {
      const flag = from.keyFlag;
      return { flag, sequence, bytes: from.encrypt(sequence, Buffer.from(`payload ${sequence}`)) };
    };
    const read = (to: SessionKeys, { flag, sequence, bytes }: ReturnType<typeof sealed>): string | null => {
      const copy = Buffer.from(bytes);
      return to.decrypt(flag, sequence, copy, 0) ? copy.toString() : null;
    };

    test('are those of their own turn, though the key of the next one has come under the same flag', () => {
      const caller = SessionKeys.generate(PASSPHRASE, 16, { every: 10, announceBefore: 8 });
      const listener = open(caller);
      const start = 2 ** 31 - 15;
      const late: ReturnType<typeof sealed>[] = [];
      for (let n = 0; n < 60; n += 1) {
        const packet = sealed(caller, (start + n) % 2 ** 31);
        if (n % 3 === 0) late.push(packet);
        else expect(read(listener, packet)).toBe(`payload ${packet.sequence}`);
        if (caller.announcement !== null) expect(listener.accept(confirmed(caller))).toBe(true);
        if (late.length > 4) expect(read(listener, late[0]!)).toBe(`payload ${late.shift()!.sequence}`);
      }
      expect(caller.changes).toBe(6);
    });

    test('are not taken for those of the turn before, whose key had the same flag', () => {
      const caller = SessionKeys.generate(PASSPHRASE, 16, { every: 10, announceBefore: 4 });
      const listener = open(caller);
      let kept: Uint8Array | null = null;
      for (let sequence = 0; sequence < 25; sequence += 1) {
        const packet = sealed(caller, sequence);
        expect(read(listener, packet)).toBe(sequence < 20 ? `payload ${sequence}` : null);
        if (caller.announcement === null) continue;
        const announcement = confirmed(caller);
        if (sequence < 10) listener.accept(announcement);
        else kept = announcement;
      }
      expect(listener.accept(kept!)).toBe(true);
      expect(read(listener, sealed(caller, 25))).toBe('payload 25');
    });
  });
});
