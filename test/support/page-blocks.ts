/** The code blocks of README and the pages in `docs/`. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** README, CONTRIBUTING, and all pages in `docs/`. */
export const PAGES: readonly string[] = globSync(['README.md', 'CONTRIBUTING.md', 'docs/**/*.md'], { cwd: ROOT }).sort();

export interface PageBlock {
  /** Path of the page from the root of the repository. */
  readonly page: string;
  /** Line of its first line, from 1 on. */
  readonly line: number;
  /** The language of the fence; empty for a block that is only shown, such as output. */
  readonly language: string;
  readonly text: string;
}

/** A block that `blocksIn` omits. */
interface NotRun {
  readonly page: string;
  /** The beginning of the block. */
  readonly begins: string;
  readonly why: string;
}

/** Blocks that no test can type, or that another test types. */
export const NOT_RUN: readonly NotRun[] = [
  { page: 'README.md', begins: 'npm ci\n', why: 'it installs what the tests run on; `.ci/run` begins with it' },
  { page: 'README.md', begins: 'npm test ', why: 'it is what runs the tests' },
  { page: 'CONTRIBUTING.md', begins: 'const server = ', why: 'the harness; test/e2e/playback.test.ts is written with it' },
  { page: 'docs/design.md', begins: 'interface IngestGate', why: 'signatures cut short, not code to run' },
  {
    page: 'docs/guide/cluster.md',
    begins: 'export MILLRACE_REDIS_PASSWORD',
    why: 'it needs a container engine; test/e2e/cluster-topology.test.ts starts the same without one',
  },
  {
    page: 'docs/guide/cluster.md',
    begins: 'docker compose',
    why: 'test/e2e/cluster-topology.test.ts types what stands behind `exec origin`',
  },
  {
    page: 'docs/guide/cluster.md',
    begins: 'export MILLRACE_REDIS_URL',
    why: 'it needs a container engine; test/e2e/cluster-own-redis.test.ts starts the same without one',
  },
  {
    page: 'docs/guide/cluster.md',
    begins: 'helm install live',
    why: 'it needs a Kubernetes; test/e2e/helm-chart.test.ts judges what would be installed',
  },
  {
    page: 'docs/guide/cluster.md',
    begins: 'helm install adapter',
    why: 'it needs a Kubernetes; test/e2e/helm-chart.test.ts reads the values, and test/e2e/cluster-topology.test.ts asks a real Prometheus for that metric',
  },
  { page: 'docs/guide/ctl.md', begins: 'millrace ctl create', why: 'test/e2e/ctl.test.ts runs it, and looks at what it prints' },
  { page: 'docs/guide/ctl.md', begins: 'source <(', why: 'for two shells; test/e2e/ctl.test.ts completes in both' },
  { page: 'docs/guide/install.md', begins: 'cp -r', why: 'test/e2e/container.test.ts takes these steps, as the Dockerfile has them' },
  { page: 'docs/guide/install.md', begins: 'npm ci --omit=dev', why: 'test/e2e/package.test.ts takes these steps without the network' },
  {
    page: 'docs/guide/install.md',
    begins: 'useradd',
    why: 'it needs systemd as first process; test/e2e/systemd-unit.test.ts has systemd judge the unit',
  },
  {
    page: 'docs/guide/install.md',
    begins: 'docker build',
    why: 'it needs a container engine; test/e2e/container.test.ts takes the steps of the image without one',
  },
  { page: 'docs/guide/record.md', begins: 'ffplay', why: 'test/e2e/recorded-playback.test.ts plays such an address' },
];

/** All blocks of a page, in order. Those in a list may be indented. */
export function allBlocksIn(page: string): PageBlock[] {
  const text = readFileSync(path.join(ROOT, page), 'utf8');
  return [...text.matchAll(/^( *)```(\w*)\n(.*?)^\1```$/gms)].map(({ index, 2: language = '', 3: block = '' }) => ({
    page,
    line: text.slice(0, index).split('\n').length + 1,
    language,
    text: block,
  }));
}

/** The entry of `NOT_RUN` for a block. */
export function reasonNotToRun({ page, text }: PageBlock): NotRun | undefined {
  return NOT_RUN.find((each) => each.page === page && text.startsWith(each.begins));
}

/** The blocks of a page in `language` that a test must run. */
export function blocksIn(page: string, language: string): PageBlock[] {
  return allBlocksIn(page).filter((block) => block.language === language && reasonNotToRun(block) === undefined);
}
