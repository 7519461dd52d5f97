/** nginx in front of the server, configured as in the guide. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { blocksIn } from '../support/page-blocks.ts';
import { Child } from './child.ts';
import { until } from './poll.ts';
import { freePorts } from './ports.ts';

export interface NginxProxy {
  readonly child: Child;
  readonly port: number;
}

/** Forwards everything to `upstream`, a port on loopback. Writes its files below `folder`; the caller stops `child`. */
export async function startNginxProxy(folder: string, upstream: number): Promise<NginxProxy> {
  const [port = 0] = await freePorts(1);
  const prefix = path.join(folder, 'nginx-proxy');
  mkdirSync(prefix, { recursive: true });
  const config = path.join(prefix, 'nginx.conf');
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${prefix}/${kind};`).join(' ');
  // The configuration given by the guide.
  const [block] = blocksIn('docs/guide/limits.md', 'nginx');
  const location = block?.text.replace('http://127.0.0.1:3333', `http://127.0.0.1:${upstream}`) ?? '';
  writeFileSync(
    config,
    `daemon off; master_process off; ${user} worker_processes 1; pid ${prefix}/pid; error_log ${prefix}/error.log info;
events { worker_connections 64; }
http {
  access_log off; ${temporary}
  map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
  server {
    listen 127.0.0.1:${port};
    ${location}
  }
}
`,
  );
  const child = new Child(requireProgram('nginx'), ['-p', prefix, '-c', config, '-e', path.join(prefix, 'error.log')], { name: 'nginx' });
  await until('nginx to listen', () => reachable(port));
  return { child, port };
}

function reachable(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => socket.destroy());
    socket.once('close', (hadError) => resolve(!hadError)).on('error', () => undefined);
  });
}
