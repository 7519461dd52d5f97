/**
 * Asks the registry for known vulnerabilities of production dependencies. Exit code 1: high or critical vulnerabilities, listed by name;
 * 77: the registry has no answer (most mirrors have none); 0: none.
 */
import { spawn } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** Exit code of a step that was impossible. */
export const SKIPPED = 77;
const DEADLINE_MS = 60_000;
const ARGUMENTS = ['audit', '--omit=dev', '--audit-level=high', '--json', '--fetch-retries=0'];
const GRAVE: readonly unknown[] = ['high', 'critical'];

/** The result as text for people. */
export interface Verdict {
  readonly code: 0 | 1 | typeof SKIPPED;
  readonly lines: readonly string[];
}

/** Runs `npm audit` in `root`, with `environment` added to the present one. Never rejects. */
export async function audit(root: string, environment: NodeJS.ProcessEnv = {}, deadlineMs = DEADLINE_MS): Promise<Verdict> {
  const { promise, resolve } = Promise.withResolvers<Verdict>();
  const child = spawn('npm', ARGUMENTS, { cwd: root, env: { ...process.env, ...environment }, stdio: ['ignore', 'pipe', 'ignore'] });
  const deadline = setTimeout(() => {
    child.kill('SIGKILL');
    resolve(skipped(`nothing within ${deadlineMs / 1000} s`));
  }, deadlineMs);
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  child.once('error', (error) => resolve(skipped(error.message)));
  child.once('close', () => resolve(verdictOf(text)));
  const verdict = await promise;
  clearTimeout(deadline);
  return verdict;
}

/** Parses npm's output; anything but a list of vulnerabilities counts as no answer. */
export function verdictOf(text: string): Verdict {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    return skipped('npm said nothing that can be read');
  }
  const { vulnerabilities, metadata, message } = isObject(answer) ? answer : {};
  if (!isObject(vulnerabilities) || !isObject(metadata)) return skipped(typeof message === 'string' ? message : 'npm has no list');
  const grave = Object.entries(vulnerabilities).flatMap(([name, found]) =>
    isObject(found) && GRAVE.includes(found['severity'])
      ? `${name} ${String(found['range'])}: ${String(found['severity'])}, ${titlesOf(found)}`
      : [],
  );
  if (grave.length > 0) return { code: 1, lines: grave };
  return { code: 0, lines: ['no known vulnerability of production dependencies is high or critical'] };
}

function titlesOf({ via }: Record<string, unknown>): string {
  const causes: readonly unknown[] = Array.isArray(via) ? via : [];
  return causes
    .map((cause) => (isObject(cause) ? `${String(cause['title'])} (${String(cause['url'])})` : `by ${String(cause)}`))
    .join('; ');
}

function skipped(why: string): Verdict {
  return { code: SKIPPED, lines: [`skipped: the registry does not answer (${why})`] };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

if (import.meta.main) {
  const { code, lines } = await audit(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
  for (const line of lines) console.log(line);
  process.exitCode = code;
}
