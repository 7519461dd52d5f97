/** A container image without a container engine: the steps of the Dockerfile run in folders, and its program in its own namespaces. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Instruction, readDockerfile, type Stage } from '../support/dockerfile.ts';
import { Child, type ChildExit } from './child.ts';
import { until } from './poll.ts';
import { ROOT } from './server.ts';

/** Parts of a Debian image that the program needs. */
const SYSTEM = ['bin', 'sbin', 'lib', 'lib64', 'usr/bin', 'usr/sbin', 'usr/lib', 'usr/lib64', 'usr/share'];

type Lock = { readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly link?: boolean }>> };

/** The image as a folder. The caller calls `remove`. */
export class Image {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'millrace-image-'));
  readonly final: Stage;
  /** Runs the steps of `deploy/Dockerfile`. Throws for an unknown step, which must then be added here. */
  constructor() {
    const stages = readDockerfile(readFileSync(path.join(ROOT, 'deploy/Dockerfile'), 'utf8'));
    for (const stage of stages) {
      let workdir = '/';
      for (const step of stage.instructions) {
        if (step.name === 'WORKDIR') workdir = step.text;
        this.#take(stage, step, workdir);
      }
    }
    const final = stages.at(-1);
    if (final === undefined) throw new Error('the Dockerfile has no stage');
    this.final = final;
  }

  /** The file system of the last stage. */
  get root(): string {
    return this.#rootOf(this.final);
  }

  /** Words of an instruction that occurs once in the last stage. */
  words(name: string): readonly string[] {
    const [found, ...others] = this.final.instructions.filter((each) => each.name === name);
    if (found === undefined || others.length > 0) throw new Error(`the last stage should have ${name} once`);
    return found.words;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  #rootOf({ name }: Stage): string {
    return path.join(this.folder, name === '' ? 'image' : name);
  }

  #take(stage: Stage, step: Instruction, workdir: string): void {
    const root = this.#rootOf(stage);
    const inside = (place: string): string => path.join(root, path.resolve(workdir, place));
    mkdirSync(inside('.'), { recursive: true });
    if (step.name === 'COPY') {
      const sources = step.words.slice(0, -1);
      const target = step.words.at(-1) ?? '';
      for (const source of sources) {
        const to = target.endsWith('/') ? inside(path.join(target, path.basename(source))) : inside(target);
        if (step.flags['from'] !== undefined) copyTree(path.join(this.folder, step.flags['from'], source), to);
        else if (source === '.') for (const file of contextFiles()) cpSync(path.join(ROOT, file), path.join(to, file));
        else cpSync(path.join(ROOT, source), target.endsWith('/') ? to : inside(target), { recursive: true });
      }
    } else if (step.name === 'RUN') {
      this.#run(step.text, { root, cwd: inside('.') });
    }
  }

  /** Steps that need the network, or would change the machine, are replaced. */
  #run(command: string, { root, cwd }: { readonly root: string; readonly cwd: string }): void {
    if (command === 'npm ci --ignore-scripts') {
      installFromHere(cwd, () => true);
    } else if (command === 'npm prune --omit=dev --ignore-scripts') {
      const { packages } = JSON.parse(readFileSync(path.join(cwd, 'package-lock.json'), 'utf8')) as Lock;
      rmSync(path.join(cwd, 'node_modules'), { recursive: true });
      const isWanted = (name: string): boolean =>
        packages[name] !== undefined && packages[name].dev !== true && packages[name].link !== true;
      installFromHere(cwd, isWanted, copyTree);
    } else if (command === 'node native/build.mjs --strict') {
      // Taken from the checkout, because compiling takes longer than all tests of the image.
      for (const name of ['millrace.node', 'millrace-sandbox'])
        cpSync(path.join(ROOT, 'native/build', name), path.join(cwd, 'native/build', name));
    } else if (/^groupadd .* && useradd /.test(command)) {
      // The user needs no name here.
    } else if (command.startsWith('install --directory ')) {
      const folder = command.split(' ').at(-1) ?? '';
      const [mode] = /(?<=--mode=)\d+/.exec(command) ?? [];
      mkdirSync(path.join(root, folder), { recursive: true });
      if (process.getuid?.() === 0) execFileSync('install', ['-d', '-o', '10001', '-g', '10001', `-m${mode}`, path.join(root, folder)]);
    } else if (/^npm run |^node scripts\//.test(command)) {
      const bin = `${path.dirname(process.execPath)}:${path.join(cwd, 'node_modules/.bin')}:${process.env['PATH']}`;
      const { status, stdout, stderr } = spawnSync('sh', ['-c', command], { cwd, env: { ...process.env, PATH: bin }, encoding: 'utf8' });
      if (status !== 0) throw new Error(`'${command}' ended with ${status}:\n${stdout}${stderr}`);
    } else {
      throw new Error(`the test does not know this step of the Dockerfile: ${command}`);
    }
  }
}

/**
 * A container of an image: read-only except its volume and `/tmp`, without capabilities, with its program as the first process of its
 * namespace.
 */
export class Container {
  readonly child: Child;
  readonly #image: Image;

  /** `mounts`: read-only files of this machine, by their paths inside. */
  constructor(image: Image, options: { readonly args: readonly string[]; readonly mounts: Readonly<Record<string, string>> }) {
    this.#image = image;
    const { root } = image;
    const [user = ''] = image.words('USER');
    const [volume = ''] = image.words('VOLUME');
    for (const place of [...SYSTEM, 'proc', 'dev', 'sys', 'tmp', 'usr/local/bin']) mkdirSync(path.join(root, place), { recursive: true });
    const node = path.join(root, 'usr/local/bin/node');
    if (!existsSync(node)) cpSync(process.execPath, node);
    for (const place of Object.keys(options.mounts)) {
      mkdirSync(path.dirname(path.join(root, place)), { recursive: true });
      if (!existsSync(path.join(root, place))) cpSync(options.mounts[place] ?? '', path.join(root, place));
    }
    const program = [...image.words('ENTRYPOINT'), ...options.args];
    const quoted = program.map((word) => `'${word}'`).join(' ');
    const [uid = '', gid = ''] = user.split(':');
    const script = [
      'set -e',
      `mount --bind '${root}' '${root}'`,
      ...SYSTEM.filter((place) => existsSync(`/${place}`)).map((place) => `mount --bind -o ro /${place} '${root}/${place}'`),
      `mount --rbind /dev '${root}/dev'`,
      `mount --rbind /sys '${root}/sys'`,
      `mount -t proc proc '${root}/proc'`,
      ...Object.entries(options.mounts).map(([place, file]) => `mount --bind '${file}' '${root}${place}'`),
      `mount --bind '${root}${volume}' '${root}${volume}'`,
      `mount -o remount,bind,ro '${root}'`,
      `mount -t tmpfs tmpfs '${root}/tmp'`,
      `cd '${root}'`,
      `exec chroot . setpriv --reuid=${uid} --regid=${gid} --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all sh -c 'cd ${volume}; exec "$@"' sh ${quoted}`,
    ].join('\n');
    this.child = new Child('unshare', ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', script], {
      name: 'container',
      env: { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', NODE_ENV: 'production', HOME: volume },
    });
  }

  /** Process id of its first process on this machine. */
  async pid(): Promise<number> {
    return until('the container has a process', () => {
      const children = readFileSync(`/proc/${this.child.pid}/task/${this.child.pid}/children`, 'utf8').trim();
      return children === '' ? null : Number(children);
    });
  }

  /** Runs the health check of the image, as an engine does; resolves with its exit code. */
  async health(env: NodeJS.ProcessEnv): Promise<number | null> {
    const [program = '', script = ''] = this.#image.words('HEALTHCHECK');
    if (program !== 'node') throw new Error(`the health check is run by ${program}`);
    const check = new Child(process.execPath, [path.join(this.#image.root, script)], { env, name: 'health check' });
    return (await check.ended(15_000)).code;
  }

  /** `docker stop`: SIGTERM to the first process. */
  async stop(): Promise<ChildExit> {
    process.kill(await this.pid(), 'SIGTERM');
    return this.child.ended(10_000);
  }

  async kill(): Promise<void> {
    await this.child.kill();
  }
}

/** Whether this machine permits such containers. */
export function canContain(): boolean {
  if (process.getuid?.() !== 0) return false;
  return spawnSync('unshare', ['--mount', '--pid', '--fork', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir()], { stdio: 'ignore' }).status === 0;
}

/** Files of the build context: files of the repository that `Dockerfile.dockerignore` does not exclude. */
function contextFiles(): string[] {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' });
  const ignored = readFileSync(path.join(ROOT, 'deploy/Dockerfile.dockerignore'), 'utf8').split('\n').filter(Boolean);
  const isIgnored = (file: string): boolean =>
    ignored.some((pattern) =>
      pattern.startsWith('**/')
        ? file.split('/').includes(pattern.slice('**/'.length))
        : file === pattern || file.startsWith(`${pattern}/`),
    );
  return listed.split('\n').filter((file) => file !== '' && !isIgnored(file) && existsSync(path.join(ROOT, file)));
}

/** Installs the packages selected by `wants` from this checkout, by the names of the lock file. */
function installFromHere(cwd: string, wants: (name: string) => boolean, put: (from: string, to: string) => void = symlinkSync): void {
  const modules = path.join(ROOT, 'node_modules');
  const names = readdirSync(modules).flatMap((name) =>
    name.startsWith('@') ? readdirSync(path.join(modules, name)).map((inner) => `${name}/${inner}`) : [name],
  );
  for (const name of names) {
    const isPackage = existsSync(path.join(modules, name, 'package.json'));
    if (!isPackage || !wants(`node_modules/${name}`)) continue;
    const to = path.join(cwd, 'node_modules', name);
    mkdirSync(path.dirname(to), { recursive: true });
    put(path.join(modules, name), to);
  }
  const bin = path.join(cwd, 'node_modules/.bin');
  mkdirSync(bin, { recursive: true });
  for (const name of readdirSync(path.join(modules, '.bin'))) {
    // Its own Node.js comes without scripts.
    if (name !== 'node') symlinkSync(path.join(modules, '.bin', name), path.join(bin, name));
  }
}

/** With hard links if possible, because packages are large. Links to folders become folders. */
function copyTree(from: string, to: string): void {
  const file = lstatSync(from);
  if (file.isSymbolicLink()) copyTree(path.resolve(path.dirname(from), readlinkSync(from)), to);
  else if (file.isDirectory()) {
    // An installation without scripts lacks the runtime of the package `node`.
    if (/\/node_modules\/node$|\/node_modules\/\.bin$/.test(from)) return;
    mkdirSync(to, { recursive: true });
    for (const name of readdirSync(from)) copyTree(path.join(from, name), path.join(to, name));
  } else linkFile(from, to);
}

function linkFile(from: string, to: string): void {
  mkdirSync(path.dirname(to), { recursive: true });
  try {
    linkSync(from, to);
  } catch {
    cpSync(from, to);
  }
}
