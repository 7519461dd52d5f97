import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ProtocolError } from '../../util/protocol-error.ts';
import { crc32Mpeg } from '../mpegts/crc32.ts';
import { buildSpliceInsert, parseSplice, retimeSplice } from './splice-info.ts';

const hex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'hex'));

/** Examples of ANSI/SCTE 35 §14, whose fields the standard prints beside the bytes. */
const TIME_SIGNAL_START = hex(
  'fc3034000000000000fffff00506fe72bd0050001e021c435545494800008e7fcf0001a599b00808000000002ca0a18a3402009ac9d17e',
);
const INSERT = hex('fc302f000000000000fffff014054800008f7feffe7369c02efe0052ccf500000000000a0008435545490000013562dba30a');
/** A break ends: the descriptor has no duration and an empty identifier. */
const TIME_SIGNAL_END = hex(withCrc('fc3027000000000000fffff00506feaebfff640011020f43554549480000087fbf0000350000'));

describe('parseSplice', () => {
  it.each([
    [
      'a placement opportunity that starts',
      TIME_SIGNAL_START,
      { id: 0x4800008e, type: 'out', time: 0x072bd0050, duration: 0x1a599b0, autoReturn: false },
    ],
    [
      'a splice_insert that leaves the network',
      INSERT,
      { id: 0x4800008f, type: 'out', time: 0x07369c02e, duration: 0x52ccf5, autoReturn: true },
    ],
    ['a break that ends', TIME_SIGNAL_END, { id: 0x48000008, type: 'in', time: 0x0aebfff64, duration: null, autoReturn: false }],
  ])('reads %s', (_what, section, splice) => {
    expect(parseSplice(section)).toEqual(splice);
  });

  it('returns null for heartbeats, cancelled events and encrypted sections', () => {
    expect(
      parseSplice(hex('fc301100000000000000fffffff0000000007a4fbfff'.slice(0, 0) + withCrc('fc301100000000000000fff000000000'))),
    ).toBeNull();
    const cancelled = INSERT.slice(0, -4);
    cancelled[18] = 0xff;
    expect(parseSplice(sealed(cancelled))).toBeNull();
    const encrypted = INSERT.slice(0, -4);
    encrypted[4] = 0x80;
    expect(parseSplice(sealed(encrypted))).toBeNull();
  });

  it('takes the time of the first component with a time', () => {
    const command = `4800008f7f8f02${'01fe00000010'}${'02fe00000020'}00000000`;
    const body = `000000000000fff0${(command.length / 2).toString(16).padStart(2, '0')}05${command}0000`;
    const length = body.length / 2 + 1 + 4;
    const section = hex(withCrc(`fc30${length.toString(16).padStart(2, '0')}00${body}`));
    expect(parseSplice(section)).toEqual({ id: 0x4800008f, type: 'out', time: 0x10, duration: null, autoReturn: false });
  });

  it('returns null for a cancelled segmentation, and reads the type after components', () => {
    const signal = (descriptor: string): Uint8Array => {
      const loop = `02${(descriptor.length / 2).toString(16).padStart(2, '0')}${descriptor}`;
      const body = `000000000000fff00506fe00000010${(loop.length / 2).toString(16).padStart(4, '0')}${loop}`;
      return hex(withCrc(`fc30${(body.length / 2 + 1 + 4).toString(16).padStart(2, '0')}00${body}`));
    };
    expect(parseSplice(signal('43554549000000077fbf0000340000'))).toMatchObject({ id: 7, type: 'out' });
    expect(parseSplice(signal('4355454900000007ffbf0000340000'))).toBeNull();
    // A splice of one component instead of the whole program, with the component's offset before the rest.
    expect(parseSplice(signal(`43554549000000077f3f01${'01fe00000005'}0000350000`))).toMatchObject({ id: 7, type: 'in' });
  });

  it('refuses a section that is longer than playlists carry', () => {
    const long = (length: number): Uint8Array => {
      const section = new Uint8Array(length - 4);
      section.set([0xfc, 0x30 | ((length - 3) >> 8), (length - 3) & 0xff]);
      return sealed(section);
    };
    expect(parseSplice(long(512))).toBeNull();
    expect(() => parseSplice(long(513))).toThrow('section of 513 bytes, at most 512 are carried');
  });

  it('refuses a truncated section and a wrong CRC', () => {
    for (let length = 0; length < INSERT.length; length += 1) expect(() => parseSplice(INSERT.subarray(0, length))).toThrow(ProtocolError);
    const changed = INSERT.slice();
    changed[20] = 1;
    expect(() => parseSplice(changed)).toThrow('the CRC is wrong');
  });

  it('reads or refuses arbitrary bytes with a correct CRC', () => {
    const bytes = fc.uint8Array({ minLength: 11, maxLength: 200 });
    fc.assert(
      fc.property(bytes, fc.constantFrom(5, 6), (rest, command) => {
        const section = new Uint8Array(3 + rest.length);
        section.set(rest, 3);
        section.set([0xfc, 0x30 | ((rest.length + 4) >> 8), rest.length + 4, 0, 0]);
        section[13] = command;
        try {
          parseSplice(sealed(section));
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe('buildSpliceInsert', () => {
  it('writes the bytes of the standard', () => {
    // The example without its avail descriptor.
    const expected = sealed(hex('fc3025000000000000fffff014054800008f7feffe7369c02efe0052ccf5000000000000'));
    const insert = { id: 0x4800008f, type: 'out', time: 0x07369c02e, duration: 0x52ccf5, autoReturn: true } as const;
    expect(Buffer.from(buildSpliceInsert(insert)).toString('hex')).toBe(Buffer.from(expected).toString('hex'));
  });

  it('round-trips arbitrary splices with times of 33 bits', () => {
    const ticks = fc.integer({ min: 0, max: 2 ** 33 - 1 });
    const id = fc.integer({ min: 0, max: 2 ** 32 - 1 });
    fc.assert(
      fc.property(
        id,
        fc.constantFrom('out' as const, 'in' as const),
        ticks,
        fc.option(ticks),
        fc.boolean(),
        (id, type, time, duration, auto) => {
          const insert = { id, type, time, duration, autoReturn: duration !== null && auto };
          expect(parseSplice(buildSpliceInsert(insert))).toEqual(insert);
        },
      ),
    );
  });
});

describe('retimeSplice', () => {
  it('moves the time by the adjustment and leaves all else', () => {
    const moved = retimeSplice(INSERT, 2 ** 33 + 90_000);
    expect(parseSplice(moved)).toEqual({ ...parseSplice(INSERT), time: 90_000 });
    expect(Buffer.from(moved.subarray(13, -4))).toEqual(Buffer.from(INSERT.subarray(13, -4)));
    expect(parseSplice(retimeSplice(moved, 5))).toMatchObject({ time: 5 });
  });

  it('leaves the section it was given, a view into something larger', () => {
    const larger = Buffer.concat([Buffer.alloc(7), INSERT]);
    const section = larger.subarray(7);
    expect(parseSplice(retimeSplice(section, 5))).toMatchObject({ time: 5 });
    expect(Buffer.from(INSERT).equals(section)).toBe(true);
  });

  it('keeps a section without a time', () => {
    const immediate = INSERT.slice(0, -4);
    immediate[19] = 0xff;
    const section = sealed(immediate);
    expect(parseSplice(section)?.time).toBeNull();
    expect(retimeSplice(section, 7)).toBe(section);
  });
});

function sealed(section: Uint8Array): Uint8Array {
  const whole = new Uint8Array(section.length + 4);
  whole.set(section);
  new DataView(whole.buffer).setUint32(section.length, crc32Mpeg(section));
  return whole;
}

function withCrc(text: string): string {
  return Buffer.from(sealed(hex(text))).toString('hex');
}
