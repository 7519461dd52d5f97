/** nginx with one worker that serves a folder on loopback. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { Child } from '../../test/harness/child.ts';
import { until } from '../../test/harness/poll.ts';
import { freePorts } from '../../test/harness/ports.ts';

export interface StaticServer {
  readonly child: Child;
  /** URL without a slash at the end. */
  readonly base: string;
}

/** PEM files of a port with TLS and HTTP/2. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

/** Serves the files of `root`; configuration and temporary files go to `folder`. The caller stops `child`. */
export async function startNginx(
  folder: string,
  root: string,
  sendfile: 'on' | 'off',
  tls: CertificateFiles | null = null,
): Promise<StaticServer> {
  const [port = 0] = await freePorts(1);
  const prefix = path.join(folder, `nginx-sendfile-${sendfile}${tls === null ? '' : '-tls'}`);
  mkdirSync(prefix, { recursive: true });
  const config = path.join(prefix, 'nginx.conf');
  writeFileSync(config, configuration(port, { root, prefix, sendfile, tls }));
  const child = new Child(requireProgram('nginx'), ['-p', prefix, '-c', config, '-e', path.join(prefix, 'error.log')]);
  await until('nginx answers', () => reaches(port));
  return { child, base: `${tls === null ? 'http' : 'https'}://127.0.0.1:${port}` };
}

function reaches(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}

function configuration(
  port: number,
  { root, prefix, sendfile, tls }: { root: string; prefix: string; sendfile: string; tls: CertificateFiles | null },
): string {
  const listen = `listen 127.0.0.1:${port}${tls === null ? '' : ' ssl http2'}`;
  const secure = tls === null ? '' : `ssl_certificate ${tls.cert}; ssl_certificate_key ${tls.key}; http2_max_requests 1000000000;`;
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const scratch = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${prefix};`).join(' ');
  return `daemon off; ${user} worker_processes 1; pid ${prefix}/pid; error_log ${prefix}/error.log;
events { worker_connections 1024; }
http {
  ${scratch}
  access_log off;
  sendfile ${sendfile};
  gzip_static on;
  tcp_nopush on;
  keepalive_requests 1000000000;
  open_file_cache max=100 inactive=60s;
  types { application/vnd.apple.mpegurl m3u8; video/mp4 m4s; }
  server { ${listen}; ${secure} root ${root}; add_header Access-Control-Allow-Origin *; }
}
`;
}
