/** Problems of a configuration, and their texts. */
import { showHidden } from '../util/hidden-characters.ts';

/** The place of a fault in the input. */
export interface Place {
  /** JSON: `application.outputProfiles.outputProfile[0].name`. XML: `Server/Bind/Providers/RTMP/Port`. */
  readonly path: string;
  readonly file?: string;
  /** Counted from 1. */
  readonly line?: number;
}

/** A fault that stops nothing. */
export interface ConfigWarning extends Place {
  readonly message: string;
}

/** A configuration that cannot be used. API answers show `message` behind `[Config] `. */
export class ConfigError extends Error implements Place {
  override readonly name: string = 'ConfigError';
  readonly path: string;
  readonly file?: string;
  readonly line?: number;

  constructor(message: string, place: Place) {
    super(message);
    this.path = place.path;
    if (place.file !== undefined) this.file = place.file;
    if (place.line !== undefined) this.line = place.line;
  }
}

/** Everything wrong with a configuration file; reported together, so that one run is enough to fix it. */
export class ConfigErrors extends Error {
  override readonly name = 'ConfigErrors';
  readonly errors: readonly ConfigError[];
  readonly warnings: readonly ConfigWarning[];

  constructor(errors: readonly ConfigError[], warnings: readonly ConfigWarning[] = []) {
    super(errors.map(formatConfigProblem).join('\n'));
    this.errors = errors;
    this.warnings = warnings;
  }
}

/** One line for people: `conf/Server.xml:12: Server/Type: Unknown type: orign`. */
export function formatConfigProblem(problem: ConfigError | ConfigWarning): string {
  const { message, path, file, line } = problem;
  const text = path === '' || message.includes(path) ? message : `${path}: ${message}`;
  if (file === undefined) return text;
  return line === undefined ? `${file}: ${text}` : `${file}:${line}: ${text}`;
}

const MAX_SHOWN_CHARACTERS = 80;

/** A value as error texts show it. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  const text = showHidden(JSON.stringify(value) ?? 'nothing');
  return text.length > MAX_SHOWN_CHARACTERS ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}…` : text;
}
