/** Helm itself, from a development dependency, for the chart in `deploy/helm/`. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { loadAll } from 'js-yaml';
import { ROOT } from './server.ts';

export const CHART = path.join(ROOT, 'deploy/helm/millrace');
/** Whether the program of the package runs on this machine. */
export const CAN_RUN_HELM = process.platform === 'linux' && process.arch === 'x64';
const PROGRAM = 'helm/helm';
const RELEASE = 'show';

/** The parts of any object that the tests check. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

/** An unpacked Helm; `close` removes it. */
export class Helm {
  readonly #folder = mkdtempSync(path.join(tmpdir(), 'millrace-helm-'));
  readonly #program = path.join(this.#folder, 'helm');

  constructor() {
    const archive = path.join(path.dirname(createRequire(import.meta.url).resolve('@aws-cdk/asset-kubectl-v20')), 'layer.zip');
    writeFileSync(this.#program, unzipped(readFileSync(archive), PROGRAM), { mode: 0o755 });
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Each element of `set` is a `path=value`. */
  lint(...set: readonly string[]): { readonly ok: boolean; readonly output: string } {
    return this.#run(['lint', '--strict', CHART, ...setting(set)]);
  }

  /** The objects of an installation. Throws the output of Helm. */
  template(...set: readonly string[]): readonly Manifest[] {
    const { ok, output } = this.#run(['template', RELEASE, CHART, ...setting(set)]);
    if (!ok) throw new Error(output);
    return (loadAll(output) as (Manifest | null)[]).filter((manifest) => manifest !== null);
  }

  /** Violations of Kubernetes' types in objects, including unknown members. */
  judge(manifests: readonly Manifest[]): string {
    const lines = manifests.map(({ apiVersion, kind, ...rest }, index) => {
      const [group = '', version] = apiVersion.includes('/') ? apiVersion.split('/') : ['core', apiVersion];
      const from = `kubernetes-types/${group.replace(/\.k8s\.io$/, '')}/${version}.js`;
      const literal = JSON.stringify({ apiVersion, kind, ...rest });
      return `import type { ${kind} as Kind${index} } from '${from}';\nexport const object${index}: Kind${index} = ${literal};`;
    });
    writeFileSync(path.join(this.#folder, 'objects.ts'), lines.join('\n'));
    symlinkSync(path.join(ROOT, 'node_modules'), path.join(this.#folder, 'node_modules'));
    const compiler = path.join(ROOT, 'node_modules/.bin/tsc');
    const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext'];
    const { stdout, status } = spawnSync(process.execPath, [compiler, ...options, 'objects.ts'], { cwd: this.#folder, encoding: 'utf8' });
    rmSync(path.join(this.#folder, 'node_modules'));
    return status === 0 ? '' : `${stdout}`;
  }

  #run(args: readonly string[]): { readonly ok: boolean; readonly output: string } {
    // Helm keeps charts and plugins in the home folder.
    const run = spawnSync(this.#program, args, { encoding: 'utf8', env: { HOME: this.#folder, PATH: process.env['PATH'] } });
    return { ok: run.status === 0, output: run.status === 0 ? run.stdout : `${run.stdout}\n${run.stderr}` };
  }
}

function setting(set: readonly string[]): readonly string[] {
  return set.flatMap((each) => ['--set', each]);
}

/** A file of a ZIP archive (APPNOTE 4.3), found by the directory at its end. */
function unzipped(archive: Buffer, name: string): Buffer {
  const end = archive.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'));
  let at = archive.readUInt32LE(end + 16);
  for (let left = archive.readUInt16LE(end + 10); left > 0; left -= 1) {
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map((offset) => archive.readUInt16LE(at + offset)) as [
      number,
      number,
      number,
    ];
    if (archive.toString('utf8', at + 46, at + 46 + nameLength) === name) {
      const local = archive.readUInt32LE(at + 42);
      const begin = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28);
      return inflateRawSync(archive.subarray(begin, begin + archive.readUInt32LE(at + 20)));
    }
    at += 46 + nameLength + extraLength + commentLength;
  }
  throw new Error(`${name} is not in the archive`);
}
