/** Part of the build: writes the commit of the checkout beside the compiled code, for `GET /v1/version`. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { commitOf } from '../src/util/git-revision.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** The folder of the compiled code. */
const folder = process.argv[2] ?? `${ROOT}dist`;
const commit = commitOf(ROOT);
if (commit !== null) writeFileSync(`${folder}/revision`, `${commit}\n`);
