/** The unit in `deploy/` under a real systemd, the first process of its own namespaces: start, reload, watchdog, stop. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../harness/poll.ts';
import { ROOT } from '../harness/server.ts';

const SYSTEMD = '/lib/systemd/systemd';
const NAMESPACES = ['--fork', '--pid', '--mount', '--uts', '--ipc', '--net', '--cgroup', '--kill-child=KILL', '--mount-proc'];
const DEADLINE = { deadlineMs: 40_000 };
/** In place of 20 s, so that a test can wait for it. */
const WATCHDOG_S = 4;

/** Why the test cannot run here; null: it can. */
function lack(): string | null {
  if (!existsSync(SYSTEMD)) return 'there is no systemd';
  if (process.getuid?.() !== 0) return 'only root may make namespaces';
  const trial = 'mount -t tmpfs tmpfs /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup';
  const { status } = spawnSync('unshare', [...NAMESPACES, 'sh', '-c', trial], { stdio: 'ignore', timeout: 10_000 });
  return status === 0 ? null : 'namespaces with control groups are not allowed';
}

const missing = lack();
let folder: string;
let unshare: ChildProcess;
let systemd: string;

/** Runs a program in the namespaces of that systemd. */
function inside(...command: readonly string[]): { readonly status: number | null; readonly text: string } {
  const { status, stdout, stderr } = spawnSync('nsenter', ['-t', systemd, '-a', ...command], { encoding: 'utf8', timeout: 30_000 });
  return { status, text: `${stdout}${stderr}`.trim() };
}

function show(property: string): string {
  return inside('systemctl', 'show', '-P', property, 'millrace').text;
}

beforeAll(async () => {
  if (missing !== null) return;
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-systemd-'));
  const unit = readFileSync(path.join(ROOT, 'deploy/millrace.service'), 'utf8')
    .replace('/usr/bin/node /opt/millrace/dist/main.js', '/opt/node /opt/millrace/src/main.ts')
    .replace(/^WatchdogSec=.*$/m, `WatchdogSec=${WATCHDOG_S}`)
    // Other units of a machine's start are not needed.
    .replace(/^(?:Wants|After)=network-online\.target$/gm, '')
    .replace('[Unit]', '[Unit]\nDefaultDependencies=no');
  writeFileSync(path.join(folder, 'millrace.service'), unit);
  writeFileSync(path.join(folder, 'trial.target'), '[Unit]\nDefaultDependencies=no\n');
  copyFileSync(path.join(ROOT, 'conf/Server.xml'), path.join(folder, 'Server.xml'));
  const script = path.join(import.meta.dirname, 'support/systemd-namespace.sh');
  unshare = spawn('unshare', [...NAMESPACES, script, ROOT, process.execPath, folder], { stdio: 'ignore' });
  systemd = await until('the first process', () => childOf(unshare.pid ?? 0), DEADLINE);
  await until('systemd', () => (inside('systemctl', 'is-active', 'trial.target').text === 'active' ? true : null), DEADLINE);
}, 60_000);

afterAll(() => {
  unshare?.kill('SIGKILL');
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

function childOf(pid: number): string | null {
  const children = existsSync(`/proc/${pid}/task/${pid}/children`) ? readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8') : '';
  return children.trim().split(' ')[0] || null;
}

test.skipIf(missing !== null)(
  `systemd starts it, reloads it, restarts it when it hangs, and stops it${missing === null ? '' : `: ${missing}`}`,
  async () => {
    const started = inside('systemctl', 'start', 'millrace');
    expect(started, inside('systemctl', 'status', 'millrace').text).toEqual({ status: 0, text: '' });
    // Type=notify: the command returns when the server is ready.
    expect([show('ActiveState'), show('StatusText'), show('NRestarts')]).toEqual(['active', 'running', '0']);
    const health = "fetch('http://127.0.0.1:8081/health').then(async (r) => console.log(r.status, await r.text()))";
    expect(inside('/opt/node', '-e', health).text).toBe('200 {"status":"ok"}');

    const config = '/etc/millrace/Server.xml';
    inside('sed', '-i', 's#</Server>#<Log><Level>debug</Level></Log></Server>#', config);
    expect(inside('systemctl', 'reload', 'millrace').status).toBe(0);
    await until('the reload', () => (/1 change reloaded/.test(show('StatusText')) ? true : null), DEADLINE);

    const before = show('MainPID');
    inside('kill', '-STOP', before);
    await until('a restart', () => (show('NRestarts') === '1' && show('ActiveState') === 'active' ? true : null), DEADLINE);
    expect(show('MainPID')).not.toBe(before);
    expect(inside('/opt/node', '-e', health).text).toBe('200 {"status":"ok"}');

    expect(inside('systemctl', 'stop', 'millrace')).toEqual({ status: 0, text: '' });
    expect([show('ActiveState'), show('Result'), show('ExecMainStatus')]).toEqual(['inactive', 'success', '0']);
  },
  120_000,
);
