/** Mutations that tend to break parsers: cuts, flipped bits, wrong lengths, splices, repetitions. */
import { joinPackets, splitPackets } from './packets.ts';
import type { Random } from './random.ts';

/** Form of an input: bytes of a message or stream, text, or packets as `joinPackets` writes them. */
export type InputForm = 'bytes' | 'text' | 'packets';

type Change = (input: Uint8Array, pool: readonly Uint8Array[], random: Random) => Uint8Array;

const MAX_INPUT = 65_536;
const MAX_CHANGES = 4;
const MAX_REPEATS = 64;
const MAX_PACKETS = 256;
const MAX_INSERT = 32;

const BYTES: readonly number[] = [0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff];
const NUMBERS: readonly string[] = [
  ...['', '0', '-1', '1', '255', '256', '65535', '65536', '70000', '2147483647', '2147483648', '4294967295', '4294967296'],
  ...['9007199254740993', '18446744073709551616', '99999999999999999999999999', '1e999', '-0', '0x10', '1.5', 'NaN', '٣'],
];
const MARKS: readonly string[] = [
  ...['\r\n', '\n', '\r', '\0', ' ', '\t', ':', ';', ',', '=', '/', '"', "'", '&', '<', '>', '%', '%00', '%zz', '\\', '{', '}', '[', ']'],
  ...['../', '__proto__', 'constructor', 'null', '\ufeff', '\ud800', '😀'],
];

/** A mutated copy of `input`; splices come from `pool`. */
export function mutate(input: Uint8Array, pool: readonly Uint8Array[], random: Random, form: InputForm): Uint8Array {
  if (form === 'packets') return mutatePackets(input, pool, random);
  const changes = form === 'text' ? [...BYTE_CHANGES, ...TEXT_CHANGES, ...TEXT_CHANGES] : BYTE_CHANGES;
  let changed = input;
  for (let left = 1 + random.below(MAX_CHANGES); left > 0; left -= 1) {
    changed = random.pick(changes)(changed, pool, random).subarray(0, MAX_INPUT);
  }
  return copyOf(changed);
}

/** Changes the order of packets, then single packets; some inputs change only in order. */
function mutatePackets(input: Uint8Array, pool: readonly Uint8Array[], random: Random): Uint8Array {
  let packets = splitPackets(input);
  const others = pool.flatMap((other) => splitPackets(other));
  if (packets.length === 0) packets = [random.bytes(random.below(64))];
  for (let left = random.below(3); left > 0; left -= 1) reorder(packets, others, random);
  for (let left = random.below(MAX_CHANGES); left > 0; left -= 1) {
    const at = random.below(packets.length);
    packets[at] = mutate(packets[at] ?? new Uint8Array(), others, random, 'bytes');
  }
  return joinPackets(packets.slice(0, MAX_PACKETS));
}

function reorder(packets: Uint8Array[], others: readonly Uint8Array[], random: Random): void {
  const at = random.below(packets.length);
  const packet = packets[at] ?? new Uint8Array();
  switch (random.below(4)) {
    case 0:
      packets.splice(at, 1);
      break;
    case 1:
      packets.splice(at, 0, ...Array.from({ length: 1 + random.below(MAX_REPEATS) }, () => packet));
      break;
    case 2:
      packets.splice(random.below(packets.length), 0, ...packets.splice(at, 1));
      break;
    default:
      packets.splice(at, 0, others.length > 0 ? random.pick(others) : random.bytes(random.below(64)));
  }
}

const BYTE_CHANGES: readonly Change[] = [
  function truncate(input, _, random) {
    return input.subarray(0, random.below(input.length));
  },
  function behead(input, _, random) {
    return input.subarray(random.below(input.length));
  },
  function flipBits(input, _, random) {
    const changed = copyOf(input);
    for (let left = 1 + random.below(8); left > 0; left -= 1) {
      const at = random.below(changed.length);
      changed[at] = (changed[at] ?? 0) ^ (1 << random.below(8));
    }
    return changed;
  },
  function setBytes(input, _, random) {
    const changed = copyOf(input);
    const at = random.below(changed.length);
    changed.fill(random.pick(BYTES), at, Math.min(changed.length, at + 1 + random.below(8)));
    return changed;
  },
  function randomByte(input, _, random) {
    const changed = copyOf(input);
    changed[random.below(changed.length)] = random.u32();
    return changed;
  },
  /** The first bytes are hit more often, because most length fields are there. */
  function extremeNumber(input, _, random) {
    const changed = Buffer.from(input);
    const width = random.pick([1, 2, 3, 4]);
    if (changed.length < width) return changed;
    const at = random.once(2) ? random.below(Math.min(32, changed.length - width + 1)) : random.below(changed.length - width + 1);
    const most = 2 ** (8 * width) - 1;
    const left = changed.length - at - width;
    const value = random.pick([0, 1, 2, most, most - 1, (most + 1) / 2, (most - 1) / 2, left, left + 1, Math.max(0, left - 1), 4 * left]);
    if (random.once(4)) changed.writeUIntLE(Math.min(value, most), at, width);
    else changed.writeUIntBE(Math.min(value, most), at, width);
    return changed;
  },
  function splice(input, pool, random) {
    const other = pool.length > 0 ? random.pick(pool) : input;
    return Buffer.concat([input.subarray(0, random.below(input.length + 1)), other.subarray(random.below(other.length + 1))]);
  },
  function repeat(input, _, random) {
    const start = random.below(input.length);
    const part = input.subarray(start, start + 1 + random.below(Math.min(1024, input.length - start)));
    const copies = Array.from({ length: 1 + random.below(MAX_REPEATS) }, () => part);
    return Buffer.concat([input.subarray(0, start), ...copies, input.subarray(start)]);
  },
  function remove(input, _, random) {
    const start = random.below(input.length);
    return Buffer.concat([input.subarray(0, start), input.subarray(start + 1 + random.below(16))]);
  },
  function insert(input, _, random) {
    const at = random.below(input.length + 1);
    return Buffer.concat([input.subarray(0, at), random.bytes(random.below(MAX_INSERT)), input.subarray(at)]);
  },
  function swap(input, _, random) {
    const [a, b] = [random.below(input.length), random.below(input.length)].sort((x, y) => x - y) as [number, number];
    return Buffer.concat([input.subarray(b), input.subarray(a, b), input.subarray(0, a)]);
  },
];

const TEXT_CHANGES: readonly Change[] = [
  function replaceNumber(input, _, random) {
    const text = Buffer.from(input).toString('latin1');
    const numbers = [...text.matchAll(/\d+/g)];
    if (numbers.length === 0) return input;
    const { index, 0: digits } = random.pick(numbers);
    return replaced(input, index, digits.length, random.pick(NUMBERS));
  },
  function insertMark(input, _, random) {
    return replaced(input, random.below(input.length + 1), random.once(2) ? 1 : 0, random.pick(MARKS));
  },
  function repeatLine(input, _, random) {
    return withLine(input, random, (line) => `${line}\n`.repeat(1 + random.below(MAX_REPEATS)));
  },
  function removeLine(input, _, random) {
    return withLine(input, random, () => '');
  },
  function lengthenWord(input, _, random) {
    const words = [
      ...Buffer.from(input)
        .toString('latin1')
        .matchAll(/[\w.]+/g),
    ];
    if (words.length === 0) return input;
    const { index, 0: word } = random.pick(words);
    return replaced(input, index, word.length, word.repeat(1 + random.below(200)).slice(0, MAX_INPUT));
  },
];

/** `slice` of a Buffer is a view, so a change would reach the pool. */
function copyOf(input: Uint8Array): Uint8Array {
  return new Uint8Array(input);
}

function replaced(input: Uint8Array, at: number, length: number, by: string): Uint8Array {
  return Buffer.concat([input.subarray(0, at), Buffer.from(by), input.subarray(at + length)]);
}

function withLine(input: Uint8Array, random: Random, change: (line: string) => string): Uint8Array {
  const lines = Buffer.from(input).toString('latin1').split('\n');
  const at = random.below(lines.length);
  lines[at] = change(lines[at] ?? '');
  return Buffer.from(lines.join('\n'), 'latin1');
}
