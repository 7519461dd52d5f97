/** Attempts operations forbidden to a transcoder process, and prints the system's answers. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';

const [folder = '', pid = ''] = process.argv.slice(2);

function outcome(action: () => unknown): string {
  try {
    action();
    return 'done';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
}

const result = {
  write: outcome(() => writeFileSync(path.join(folder, 'made'), 'x')),
  overwrite: outcome(() => writeFileSync(path.join(folder, 'access-token'), 'x')),
  read: outcome(() => readFileSync(path.join(folder, 'access-token'))),
  environment: outcome(() => readFileSync(`/proc/${pid}/environ`)),
  run: outcome(() => execFileSync('/bin/true')),
  signal: outcome(() => process.kill(Number(pid), 0)),
  variables: Object.keys(process.env).filter((name) => /TOKEN|SECRET|NODE_OPTIONS/.test(name)),
};
const socket = connect(1, '127.0.0.1');
socket.on('error', (error: NodeJS.ErrnoException) => process.stdout.write(JSON.stringify({ ...result, network: error.code })));
