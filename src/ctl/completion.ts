/** Scripts that complete `millrace ctl` in a shell, generated from the table of commands. */
import { commands } from './commands.ts';
import { CONNECTION_OPTIONS } from './connection.ts';

/** Commands of `millrace` itself with their options; options with a value end with `=`. */
const PROGRAM: Readonly<Record<string, readonly string[]>> = {
  serve: ['config=', 'state=', 'forget-api-state', 'log-format=', 'log-level=', 'watch-config'],
  check: ['config=', 'state=', 'against=', 'log-format=', 'log-level='],
  doctor: ['config=', 'state=', 'stun=', 'json'],
  'sign-url': [
    ...[
      'expire=',
      'activate=',
      'stream-expire=',
      'allow-ip=',
      'real-ip=',
      'for=',
      'vhost=',
      'secret-file=',
      'policy-key=',
      'signature-key=',
    ],
    'config=',
  ],
};

/** Supported shells. */
export const SHELLS = ['bash', 'zsh'] as const;

/** The possible next words after the words typed before, which are a pattern of the shells' `case`. */
interface Next {
  readonly pattern: string;
  readonly words: readonly string[];
}

/** The script for a shell of `SHELLS`. */
export function completionScript(shell: (typeof SHELLS)[number]): string {
  return shell === 'bash' ? bashScript() : zshScript();
}

function bashScript(): string {
  return `# Completion of millrace in bash: source <(millrace ctl completion bash)
_millrace() {
  local words word current='' command='' skip='' next=''
  # The words of the line itself: bash divides URLs at their colons.
  read -ra words <<< "\${COMP_LINE:0:COMP_POINT}"
  if [[ "\${COMP_LINE:0:COMP_POINT}" != *[[:space:]] ]]; then
    current="\${words[-1]}"
    unset 'words[-1]'
  fi
  for word in "\${words[@]:1}"; do
    if [[ -n "$skip" ]]; then skip=''; continue; fi
    case "$word" in
      ${valued().join('|')}) skip="$word" ;;
      -*) ;;
      *) command+="$word " ;;
    esac
  done
  case "$skip" in
    '') ;;
    ${files().join('|')}) COMPREPLY=($(compgen -f -- "$current")); return ;;
    *) COMPREPLY=(); return ;;
  esac
  case "$command" in
${cases()
  .map(({ pattern, words }) => `    ${pattern}) next='${words.join(' ')}' ;;`)
  .join('\n')}
  esac
  COMPREPLY=($(compgen -W "$next" -- "$current"))
}
complete -o bashdefault -F _millrace millrace
`;
}

function zshScript(): string {
  return `#compdef millrace
# Completion of millrace in zsh: source <(millrace ctl completion zsh), or a file _millrace in a folder of fpath
_millrace() {
  local word command='' skip='' next=''
  for word in "\${(@)words[2,CURRENT-1]}"; do
    if [[ -n "$skip" ]]; then skip=''; continue; fi
    case "$word" in
      (${valued().join('|')}) skip="$word" ;;
      (-*) ;;
      (*) command+="$word " ;;
    esac
  done
  case "$skip" in
    ('') ;;
    (${files().join('|')}) _files; return ;;
    (*) return ;;
  esac
  case "$command" in
${cases()
  .map(({ pattern, words }) => `    (${pattern}) next='${words.join(' ')}' ;;`)
  .join('\n')}
  esac
  compadd -- \${=next}
}
if [[ "\${funcstack[1]}" == _millrace ]]; then
  _millrace "$@"
else
  compdef _millrace millrace
fi
`;
}

/** The longest patterns first: a shell takes the first match. */
function cases(): Next[] {
  const common = Object.keys(CONNECTION_OPTIONS).map((name) => `--${name}`);
  const own = commands.map(({ name, options = {} }) => ({
    pattern: `"ctl ${name} "*`,
    words: [...Object.keys(options).map((option) => `--${option}`), ...common, '--help'],
  }));
  const firsts = [...new Set(commands.map(({ name }) => name.split(' ')[0] ?? ''))];
  const groups = firsts.flatMap((first) => {
    const seconds = commands.flatMap(({ name }) => (name.startsWith(`${first} `) ? [name.slice(first.length + 1)] : []));
    return seconds.length === 0 ? [] : [{ pattern: `"ctl ${first} "`, words: seconds }];
  });
  return [
    ...own.sort((a, b) => b.pattern.length - a.pattern.length),
    ...groups,
    { pattern: '"ctl completion "', words: SHELLS },
    { pattern: '"ctl "', words: [...firsts, 'completion', 'help', ...common, '--help'] },
    ...Object.entries(PROGRAM).map(([name, options]) => ({
      pattern: `"${name} "*`,
      words: [...options.map((option) => `--${option.replace('=', '')}`), '--help'],
    })),
    { pattern: "''", words: [...Object.keys(PROGRAM), 'ctl', '--help', '--version'] },
  ];
}

/** Options with a value. */
function valued(): string[] {
  const program = Object.values(PROGRAM).flatMap((options) =>
    options.filter((option) => option.endsWith('=')).map((option) => option.slice(0, -1)),
  );
  const all = [CONNECTION_OPTIONS, ...commands.map(({ options = {} }) => options)].flatMap((options) => Object.entries(options));
  const names = [...all.flatMap(([name, { value }]) => (value === undefined ? [] : [name])), ...program];
  return ['-f', ...new Set(names.map((name) => `--${name}`))];
}

/** Options whose value is a local file or folder. */
function files(): string[] {
  return ['-f', '--file', '--token-file', '--config', '--state', '--secret-file'];
}
