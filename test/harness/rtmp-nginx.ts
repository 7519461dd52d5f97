/** nginx with its RTMP module: accepts streams of any name and keeps them as FLV files. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { Child } from './child.ts';
import { until } from './poll.ts';
import { freePorts } from './ports.ts';

const MODULE = '/usr/lib/nginx/modules/ngx_rtmp_module.so';

export interface RtmpNginx {
  readonly child: Child;
  readonly port: number;
  /** Folder with `<stream>.flv` of the application `live`. */
  readonly recordings: string;
}

/** Writes everything below `folder`. The caller stops `child`. */
export async function startRtmpNginx(folder: string): Promise<RtmpNginx> {
  const [port = 0] = await freePorts(1);
  const prefix = path.join(folder, 'rtmp-nginx');
  const recordings = path.join(prefix, 'recordings');
  mkdirSync(recordings, { recursive: true });
  const config = path.join(prefix, 'nginx.conf');
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  writeFileSync(
    config,
    `load_module ${MODULE}; daemon off; master_process off; ${user} worker_processes 1; pid ${prefix}/pid;
error_log ${prefix}/error.log info;
events { worker_connections 64; }
rtmp { server { listen 127.0.0.1:${port}; application live { live on; record all; record_path ${recordings}; } } }
`,
  );
  const child = new Child(requireProgram('nginx'), ['-p', prefix, '-c', config, '-e', path.join(prefix, 'error.log')]);
  await until('nginx to listen', () => reachable(port));
  return { child, port, recordings };
}

function reachable(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
