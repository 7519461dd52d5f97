/** The output of `--help`. */
import type { Command, Option } from './command.ts';
import { commands } from './commands.ts';
import { CONNECTION_OPTIONS } from './connection.ts';

const EXIT = `Exit codes: 0 done, 1 the server refused (its message is on standard error), 2 wrong arguments, 3 no answer.
`;

/** Help for all of `millrace ctl`. */
export function overview(): string {
  return `Runs a Millrace server through its API.

Usage: millrace ctl COMMAND [ARGUMENTS] [options]
       millrace ctl COMMAND --help

Commands
${commandLines(commands)}
  completion bash|zsh          Print a script that completes these commands in a shell

Options of every command
${optionLines(CONNECTION_OPTIONS)}

Without --api and MILLRACE_API the server of this machine is used: the address is from its configuration (conf/Server.xml, or --config), the
token that of the configuration or of the state folder. Names of streams and the like are joined by slashes: default/app/live.

${EXIT}`;
}

/** Help for commands with the same first word. */
export function groupHelp(word: string, group: readonly Command[]): string {
  return `Usage: millrace ctl ${word} …\n\n${commandLines(group)}\n`;
}

/** Help for one command. */
export function commandHelp({ name, usage, summary, details, options = {} }: Command): string {
  const own = Object.keys(options).length === 0 ? '' : `Options\n${optionLines(options)}\n\n`;
  return `${summary}.

Usage: millrace ctl ${name}${usage === '' ? '' : ` ${usage}`} [options]
${details === undefined ? '' : `\n${details}\n`}
${own}Options of every command
${optionLines(CONNECTION_OPTIONS)}

${EXIT}`;
}

function commandLines(list: readonly Command[]): string {
  return list.map(({ name, summary }) => `  ${name.padEnd(28)} ${summary}`).join('\n');
}

function optionLines(options: Readonly<Record<string, Option>>): string {
  return Object.entries(options)
    .map(([name, { value, about, multiple }]) => {
      const shown = `${name === 'file' ? '-f, ' : ''}--${name}${value === undefined ? '' : ` ${value}`}`;
      return `  ${shown.padEnd(20)} ${about}${multiple === true ? ' (may be repeated)' : ''}`;
    })
    .join('\n');
}
