/** The package as it is published: compiled, and run without the sources beside it. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { packageVersion } from '../../src/package-version.ts';
import { probe } from './support/probe.ts';
import { publish } from './support/publisher.ts';
import { ROOT, startServer } from './support/server.ts';

const TSC = path.join(ROOT, 'node_modules/typescript/bin/tsc');

/** A folder with `node_modules/millrace` in it. */
let project: string;
let main: string;

/** Runs a program to its end and returns what it printed; it must exit with 0. */
function node(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: project, encoding: 'utf8', timeout: 60_000 });
  expect(status, `${stdout}${stderr}`).toBe(0);
  return stdout;
}

beforeAll(() => {
  project = mkdtempSync(path.join(tmpdir(), 'millrace-package-'));
  const modules = path.join(project, 'node_modules');
  const folder = path.join(modules, 'millrace');
  node(TSC, '-p', path.join(ROOT, 'tsconfig.build.json'), '--outDir', path.join(folder, 'dist'));
  for (const name of ['package.json', 'conf']) cpSync(path.join(ROOT, name), path.join(folder, name), { recursive: true });
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
  symlinkSync(path.join(ROOT, 'node_modules/@types'), path.join(modules, '@types'));
  main = path.join(folder, 'dist/main.js');
});

afterAll(() => rmSync(project, { recursive: true, force: true }));

test('says its version and finds the configuration inside the package', () => {
  expect(node(main, '--version')).toContain(packageVersion());
  expect(node(main, 'check')).toContain(path.join('millrace', 'conf', 'Server.xml'));
});

test('serves LL-HLS from its threads', async () => {
  const server = await startServer({ main, segmentDuration: 1 });
  onTestFinished(() => server.close());
  const encoder = publish({ url: server.rtmp('live'), width: 320, height: 180, videoKbps: 300 });
  onTestFinished(async () => {
    await encoder.stop();
  });
  await encoder.sent(90);
  const { video } = await probe(server.http('live', 'llhls.m3u8'));
  expect(video).toMatchObject({ codec_name: 'h264', width: 320 });
});

test('a program that uses it as a library type-checks', () => {
  const program = path.join(project, 'program.mts');
  writeFileSync(
    program,
    `import { createLogger, MillraceServer, type ServerOptions } from 'millrace';
    const options: ServerOptions = { stateFolder: 'state', logger: await createLogger({ format: 'json', level: 'info' }) };
    const server: MillraceServer = await MillraceServer.start(options);
    console.log(server.banner);
    await server.stop();
    // @ts-expect-error: the declarations are there, so this is known to be missing.
    server.noSuchMember;
    `,
  );
  node(TSC, '--ignoreConfig', '--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--types', 'node', program);
});
