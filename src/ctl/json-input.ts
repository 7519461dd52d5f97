/** JSON bodies of requests, from a file or from standard input. */
import { readFileSync } from 'node:fs';
import { messageOf } from '../util/message-of.ts';
import { type Call, UsageProblem } from './command.ts';

/** Content of `--file`, or an empty object without it. Rejects with `UsageProblem` if it is not JSON. */
export async function bodyOf(call: Call): Promise<unknown> {
  const file = call.option('file');
  if (file === undefined) return {};
  const [name, text] = file === '-' ? ['standard input', await call.process.input()] : [file, textOf(file)];
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageProblem(`${name} is not JSON: ${messageOf(error)}`, { cause: error });
  }
}

/** Content of `--file`, which is required. */
export async function neededBody(call: Call): Promise<unknown> {
  if (call.option('file') === undefined) throw new UsageProblem('give the JSON with --file FILE; --file - reads standard input');
  return bodyOf(call);
}

/** The object in `--file`, or an empty one without it. */
export async function objectOf(call: Call): Promise<Record<string, unknown>> {
  const body = await bodyOf(call);
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw new UsageProblem('--file must hold one JSON object');
  return body as Record<string, unknown>;
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageProblem(`${file} cannot be read: ${messageOf(error)}`, { cause: error });
  }
}
