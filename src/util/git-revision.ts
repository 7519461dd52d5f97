/** The commit of the running code. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const COMMIT = /^[0-9a-f]{40,64}$/;
const SHORT = 12;
/** `scripts/keep-revision.ts` writes it beside the compiled code, which has no repository. */
const KEPT = new URL('../revision', import.meta.url);

/** Short hash of the commit of this code; empty if neither a build nor a checkout has it. Uncommitted changes are not shown. */
export function gitRevision(): string {
  const kept = read(fileURLToPath(KEPT));
  const commit = kept ?? commitOf(fileURLToPath(new URL('../..', import.meta.url)));
  return commit?.slice(0, SHORT) ?? '';
}

/** The commit that is checked out in `folder`; null when `folder` is not in a checkout. */
export function commitOf(folder: string): string | null {
  const own = gitFolderOf(folder);
  const head = read(join(own, 'HEAD'));
  if (head === null) return null;
  const name = /^ref: (.+)$/.exec(head)?.[1];
  if (name === undefined) return COMMIT.test(head) ? head : null;
  // A linked work tree has its own head, but its branches are in the main repository.
  const common = resolve(own, read(join(own, 'commondir')) ?? '.');
  const loose = read(join(common, name));
  if (loose !== null && COMMIT.test(loose)) return loose;
  const packed = read(join(common, 'packed-refs'))?.split('\n') ?? [];
  const line = packed.find((text) => text.endsWith(` ${name}`));
  const commit = line?.slice(0, line.indexOf(' ')) ?? '';
  return COMMIT.test(commit) ? commit : null;
}

function gitFolderOf(folder: string): string {
  const place = join(folder, '.git');
  const elsewhere = /^gitdir: (.+)$/.exec(read(place) ?? '')?.[1];
  return elsewhere === undefined ? place : resolve(folder, elsewhere);
}

/** The text of a file without white space around it; null when it cannot be read. */
function read(file: string): string | null {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return null;
  }
}
