/** Reads a Dockerfile as far as ours need it: stages, instructions, exec forms, variables of `ARG`. */

/** An instruction of a stage, with its variables replaced. */
export interface Instruction {
  readonly name: string;
  /** The text after the name, on one line. */
  readonly text: string;
  /** Flags before the text: `--from=build`. */
  readonly flags: Readonly<Record<string, string>>;
  /** The elements of a JSON array, or the words between blanks. */
  readonly words: readonly string[];
}

/** A stage, from its `FROM` on. */
export interface Stage {
  readonly image: string;
  /** Empty for a stage without a name. */
  readonly name: string;
  readonly instructions: readonly Instruction[];
}

const FLAG = /^--([\w-]+)(?:=(\S+))?\s+/;

/** The stages of a Dockerfile, in order. Throws for an instruction before the first stage. */
export function readDockerfile(text: string): Stage[] {
  const variables = new Map<string, string>();
  const stages: { image: string; name: string; instructions: Instruction[] }[] = [];
  const lines = text
    .split('\n')
    .filter((line) => !/^\s*(#|$)/.test(line))
    .join('\n')
    .replaceAll(/\\\n/g, ' ')
    .split('\n');
  for (const line of lines.filter((one) => one.trim() !== '')) {
    const [, name = '', given = ''] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
    if (name === 'ARG') {
      const [variable = '', value = ''] = given.split('=');
      variables.set(variable, value);
      continue;
    }
    const expanded = given.replaceAll(/\$\{(\w+)\}/g, (_all, variable: string) => variables.get(variable) ?? '');
    if (name === 'FROM') {
      const [image = '', , stage = ''] = expanded.split(/\s+/);
      stages.push({ image, name: stage, instructions: [] });
      continue;
    }
    const stage = stages.at(-1);
    if (stage === undefined) throw new Error(`'${line}' stands in no stage`);
    stage.instructions.push(instruction(name, expanded));
  }
  return stages;
}

function instruction(name: string, given: string): Instruction {
  const flags: Record<string, string> = {};
  let text = given;
  for (let flag = FLAG.exec(text); flag !== null; flag = FLAG.exec(text)) {
    flags[flag[1] ?? ''] = flag[2] ?? '';
    text = text.slice(flag[0].length);
  }
  // The command of a health check follows the word CMD.
  const command = name === 'HEALTHCHECK' ? text.replace(/^CMD\s+/, '') : text;
  const words = command.startsWith('[') ? (JSON.parse(command) as string[]) : command.split(/\s+/);
  return { name, text, flags, words };
}
