import { createHmac, randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { SrtpMac } from './srtp-mac.ts';

const expected = (key: Buffer, data: Buffer): string => createHmac('sha1', key).update(data).digest('hex').slice(0, 20);

test('the tag is that of createHmac, for keys and data of any length, with and without a tail', () => {
  for (const keyLength of [0, 1, 20, 64]) {
    const key = randomBytes(keyLength);
    const mac = new SrtpMac(key);
    // The buffer keeps nothing of earlier texts; the longest texts exceed the shared buffer.
    for (const length of [0, 12, 1500, 1, 2044, 2045, 2048, 2049, 65_507, 7]) {
      const [data, tail] = [randomBytes(length), randomBytes(4)];
      expect(mac.tag(data, null).toString('hex'), `${length} bytes`).toBe(expected(key, data));
      expect(mac.tag(data, tail).toString('hex'), `${length} bytes`).toBe(expected(key, Buffer.concat([data, tail])));
    }
  }
});

test('several instances are independent, and a closed one has lost its key', () => {
  const keys = [randomBytes(20), randomBytes(20)] as const;
  const macs = [new SrtpMac(keys[0]), new SrtpMac(keys[1])] as const;
  const data = randomBytes(100);
  const tags = macs.map((mac) => mac.tag(data, null).toString('hex'));
  expect(tags).toEqual(keys.map((key) => expected(key, data)));
  const [first, second] = macs;
  first.close();
  first.close();
  expect(first.tag(data, null).toString('hex')).not.toBe(tags[0]);
  expect(second.tag(data, null).toString('hex')).toBe(tags[1]);
});
