import { createCipheriv, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { loadAddon } from '../../native/addon.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { SrtpProfile, saltLength } from './profile.ts';
import { ReplayWindow } from './replay-window.ts';
import { SrtpCipher } from './srtp-cipher.ts';
import { SrtpReceiver } from './srtp-receiver.ts';

const PROFILES = [SrtpProfile.AES128_CM_SHA1_80, SrtpProfile.AEAD_AES_128_GCM];
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ''), 'hex');

/** An RTP packet with `extension` words of header extension. */
function rtp(sequence: number, ssrc: number, payload: Uint8Array, extension = 0): Buffer {
  const head = Buffer.alloc(12 + (extension > 0 ? 4 + 4 * extension : 0));
  head[0] = extension > 0 ? 0x90 : 0x80;
  head[1] = 96;
  head.writeUInt16BE(sequence & 0xffff, 2);
  head.writeUInt32BE(ssrc, 8);
  if (extension > 0) {
    head.writeUInt16BE(0xbede, 12);
    head.writeUInt16BE(extension, 14);
  }
  return Buffer.concat([head, payload]);
}

function rtcp(ssrc: number, words: number): Buffer {
  const packet = Buffer.alloc(8 + 4 * words, 0x5a);
  packet[0] = 0x81;
  packet[1] = 201;
  packet.writeUInt16BE(words + 1, 2);
  packet.writeUInt32BE(ssrc, 4);
  return packet;
}

function keysOf(profile: SrtpProfile): { key: Buffer; salt: Buffer } {
  return { key: randomBytes(16), salt: randomBytes(saltLength(profile)) };
}

const loaded = loadAddon();

test('the session keys match RFC 3711 appendix B.3', () => {
  // The master key and salt of the RFC; its cipher key and salt show in the key stream of an empty index.
  const cipher = new SrtpCipher(
    SrtpProfile.AES128_CM_SHA1_80,
    hex('E1F97A0D3E018BE0D64FA32C06DE4139'),
    hex('0EC675AD498AFEEBB6960B3AABE6'),
    'rtp',
  );
  const twin = new SrtpCipher(
    SrtpProfile.AES128_CM_SHA1_80,
    hex('E1F97A0D3E018BE0D64FA32C06DE4139'),
    hex('0EC675AD498AFEEBB6960B3AABE6'),
    'rtp',
  );
  const packet = rtp(0, 0, Buffer.alloc(16));
  const sealed = cipher.protectRtp(packet, 0);
  // AES-CM with key C61E7A93744F39EE10734AFE3FF7A087 and IV 30CBBC08863D8C85D49DB34A9AE1 0000.
  expect(sealed.subarray(12, 28).toString('hex')).toBe(expectedKeyStream());
  expect(twin.unprotectRtp(sealed, 0)).toEqual(packet);
});

function expectedKeyStream(): string {
  const cipher = createCipheriv('aes-128-ctr', hex('C61E7A93744F39EE10734AFE3FF7A087'), hex('30CBBC08863D8C85D49DB34A9AE10000'));
  return cipher.update(Buffer.alloc(16)).toString('hex');
}

describe.each(PROFILES)('profile %i', (profile) => {
  test('a protected packet is restored, with and without header extension', () => {
    const { key, salt } = keysOf(profile);
    const sender = new SrtpCipher(profile, key, salt, 'rtp');
    const receiver = new SrtpReceiver(profile, key, salt);
    for (let sequence = 65_500; sequence < 65_600; sequence += 1) {
      const packet = rtp(sequence, 0x1234_5678, randomBytes(100), sequence % 3);
      expect(receiver.rtp(sender.protectRtp(packet, sequence))).toEqual(packet);
    }
  });

  test('a changed byte anywhere is refused', () => {
    const { key, salt } = keysOf(profile);
    const sealed = new SrtpCipher(profile, key, salt, 'rtp').protectRtp(rtp(7, 1, randomBytes(20)), 7);
    for (let at = 0; at < sealed.length; at += 1) {
      const changed = Buffer.from(sealed);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(() => new SrtpReceiver(profile, key, salt).rtp(changed), `byte ${at}`).toThrow(ProtocolError);
    }
  });

  test('a packet is accepted once, and a late packet while it is inside the window', () => {
    const { key, salt } = keysOf(profile);
    const sender = new SrtpCipher(profile, key, salt, 'rtp');
    const receiver = new SrtpReceiver(profile, key, salt);
    const sealed = (n: number): Buffer => sender.protectRtp(rtp(n, 9, Buffer.of(n & 0xff)), n);
    receiver.rtp(sealed(1000));
    expect(() => receiver.rtp(sealed(1000))).toThrow('before');
    receiver.rtp(sealed(1127));
    receiver.rtp(sealed(1001));
    expect(() => receiver.rtp(sealed(1001))).toThrow('before');
    receiver.rtp(sealed(1200));
    expect(() => receiver.rtp(sealed(1070))).toThrow('before');
  });

  test('an RTCP packet is restored once', () => {
    const { key, salt } = keysOf(profile);
    const sender = new SrtpCipher(profile, key, salt, 'rtcp');
    const receiver = new SrtpReceiver(profile, key, salt);
    const sealed = sender.protectRtcp(rtcp(77, 5), 0x7fff_ffff);
    expect(receiver.rtcp(sealed)).toEqual(rtcp(77, 5));
    expect(() => receiver.rtcp(sealed)).toThrow('before');
  });

  test('a peer can open at most 16 sources', () => {
    const { key, salt } = keysOf(profile);
    const sender = new SrtpCipher(profile, key, salt, 'rtp');
    const receiver = new SrtpReceiver(profile, key, salt);
    for (let ssrc = 1; ssrc <= 16; ssrc += 1) receiver.rtp(sender.protectRtp(rtp(1, ssrc, Buffer.of(1)), 1));
    expect(() => receiver.rtp(sender.protectRtp(rtp(1, 17, Buffer.of(1)), 1))).toThrow('16 sources');
  });

  test('a source that was silent for long is replaced by a new one', () => {
    const { key, salt } = keysOf(profile);
    const sender = new SrtpCipher(profile, key, salt, 'rtp');
    const packets: Buffer[] = [];
    for (let ssrc = 1; ssrc <= 16; ssrc += 1) packets.push(sender.protectRtp(rtp(1, ssrc, Buffer.of(1)), 1));
    for (let n = 2; n <= 2050; n += 1) packets.push(sender.protectRtp(rtp(n, 16, Buffer.of(1)), n));
    // The first source resumes and stays, so the second has been silent longest.
    packets.push(sender.protectRtp(rtp(2, 1, Buffer.of(1)), 2), sender.protectRtp(rtp(1, 17, Buffer.of(1)), 1));
    const again = packets[0] ?? Buffer.alloc(0);
    const receiver = new SrtpReceiver(profile, key, salt);
    for (const packet of packets) receiver.rtp(packet);
    expect(() => receiver.rtp(again)).toThrow('before');
    if (loaded.addon === null) return;
    const protector = loaded.addon.srtpOpen(profile, key, salt);
    for (const packet of packets) expect(loaded.addon.srtpUnprotect(protector, packet)).toBeInstanceOf(Buffer);
    expect(loaded.addon.srtpUnprotect(protector, again)).toBe(3);
    const full = loaded.addon.srtpOpen(profile, key, salt);
    for (const packet of packets.slice(0, 16)) loaded.addon.srtpUnprotect(full, packet);
    expect(loaded.addon.srtpUnprotect(full, packets.at(-1) ?? Buffer.alloc(0))).toBe(4);
  });

  test('hostile packets are refused, never worse', () => {
    const { key, salt } = keysOf(profile);
    const sender = new SrtpCipher(profile, key, salt, 'rtp');
    const samples = [sender.protectRtp(rtp(1, 2, randomBytes(10), 2), 1)];
    survivesHostileBytes((data) => new SrtpReceiver(profile, key, salt).rtp(data), samples);
    const control = new SrtpCipher(profile, key, salt, 'rtcp').protectRtcp(rtcp(1, 3), 5);
    survivesHostileBytes((data) => new SrtpReceiver(profile, key, salt).rtcp(data), [control]);
  });

  describe.runIf(loaded.addon !== null)('in the addon', () => {
    test('RTP and RTCP are protected to the same bytes, and each side reads the other', () => {
      const { addon } = loaded;
      if (addon === null) return;
      fc.assert(
        fc.property(
          fc.uint8Array({ minLength: 16, maxLength: 16 }),
          fc.uint8Array({ minLength: saltLength(profile), maxLength: saltLength(profile) }),
          fc.uint8Array({ minLength: 1, maxLength: 1400 }),
          fc.nat(2 ** 40),
          fc.nat(0xffff_ffff),
          fc.nat(3),
          (key, salt, payload, index, ssrc, extension) => {
            const packet = rtp(index % 65_536, ssrc, payload, extension);
            const sealed = new SrtpCipher(profile, key, salt, 'rtp').protectRtp(packet, index);
            expect(addon.srtpProtect(addon.srtpOpen(profile, key, salt), packet, index)).toEqual(sealed);
            if (index < 65_536) expect(addon.srtpUnprotect(addon.srtpOpen(profile, key, salt), sealed)).toEqual(packet);
            const report = rtcp(ssrc, payload.length % 20);
            const sealedReport = new SrtpCipher(profile, key, salt, 'rtcp').protectRtcp(report, index % 2 ** 31);
            expect(addon.srtpProtect(addon.srtpOpen(profile, key, salt), report, index % 2 ** 31)).toEqual(sealedReport);
            expect(addon.srtpUnprotect(addon.srtpOpen(profile, key, salt), sealedReport)).toEqual(report);
          },
        ),
        { numRuns: 200 },
      );
    });

    test('the same packets are accepted and refused', () => {
      const { addon } = loaded;
      if (addon === null) return;
      const { key, salt } = keysOf(profile);
      const sender = new SrtpCipher(profile, key, salt, 'rtp');
      fc.assert(
        fc.property(fc.array(fc.nat(600), { maxLength: 120 }), fc.constantFrom(0, 65_300), (steps, base) => {
          const native = addon.srtpOpen(profile, key, salt);
          const script = new SrtpReceiver(profile, key, salt);
          for (const step of steps) {
            const packet = sender.protectRtp(rtp(base + step, 5, Buffer.of(step & 0xff)), base + step);
            let accepted = true;
            try {
              script.rtp(packet);
            } catch {
              accepted = false;
            }
            expect(typeof addon.srtpUnprotect(native, packet) !== 'number').toBe(accepted);
          }
        }),
        { numRuns: 60 },
      );
    });

    test('hostile packets are refused, never worse', () => {
      const { addon } = loaded;
      if (addon === null) return;
      const { key, salt } = keysOf(profile);
      const native = addon.srtpOpen(profile, key, salt);
      const sample = new SrtpCipher(profile, key, salt, 'rtp').protectRtp(rtp(1, 2, randomBytes(10), 2), 1);
      survivesHostileBytes((data) => addon.srtpUnprotect(native, data), [sample]);
    });
  });
});

test('the replay window remembers 128 indices', () => {
  const window = new ReplayWindow();
  window.mark(200);
  expect(window.fresh(200)).toBe(false);
  expect(window.fresh(73)).toBe(true);
  expect(window.fresh(72)).toBe(false);
  window.mark(73);
  expect(window.fresh(73)).toBe(false);
  window.mark(10_000);
  expect(window.fresh(9_999)).toBe(true);
});

test.each(PROFILES)('a closed cipher of profile %i has lost its key', (profile) => {
  const { key, salt } = keysOf(profile);
  const [cipher, twin] = [new SrtpCipher(profile, key, salt, 'rtp'), new SrtpCipher(profile, key, salt, 'rtp')];
  const others = [new SrtpCipher(profile, randomBytes(16), salt, 'rtp'), new SrtpCipher(profile, key, salt, 'rtcp')];
  const packet = rtp(1, 2, Buffer.alloc(40, 3));
  expect(twin.unprotectRtp(cipher.protectRtp(packet, 1), 1)).toEqual(packet);
  for (const each of [cipher, ...others]) {
    each.close();
    each.close();
  }
  const sealed = cipher.protectRtp(packet, 1);
  expect(() => twin.unprotectRtp(sealed, 1)).toThrow(ProtocolError);
  // Their states differed; now they are equal.
  expect(others.map((other) => other.protectRtp(packet, 1))).toEqual([sealed, sealed]);
});
