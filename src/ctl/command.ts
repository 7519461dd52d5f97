/** A command of `millrace ctl`, and its arguments. */
import type { MillraceClient } from '../client/index.ts';
import type { Output } from './output.ts';

/** Exit codes of `millrace ctl`. */
export const CtlExit = { DONE: 0, REFUSED: 1, USAGE: 2, UNREACHABLE: 3 } as const;

/** Wrong arguments; the message is a sentence. */
export class UsageProblem extends Error {}

/** The server does not have the requested object; the message is a sentence. */
export class NotThere extends Error {}

/** An option of a command. */
export interface Option {
  /** Name of its value in the help; absent: it takes none. */
  readonly value?: string;
  readonly about: string;
  /** May be given several times. */
  readonly multiple?: boolean;
}

/** The streams of the process, and its environment. */
export interface CtlProcess {
  readonly env: NodeJS.ProcessEnv;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** Reads all of standard input. */
  readonly input: () => Promise<string>;
}

/** A command with the arguments of its call. */
export interface Call {
  readonly client: MillraceClient;
  /** Arguments after the name of the command. */
  readonly args: readonly string[];
  readonly out: Output;
  readonly process: CtlProcess;
  /** Value of an option; undefined when it was not given. */
  option(name: string): string | undefined;
  /** Values of an option that may be given several times. */
  options(name: string): readonly string[];
  /** Whether an option without a value was given. */
  flag(name: string): boolean;
}

/** One command. */
export interface Command {
  /** Its words: `record start`. */
  readonly name: string;
  /** Its arguments as the help shows them: `VHOST/APP/STREAM`. */
  readonly usage: string;
  readonly summary: string;
  readonly options?: Readonly<Record<string, Option>>;
  /** Further text for its own help. */
  readonly details?: string;
  /** Needs no token. */
  readonly open?: boolean;
  /** Accepts answers that are not JSON. */
  readonly any?: boolean;
  readonly run: (call: Call) => Promise<void>;
}

/** The option of `create`, `patch` and other commands with a body. */
export const FILE_OPTION: Readonly<Record<string, Option>> = {
  file: { value: 'FILE', about: 'JSON of the request; - is standard input' },
};

/** Splits an address with at least `least` of these names: `addressed('default/app', ['vhost', 'app', 'stream'], 1)`. */
export function addressed<N extends string>(text: string, names: readonly N[], least = names.length): Partial<Record<N, string>> {
  const parts = text.split('/');
  if (parts.length < least || parts.length > names.length || parts.includes('')) {
    throw new UsageProblem(`'${text}' is not ${addressForm(names, least)}`);
  }
  return Object.fromEntries(parts.map((part, n) => [names[n], part])) as Partial<Record<N, string>>;
}

/** An address with all names. */
export function fullAddress<N extends string>(call: Call, ...names: readonly N[]): Record<N, string> {
  return addressed(oneArgument(call, addressForm(names)), names) as Record<N, string>;
}

/** The only argument of a command. */
export function oneArgument({ args }: Call, what: string): string {
  const [argument, ...more] = args;
  if (argument === undefined || more.length > 0) throw new UsageProblem(`give ${what}`);
  return argument;
}

/** The only argument, which is optional. */
export function optionalArgument({ args }: Call, what: string): string | undefined {
  if (args.length > 1) throw new UsageProblem(`give ${what}, or nothing`);
  return args[0];
}

/** A required value of an option. */
export function required(call: Call, name: string, why: string): string {
  const value = call.option(name);
  if (value === undefined || value === '') throw new UsageProblem(`--${name} ${why}`);
  return value;
}

/** `VHOST/APP/STREAM`; optional names in brackets. */
function addressForm(names: readonly string[], least = names.length): string {
  const words = names.map((name) => name.toUpperCase());
  const optional = words.slice(least);
  return words.slice(0, least).join('/') + optional.map((word) => `[/${word}`).join('') + ']'.repeat(optional.length);
}
