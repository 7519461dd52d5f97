import { actionCommands } from './actions.ts';
import type { Command } from './command.ts';
import { definitionCommands } from './definitions.ts';
import { historyCommand } from './history.ts';
import { listCommands } from './lists.ts';
import { logCommand } from './log.ts';
import { recordedCommand } from './recorded.ts';
import { taskCommands } from './tasks.ts';
import { watchCommand } from './watch.ts';

/** Every command of `millrace ctl` that sends requests. */
export const commands: readonly Command[] = [
  ...[...listCommands, historyCommand, ...taskCommands, recordedCommand],
  ...[...definitionCommands, ...actionCommands, watchCommand, logCommand],
];

/** The command with the first words of `args`; undefined if there is none. */
export function commandNamed(args: readonly string[]): Command | undefined {
  const fits = commands.filter(({ name }) => name.split(' ').every((word, n) => args[n] === word));
  return fits.sort((a, b) => b.name.length - a.name.length)[0];
}

/** Commands of several words that start with `word`: `create`, `record` … */
export function commandsUnder(word: string): readonly Command[] {
  return commands.filter(({ name }) => name.startsWith(`${word} `));
}
