/** Prometheus in front of a server, with the configuration and rules of our documentation. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { Child } from './child.ts';
import { until } from './poll.ts';
import { freePorts } from './ports.ts';
import { ROOT } from './server.ts';

const FOLDER = path.join(ROOT, 'docs/monitoring');

/** A line of an answer to a query. */
export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [time: number, value: string];
}

/** A rule as loaded by Prometheus. */
export interface LoadedRule {
  readonly name: string;
  readonly health: string;
  readonly lastError?: string;
  readonly state: string;
}

/** One process; `close` ends it and removes its files. */
export class Prometheus {
  readonly #child: Child;
  readonly #base: string;
  readonly #folder: string;

  private constructor(child: Child, port: number, folder: string) {
    this.#child = child;
    this.#base = `http://127.0.0.1:${port}/api/v1`;
    this.#folder = folder;
  }

  /** Scrapes `target` with `token` every second. Resolves after several scrapes. */
  static async start(target: string, token: string): Promise<Prometheus> {
    const folder = mkdtempSync(path.join(tmpdir(), 'millrace-prometheus-'));
    cpSync(path.join(FOLDER, 'alert-rules.yml'), path.join(folder, 'alert-rules.yml'));
    const config = readFileSync(path.join(FOLDER, 'prometheus.yml'), 'utf8');
    const global = 'global: { evaluation_interval: 1s }\n';
    const own = config
      .replace('METRICS_TOKEN', token)
      .replace('localhost:8081', target)
      .replace('scrape_interval: 15s', 'scrape_interval: 1s');
    writeFileSync(path.join(folder, 'prometheus.yml'), global + own);
    const [port = 0] = await freePorts(1);
    const args = ['--config.file=prometheus.yml', '--storage.tsdb.path=data', `--web.listen-address=127.0.0.1:${port}`];
    const started = new Prometheus(new Child(requireProgram('prometheus'), args, { cwd: folder }), port, folder);
    try {
      const asked = async (): Promise<boolean> =>
        Number((await started.query('count_over_time(up[1m])').catch(() => []))[0]?.value[1]) >= 4;
      await until('Prometheus has asked the server', asked, { deadlineMs: 60_000, everyMs: 300 });
      return started;
    } catch (error) {
      await started.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#child.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** The present result of an expression; rejects if Prometheus cannot parse it. */
  async query(expression: string): Promise<readonly Sample[]> {
    return (await this.#get<{ result: readonly Sample[] }>(`/query?${new URLSearchParams({ query: expression })}`)).result;
  }

  async rules(): Promise<readonly LoadedRule[]> {
    const { groups } = await this.#get<{ groups: readonly { rules: readonly LoadedRule[] }[] }>('/rules');
    return groups.flatMap(({ rules }) => rules);
  }

  async #get<T>(target: string): Promise<T> {
    const { data, error } = (await (await fetch(`${this.#base}${target}`)).json()) as { data?: T; error?: string };
    if (data === undefined) throw new Error(`${target}: ${error}`);
    return data;
  }
}
