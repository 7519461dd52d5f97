/** A real RTSP server, GStreamer's, with live test sources. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Child } from './child.ts';
import { until } from './poll.ts';

const SCRIPT = path.join(path.dirname(fileURLToPath(import.meta.url)), 'rtsp-server.py');
/** Debian's Python, because another in the PATH may lack its packages. */
const PYTHON = '/usr/bin/python3';

export class RtspTestServer {
  readonly child: Child;
  readonly #ports: readonly string[];

  constructor(child: Child, ports: readonly string[]) {
    this.child = child;
    this.#ports = ports;
  }

  /** `rtsp://…/<name>`; see `STREAMS` of the script. */
  url(name: string): string {
    return `rtsp://127.0.0.1:${this.#ports[0]}/${name}`;
  }

  /** URL of a stream that needs authentication; `login` is `user:password`. */
  guarded(method: 'digest' | 'basic', login: string, name: string): string {
    return `rtsp://${login}@127.0.0.1:${this.#ports[method === 'digest' ? 1 : 2]}/${name}`;
  }

  async stop(): Promise<void> {
    await this.child.stop();
  }
}

/** Starts the server on free ports. */
export async function startRtspServer(): Promise<RtspTestServer> {
  const child = new Child(PYTHON, [SCRIPT], { name: 'gst-rtsp-server' });
  try {
    const ports = await until('the RTSP server to print its ports', () => {
      if (child.exit !== null) throw new Error(`it ended: ${child.stderr.slice(-1000)}`);
      return /^(\d+) (\d+) (\d+)$/m.exec(child.stdout)?.slice(1);
    });
    return new RtspTestServer(child, ports);
  } catch (error) {
    await child.kill();
    throw error;
  }
}
