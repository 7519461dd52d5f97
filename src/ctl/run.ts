/** `millrace ctl`: finds the command, runs it, and prints the result. */
import { messageOf } from '../util/message-of.ts';
import { packageVersion } from '../util/package-version.ts';
import { parseArguments } from '../util/parse-arguments.js';
import { didYouMean } from '../util/similar-name.js';
import { type Call, type Command, CtlExit, type CtlProcess, type Option, UsageProblem } from './command.ts';
import { commandNamed, commands, commandsUnder } from './commands.ts';
import { completionScript, SHELLS } from './completion.ts';
import { CONNECTION_OPTIONS, connect } from './connection.ts';
import { type Attempt, failureOf } from './failure.ts';
import { commandHelp, groupHelp, overview } from './help.ts';
import { Output } from './output.ts';

/** Runs `millrace ctl` with the arguments after its name; resolves with the exit code. */
export async function runCtl(args: readonly string[], process: CtlProcess): Promise<number> {
  const attempt: Attempt = {};
  try {
    const { leading, rest } = split(args);
    if (rest.length === 0 && leading.includes('--version')) {
      process.out(`${packageVersion()}\n`);
      return CtlExit.DONE;
    }
    if (isHelp(leading) || rest[0] === 'help' || args.length === 0) {
      (args.length === 0 ? process.err : process.out)(overview());
      return args.length === 0 ? CtlExit.USAGE : CtlExit.DONE;
    }
    if (rest[0] === 'completion') return completion(rest.slice(1), process);
    const command = commandNamed(rest);
    if (command === undefined) return unknown(rest, leading, process);
    attempt.command = command.name;
    const own = rest.slice(command.name.split(' ').length);
    if (isHelp(own)) {
      process.out(commandHelp(command));
      return CtlExit.DONE;
    }
    await run(command, [...leading, ...own], process, attempt);
    return CtlExit.DONE;
  } catch (error) {
    const { text, code } = failureOf(error, attempt);
    process.err(text);
    return code;
  }
}

/** Options before the command are allowed if every command has them. */
function split(args: readonly string[]): { readonly leading: readonly string[]; readonly rest: readonly string[] } {
  let at = 0;
  while (at < args.length && args[at]?.startsWith('-') === true) {
    const name = args[at]?.replace(/^--/, '') ?? '';
    at += CONNECTION_OPTIONS[name]?.value === undefined ? 1 : 2;
  }
  return { leading: args.slice(0, at), rest: args.slice(at) };
}

/** After `--` everything is an argument. */
function isHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end < 0 ? args.length : end).some((argument) => argument === '--help' || argument === '-h');
}

function unknown(rest: readonly string[], leading: readonly string[], process: CtlProcess): number {
  // The first word of `rest` is the value of an unknown option before it.
  parsed(leading, CONNECTION_OPTIONS);
  const [word = '', next = ''] = rest;
  const group = commandsUnder(word);
  if (group.length > 0 && isHelp(rest.slice(1))) {
    process.out(groupHelp(word, group));
    return CtlExit.DONE;
  }
  if (group.length > 0) {
    const kinds = group.map(({ name }) => name.slice(word.length + 1));
    const other = next === '' || next.startsWith('-') ? '' : `, not '${next}'${didYouMean(next, kinds)}`;
    throw new UsageProblem(`${word} needs one of: ${kinds.join(', ')}${other}`);
  }
  throw new UsageProblem(word === '' ? 'give a command' : `unknown command '${word}'${suggestionFor(word)}`);
}

/** Commands that list objects are plurals. */
function suggestionFor(word: string): string {
  const words = new Set(['completion', 'help', ...commands.map(({ name }) => name.split(' ', 1)[0] ?? '')]);
  return didYouMean(words.has(`${word}s`) ? `${word}s` : word, words);
}

function completion(args: readonly string[], process: CtlProcess): number {
  const shell = SHELLS.find((name) => name === args[0]);
  if (shell === undefined || args.length > 1) throw new UsageProblem(`completion is for ${SHELLS.join(' or ')}`);
  process.out(completionScript(shell));
  return CtlExit.DONE;
}

/** `attempt` collects details for error texts. */
async function run(command: Command, args: readonly string[], process: CtlProcess, attempt: Attempt): Promise<void> {
  const { values, positionals } = parsed(args, { ...CONNECTION_OPTIONS, ...command.options });
  const options = (name: string): readonly string[] => [values[name] ?? []].flat().filter((value) => typeof value === 'string');
  const option = (name: string): string | undefined => options(name).at(-1);
  attempt.args = positionals;
  const { client, tokenFrom } = connect(option, process.env, { open: command.open === true, any: command.any === true });
  if (tokenFrom !== null) attempt.tokenFrom = tokenFrom;
  const call: Call = {
    client,
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
    return parseArguments({ args: [...args], allowPositionals: true, options });
  } catch (error) {
    throw new UsageProblem(messageOf(error), { cause: error });
  }
}
