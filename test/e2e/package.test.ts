/** The package as published: compiled, and run without the sources. */
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { packageVersion } from '../../src/util/package-version.ts';
import { PageBrowser } from '../harness/page-browser.ts';
import { probe } from '../harness/probe.ts';
import { publish } from '../harness/publisher.ts';
import { ROOT, startServer } from '../harness/server.ts';
import { ACCESS_TOKEN } from '../harness/server-xml.ts';

const TSC = path.join(ROOT, 'node_modules/typescript/bin/tsc');

/** The text after `from` and `import(`. */
const IMPORTED = /\b(?:from |import\()'([^'\n]+)'/g;

/** A folder with an installed `node_modules/millrace`. */
let project: string;
let main: string;

/** Folders of the packages in an installation without development dependencies. */
function installedWith(packages: Record<string, unknown>): string[] {
  const isTop = (name: string) => /^node_modules\/(@[^/]+\/)?[^/]+$/.test(name) && existsSync(path.join(ROOT, name));
  return Object.entries(packages).flatMap(([name, entry]) => (isTop(name) && !('dev' in (entry as object)) ? [name] : []));
}

/** Runs a program to its end and returns its output; the exit code must be 0. */
function node(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: project, encoding: 'utf8', timeout: 60_000 });
  expect(status, `${stdout}${stderr}`).toBe(0);
  return stdout;
}

beforeAll(() => {
  project = mkdtempSync(path.join(tmpdir(), 'millrace-package-'));
  const modules = path.join(project, 'node_modules');
  const folder = path.join(modules, 'millrace');
  // `npm test` checks the types itself.
  node(TSC, '-p', path.join(ROOT, 'tsconfig.build.json'), '--noCheck', '--outDir', path.join(folder, 'dist'));
  node(path.join(ROOT, 'scripts/build-console.ts'), path.join(folder, 'dist'));
  node(path.join(ROOT, 'scripts/program-bundle/make.mjs'), path.join(folder, 'dist'));
  node(path.join(ROOT, 'scripts/keep-revision.ts'), path.join(folder, 'dist'));
  for (const name of ['package.json', 'conf']) cpSync(path.join(ROOT, name), path.join(folder, name), { recursive: true });
  mkdirSync(path.join(folder, 'node_modules'));
  // Development packages of the project are missing, because declarations must not need them.
  for (const name of installedWith(json('package-lock.json')['packages'] ?? {})) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    symlinkSync(path.join(ROOT, name), path.join(folder, name));
  }
  symlinkSync(path.join(ROOT, 'node_modules/@types'), path.join(modules, '@types'));
  main = path.join(folder, 'dist/main.js');
});

afterAll(() => rmSync(project, { recursive: true, force: true }));

test('prints its version and its commands, and finds the configuration inside the package', () => {
  expect(node(main, 'ctl', '--help')).toContain('record start');
  expect(node(main, '--version')).toContain(packageVersion());
  expect(node(main, 'check')).toContain(path.join('millrace', 'conf', 'Server.xml'));
});

function json(...place: string[]): Record<string, Record<string, unknown>> {
  return JSON.parse(readFileSync(path.join(ROOT, ...place), 'utf8')) as Record<string, Record<string, unknown>>;
}

test('an installation runs no script of node-av, which would download a program', () => {
  const { dependencies = {}, optionalDependencies, bundleDependencies } = json('package.json');
  const { packages = {} } = json('package-lock.json');
  // npm runs scripts of packages marked in the lock file.
  expect(packages['node_modules/node-av']).not.toHaveProperty('hasInstallScript');
  expect(packages['node_modules/node']).toHaveProperty('hasInstallScript', true);
  // An installed package has no lock file of ours, so it contains node-av and requires the addons itself.
  expect(bundleDependencies).toEqual(['node-av']);
  const engine = json('node_modules/node-av/package.json');
  expect(dependencies['node-av']).toBe(engine['version']);
  const { werift: _unused, ...addons } = engine['optionalDependencies'] ?? {};
  expect(Object.keys(optionalDependencies ?? {})).toEqual(Object.keys(addons));
  for (const version of Object.values(optionalDependencies ?? {})) expect(version).toBe(engine['version']);
});

test('the copy of node-av in the package has no scripts, and the installed node-av is restored', () => {
  const folder = path.join(project, 'packing');
  const manifest = path.join(folder, 'node_modules/node-av/package.json');
  mkdirSync(path.dirname(manifest), { recursive: true });
  cpSync(path.join(ROOT, 'scripts'), path.join(folder, 'scripts'), { recursive: true });
  const before = readFileSync(path.join(ROOT, 'node_modules/node-av/package.json'), 'utf8');
  writeFileSync(manifest, before);
  const script = path.join(folder, 'scripts/bundled-engine.mjs');
  // Repeated after an aborted `npm pack`, which must do no harm.
  node(script);
  node(script);
  const packed = JSON.parse(readFileSync(manifest, 'utf8')) as object;
  expect(packed).toHaveProperty('exports');
  for (const member of ['scripts', 'dependencies', 'optionalDependencies']) expect(packed).not.toHaveProperty(member);
  node(script, '--undo');
  expect(readFileSync(manifest, 'utf8')).toBe(before);
});

test('its own Node.js is a production dependency, and an older Node.js is refused with a sentence', () => {
  expect(json('package.json')['dependencies']).toHaveProperty('node');
  for (const file of ['scripts/start.mjs', 'src/main.ts']) {
    // Static imports are linked before the first line runs.
    const imported = readFileSync(path.join(ROOT, file), 'utf8').match(/^import .*/gm);
    expect(imported, file).toEqual([expect.stringContaining('/node-version.js')]);
    const program = `Object.defineProperty(process, 'versions', { value: { node: '20.1.0' } });
      await import(${JSON.stringify(path.join(ROOT, file))});`;
    const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8', timeout: 60_000 });
    expect(stderr).toMatch(/^millrace needs Node.js 24 or newer, this is 20.1.0. .*\n$/);
    expect(status).toBe(1);
  }
});

test('uses all packages that it depends on, and no others', () => {
  // Node.js is the runtime, which no code imports.
  const { node: _runtime, ...libraries } = json('package.json')['dependencies'] ?? {};
  const dist = path.join(project, 'node_modules/millrace/dist');
  const files = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js'));
  const code = files.map((name) => readFileSync(path.join(dist, name), 'utf8')).join('\n');
  for (const [, imported = ''] of code.matchAll(IMPORTED)) {
    if (!/^(\.|node:)/.test(imported)) expect(libraries).toHaveProperty([/^(@[^/]+\/)?[^/]+/.exec(imported)?.[0] ?? '']);
  }
  // Some libraries are loaded by `createRequire`, through another name.
  const unused = Object.keys(libraries).filter((name) => !new RegExp(`'${name}['/]`).test(code));
  expect(unused).toEqual([]);
});

test('serves LL-HLS from its threads, and knows the commit that it was built from', async () => {
  const server = await startServer({ main, segmentDuration: 1 });
  onTestFinished(() => server.close());
  const commit = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: ROOT, encoding: 'utf8' }).stdout?.trim() ?? '';
  const { gitVersion } = await server.api.get<{ gitVersion: string }>('/v1/version');
  expect(gitVersion).toBe(`v${packageVersion()}${commit === '' ? '' : `-g${commit.slice(0, 12)}`}`);
  const encoder = publish({ url: server.rtmp('live'), width: 320, height: 180, videoKbps: 300 });
  onTestFinished(async () => {
    await encoder.stop();
  });
  await encoder.sent(90);
  const { video } = await probe(server.http('live', 'llhls.m3u8'));
  expect(video).toMatchObject({ codec_name: 'h264', width: 320 });
});

test('runs from two files, and from its modules when these files are damaged', async () => {
  const dist = path.dirname(main);
  const serves = async () => {
    const server = await startServer({ main });
    const { status } = await fetch(`http://127.0.0.1:${server.ports.http}/app/live`, { headers: { accept: 'text/html' } });
    await server.close();
    return status;
  };
  for (const hidden of ['server.js', 'delivery-worker.js']) {
    renameSync(path.join(dist, hidden), path.join(dist, `${hidden}.hidden`));
    onTestFinished(() => renameSync(path.join(dist, `${hidden}.hidden`), path.join(dist, hidden)));
  }
  expect(await serves()).toBe(200);
  for (const hidden of ['server.js', 'delivery-worker.js']) cpSync(path.join(dist, `${hidden}.hidden`), path.join(dist, hidden));
  const bundle = path.join(dist, 'bundle/serve.cjs');
  const whole = readFileSync(bundle);
  onTestFinished(() => writeFileSync(bundle, whole));
  writeFileSync(bundle, whole.subarray(0, whole.length - 100));
  expect(await serves()).toBe(200);
});

test('serves the console and the player page as plain JavaScript', async () => {
  const server = await startServer({ main });
  onTestFinished(() => server.close());
  const media = `http://127.0.0.1:${server.ports.http}`;
  for (const [page, folder] of [
    [`${server.api.base}/console/`, `${server.api.base}/console/`],
    [`${media}/app/live`, `${media}/`],
  ] as const) {
    const html = await (await fetch(page, { headers: { accept: 'text/html' } })).text();
    const [, entry = ''] = /<script type="module" src="\.\.?\/([a-z]+\.js)">/.exec(html) ?? [];
    const module = await fetch(`${folder}${entry}`);
    expect([page, module.status, module.headers.get('content-type')]).toEqual([page, 200, 'text/javascript; charset=utf-8']);
    for (const [, imported = ''] of (await module.text()).matchAll(/from '\.\/([\w.-]+)'/g)) {
      expect([imported, (await fetch(`${folder}${imported}`)).status]).toEqual([expect.stringMatching(/\.js$/), 200]);
    }
  }
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

/** Globals of a browser, and of Node.js. */
const PLACES = [
  ['a browser', ['--lib', 'es2024,dom', '--module', 'es2022', '--moduleResolution', 'bundler']],
  ['Node.js', ['--lib', 'es2024', '--types', 'node', '--module', 'nodenext']],
] as const;

test.each(PLACES)('a program that uses the client type-checks for %s', (_place, settings) => {
  const program = path.join(project, 'panel.mts');
  writeFileSync(
    program,
    `import { type components, MillraceClient, MillraceError } from 'millrace/client';
    const client = new MillraceClient({ url: 'http://127.0.0.1:8081', token: 'secret' });
    const names: string[] = await client.get('/v1/vhosts/{vhost}/apps/{app}/streams', { path: { vhost: 'default', app: 'app' } });
    const tasks: components['schemas']['RecordTask'][] = await client.get('/v1/vhosts/{vhost}/apps/{app}:records', {
      path: { vhost: 'default', app: 'app' },
      signal: AbortSignal.timeout(1000),
    });
    try {
      await client.post('/v1/vhosts', { body: [{ name: 'v', host: { names: ['v.example'] } }] });
    } catch (error) {
      if (error instanceof MillraceError) console.log(error.status, error.items.map(({ message }) => message), names, tasks);
    }
    // @ts-expect-error: a number is no name of a stream.
    await client.get('/v1/vhosts/{vhost}/apps/{app}/streams/{stream}', { path: { vhost: 'default', app: 'app', stream: 7 } });
    // @ts-expect-error: the types are there, so this is known to be missing.
    await client.get('/v1/nothing');
    `,
  );
  node(TSC, '--ignoreConfig', '--noEmit', '--strict', '--target', 'es2024', ...settings, program);
});

test('the client runs in Node.js, and in a page without a bundler', async () => {
  const server = await startServer({ main, apiOrigins: ['*'] });
  onTestFinished(() => server.close());
  const use = (from: string) => `import(${JSON.stringify(from)}).then(async ({ MillraceClient }) => {
    const client = new MillraceClient({ url: ${JSON.stringify(server.api.base)}, token: ${JSON.stringify(ACCESS_TOKEN)} });
    const missing = client.get('/v1/vhosts/{vhost}/apps/{app}', { path: { vhost: 'default', app: 'nöpe' } });
    const refusal = await missing.catch(({ name, status, message }) => [name, status, message]);
    return JSON.stringify([await client.get('/v1/vhosts'), refusal]);
  })`;
  const seen = [['default'], ['MillraceError', 404, '[HTTP] Could not find the application: [default/nöpe] (404)']];
  const program = path.join(project, 'use.mjs');
  writeFileSync(program, `console.log(await ${use('millrace/client')});`);
  expect(JSON.parse(node(program))).toEqual(seen);

  const folder = path.join(project, 'node_modules/millrace/dist/client');
  const files = readdirSync(folder).filter((name) => name.endsWith('.js'));
  const scripts = Object.fromEntries(files.map((name) => [`/client/${name}`, path.join(folder, name)]));
  const browser = await PageBrowser.start({ page: 'blank-page.html', scripts });
  onTestFinished(() => browser.close());
  const page = await browser.open({ width: 400, height: 300 });
  expect(JSON.parse(await page.evaluate<string>(use('/client/index.js')))).toEqual(seen);
});
