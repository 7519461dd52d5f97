/** Leaf values: from the scalar that was given to the value the server uses. */
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import type { TSchema } from '@sinclair/typebox';
import { shown } from './problem.ts';
import type { LeafKind, PortRanges } from './schema/field.ts';
import { notesOf } from './schema/field.ts';
import { nameRule, type TextFault } from './text-forms.ts';

/** A leaf in its source: always a text in XML, any of the three types in JSON. */
export type Scalar = string | number | boolean;

/** A leaf that could not be read has a complete `message`, or `expected` to append to its path. */
export type LeafResult = { readonly value: unknown } | { readonly expected: string } | { readonly message: string };

const MAX_PORT = 65_535;
const KIB = 1024;
const MIB = 1_048_576;
const INTEGER = /^[+-]?\d+(?:\.0+)?$/;
/** A host name has a letter; digits and dots alone would be an invalid IP address. */
const HOST_NAME = /^(?=.*[a-z])[a-z\d](?:[a-z\d.-]*[a-z\d])?$/i;
const REAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/** Reads `given`, in which macros are expanded, by `schema`. */
export function readLeaf(schema: TSchema, given: Scalar, directory: string | undefined): LeafResult {
  const { kind } = notesOf(schema);
  if (kind !== undefined) return readKind(kind, schema, given, directory);
  if (schema['enum'] !== undefined) return readChoice(schema, given);
  if (schema['type'] === 'string') return { value: String(given) };
  if (schema['type'] === 'boolean') return readBoolean(given);
  return readNumber(schema, given);
}

/** The expected form of a leaf of this schema, for error texts. */
export function expectationOf(schema: TSchema): string {
  const choices = schema['enum'] as readonly string[] | undefined;
  if (choices !== undefined) return `one of ${choices.join(', ')}`;
  const { kind } = notesOf(schema);
  if (kind === 'address') return 'an IP address, `*` or a host name';
  if (kind === 'bitrate') return 'a bit rate such as 2000000, 128K or 2M';
  if (kind === 'port') return `a port from 1 to ${MAX_PORT}`;
  if (schema['type'] === 'boolean') return 'true or false';
  if (schema['type'] === 'integer' || schema['type'] === 'number') return numberExpectation(schema);
  return 'text';
}

function numberExpectation(schema: TSchema): string {
  const noun = schema['type'] === 'integer' ? 'a whole number' : 'a number';
  const above = schema['exclusiveMinimum'] as number | undefined;
  const least = schema['minimum'] as number | undefined;
  const most = schema['maximum'] as number | undefined;
  if (least !== undefined && most !== undefined) return `${noun} from ${least} to ${most}`;
  if (above !== undefined) return `${noun} above ${above}${most === undefined ? '' : ` and at most ${most}`}`;
  if (least !== undefined) return `${noun} of at least ${least}`;
  return noun;
}

function readKind(kind: LeafKind, schema: TSchema, given: Scalar, directory: string | undefined): LeafResult {
  const text = String(given);
  switch (kind) {
    case 'address':
      // An empty address would mean all addresses of the machine.
      return text === '*' || isIP(text) !== 0 || HOST_NAME.test(text) ? { value: text } : { expected: expectationOf(schema) };
    case 'name':
      return { value: text };
    case 'path':
      return { value: directory === undefined || text === '' ? text : resolve(directory, text) };
    case 'words':
      return {
        value: text
          .split(',')
          .map((word) => word.trim().toLowerCase())
          .filter((word) => word !== ''),
      };
    case 'bitrate':
      return readBitrate(schema, given);
    case 'port':
      return readPort(text, notesOf(schema).protocols ?? []);
    case 'ports':
      return readPorts(text, notesOf(schema).protocols ?? []);
  }
}

function readChoice(schema: TSchema, given: Scalar): LeafResult {
  const text = String(given);
  const value = (schema['enum'] as readonly string[]).find((word) => word.toLowerCase() === text.trim().toLowerCase());
  if (value !== undefined) return { value };
  const refusal = notesOf(schema).refusal;
  return refusal === undefined ? { expected: expectationOf(schema) } : { message: refusal(text) };
}

function readBoolean(given: Scalar): LeafResult {
  const text = String(given).trim().toLowerCase();
  if (text === 'true' || text === 'false') return { value: text === 'true' };
  if (REAL.test(text)) return { value: Number(text) !== 0 };
  return { expected: 'true or false' };
}

function readNumber(schema: TSchema, given: Scalar): LeafResult {
  const text = String(given).trim();
  const value = Number(text);
  const form = schema['type'] === 'integer' ? INTEGER : REAL;
  const written = typeof given === 'number' || form.test(text);
  const fits =
    typeof given !== 'boolean' &&
    written &&
    (schema['type'] === 'integer' ? Number.isSafeInteger(value) : Number.isFinite(value)) &&
    value >= ((schema['minimum'] as number | undefined) ?? Number.NEGATIVE_INFINITY) &&
    value <= ((schema['maximum'] as number | undefined) ?? Number.POSITIVE_INFINITY) &&
    value > ((schema['exclusiveMinimum'] as number | undefined) ?? Number.NEGATIVE_INFINITY);
  return fits ? { value } : { expected: expectationOf(schema) };
}

function readBitrate(schema: TSchema, given: Scalar): LeafResult {
  const match = /^([+-]?\d+(?:\.\d+)?)([km]?)$/i.exec(String(given).trim());
  if (match === null || typeof given === 'boolean') return { expected: expectationOf(schema) };
  const factors: Readonly<Record<string, number>> = { '': 1, k: KIB, m: MIB };
  const value = Math.round(Number(match[1]) * (factors[(match[2] ?? '').toLowerCase()] ?? 1));
  return Number.isSafeInteger(value) ? { value } : { expected: expectationOf(schema) };
}

function readPort(text: string, protocols: readonly string[]): LeafResult {
  const [number = '', protocol, ...rest] = text.trim().split('/');
  const port = portNumber(number);
  if (port === undefined || rest.length > 0) return { expected: `a port from 1 to ${MAX_PORT}, such as 1935 or 1935/${protocols[0]}` };
  if (protocol !== undefined && !protocols.includes(protocol.trim().toLowerCase())) {
    return { expected: `a port of the protocol ${protocols.join(' or ')}` };
  }
  return { value: port };
}

function readPorts(text: string, protocols: readonly string[]): LeafResult {
  const [numbers = '', given, ...rest] = text.trim().split('/');
  const protocol = (given ?? protocols[0] ?? '').trim().toLowerCase();
  if (rest.length > 0 || numbers.trim() === '' || !protocols.includes(protocol)) return { message: `Invalid port expression: ${text}` };
  const ranges: { first: number; last: number }[] = [];
  for (const part of numbers.split(',')) {
    const [from = '', to, ...more] = part.trim().split('-');
    const first = portNumber(from);
    if (first === undefined) return { message: `Invalid port: ${part.trim()}` };
    const last = to === undefined ? first : portNumber(to);
    if (last === undefined || last < first || more.length > 0) return { message: `Invalid port range: ${part.trim()}` };
    ranges.push({ first, last });
  }
  return { value: { protocol, ranges } satisfies PortRanges };
}

function portNumber(text: string): number | undefined {
  if (!/^\d{1,5}$/.test(text.trim())) return undefined;
  const port = Number(text);
  return port >= 1 && port <= MAX_PORT ? port : undefined;
}

/** The fault that `nameRule` finds, with the name in its text. */
export function nameFault(name: string): TextFault | undefined {
  const fault = nameRule(name);
  if (fault === undefined || fault.grave) return fault;
  return { ...fault, text: `${fault.text}, but got ${shown(name)}` };
}
