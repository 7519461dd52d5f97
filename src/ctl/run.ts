/** `millrace ctl`: finds the command, runs it, and says what became of it. */
import { parseArgs } from 'node:util';
import { isFailure, MillraceError, UnreachableError } from '../client/index.ts';
import { plainText } from '../util/plain-text.ts';
import { type Call, type Command, CtlExit, type CtlProcess, NotThere, type Option, UsageProblem } from './command.ts';
import { commandNamed, commandsUnder } from './commands.ts';
import { completionScript, SHELLS } from './completion.ts';
import { CONNECTION_OPTIONS, connect } from './connection.ts';
import { commandHelp, groupHelp, overview } from './help.ts';
import { Output } from './output.ts';

/** What is answered to a name that is taken, at times without a word more. */
const CONFLICT = 409;

/** Runs `millrace ctl` with the arguments behind its name; resolves with the exit code. */
export async function runCtl(args: readonly string[], process: CtlProcess): Promise<number> {
  try {
    const { leading, rest } = split(args);
    if (isHelp(leading) || rest[0] === 'help' || args.length === 0) {
      (args.length === 0 ? process.err : process.out)(overview());
      return args.length === 0 ? CtlExit.USAGE : CtlExit.DONE;
    }
    if (rest[0] === 'completion') return completion(rest.slice(1), process);
    const command = commandNamed(rest);
    if (command === undefined) return unknown(rest, process);
    const own = rest.slice(command.name.split(' ').length);
    if (isHelp(own)) {
      process.out(commandHelp(command));
      return CtlExit.DONE;
    }
    await run(command, [...leading, ...own], process);
    return CtlExit.DONE;
  } catch (error) {
    return failed(error, process);
  }
}

/** Options may stand before the command, too; there they are those of every command. */
function split(args: readonly string[]): { readonly leading: readonly string[]; readonly rest: readonly string[] } {
  let at = 0;
  while (at < args.length && args[at]?.startsWith('-') === true) {
    const name = args[at]?.replace(/^--/, '') ?? '';
    at += CONNECTION_OPTIONS[name]?.value === undefined ? 1 : 2;
  }
  return { leading: args.slice(0, at), rest: args.slice(at) };
}

/** Behind `--` there are arguments alone. */
function isHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end < 0 ? args.length : end).some((argument) => argument === '--help' || argument === '-h');
}

function unknown(rest: readonly string[], process: CtlProcess): number {
  const [word = ''] = rest;
  const group = commandsUnder(word);
  if (group.length > 0 && isHelp(rest.slice(1))) {
    process.out(groupHelp(word, group));
    return CtlExit.DONE;
  }
  if (group.length > 0) throw new UsageProblem(`${word} needs one of: ${group.map(({ name }) => name.slice(word.length + 1)).join(', ')}`);
  throw new UsageProblem(word === '' ? 'give a command' : `unknown command '${word}'`);
}

function completion(args: readonly string[], process: CtlProcess): number {
  const shell = SHELLS.find((name) => name === args[0]);
  if (shell === undefined || args.length > 1) throw new UsageProblem(`completion is for ${SHELLS.join(' or ')}`);
  process.out(completionScript(shell));
  return CtlExit.DONE;
}

async function run(command: Command, args: readonly string[], process: CtlProcess): Promise<void> {
  const { values, positionals } = parsed(args, { ...CONNECTION_OPTIONS, ...command.options });
  const options = (name: string): readonly string[] => [values[name] ?? []].flat().filter((value) => typeof value === 'string');
  const option = (name: string): string | undefined => options(name).at(-1);
  const call: Call = {
    client: connect(option, process.env, { open: command.open === true }),
    args: positionals,
    out: new Output(process.out, values['json'] === true),
    process,
    option,
    options,
    flag: (name) => values[name] === true,
  };
  await command.run(call);
}

function parsed(args: readonly string[], known: Readonly<Record<string, Option>>) {
  const options = Object.fromEntries(
    Object.entries(known).map(([name, { value, multiple = false }]) => [
      name,
      { type: value === undefined ? ('boolean' as const) : ('string' as const), multiple, ...(name === 'file' && { short: 'f' }) },
    ]),
  );
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options });
  } catch (error) {
    throw new UsageProblem((error as Error).message, { cause: error });
  }
}

/** Says what went wrong, in the words of the server where it had some. What nobody expects is thrown on. */
function failed(error: unknown, { err }: CtlProcess): number {
  const say = (text: string): void => err(`millrace ctl: ${plainText(text)}\n`);
  if (error instanceof MillraceError) {
    for (const sentence of refusals(error)) say(sentence);
    return CtlExit.REFUSED;
  }
  if (error instanceof NotThere) {
    say(error.message);
    return CtlExit.REFUSED;
  }
  if (error instanceof UnreachableError) {
    say(error.message);
    return CtlExit.UNREACHABLE;
  }
  // The client throws the latter for a name that no path can hold.
  if (error instanceof UsageProblem || (error instanceof TypeError && error.message.startsWith('No path of the API'))) {
    say(`${error.message}\nTry 'millrace ctl --help'.`);
    return CtlExit.USAGE;
  }
  throw error;
}

/** A batch of more than one says of each item that failed which it was. */
function refusals({ status, message, reason, items }: MillraceError): string[] {
  const words = (text: string, code: number): string =>
    code === CONFLICT && text === 'Conflict' ? `${text}: there is one of this name already` : text;
  if (items.length < 2) return [reason === null ? words(message, status) : `${message} (${reason})`];
  return items.flatMap((item, n) =>
    isFailure(item.statusCode) ? [`item ${n + 1} of ${items.length}: ${words(item.message, item.statusCode)}`] : [],
  );
}
