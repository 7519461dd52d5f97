/** Headless Chromium with a small web server for one page and its scripts. */
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { findProgram, requireProgram } from '../../scripts/ensure-tools.ts';

/** Switches of every browser of the tests. */
export const CHROMIUM_ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-dev-shm-usage',
  '--autoplay-policy=no-user-gesture-required',
];

/**
 * Starts Chromium without a window; the caller closes it. The headless shell, if installed, is the same engine without the browser around
 * it, and starts with a quarter of the work.
 */
export async function launchChromium(args: readonly string[]): Promise<Browser> {
  const executablePath = findProgram('chromium-headless-shell') ?? requireProgram('chromium');
  return await chromium.launch({ executablePath, headless: true, args: [...args] });
}

export interface PageSource {
  /** File of the page in this folder. */
  readonly page: string;
  /** Scripts served with the page: module of each script by its path in the page. */
  readonly scripts: Readonly<Record<string, string>>;
  /** Switches of Chromium that this page needs. */
  readonly switches?: readonly string[];
}

/** Its creator closes it. */
export class PageBrowser {
  readonly #browser: Browser;
  readonly #server: Server;

  private constructor(browser: Browser, server: Server) {
    this.#browser = browser;
    this.#server = server;
  }

  static async start({ page, scripts, switches = [] }: PageSource): Promise<PageBrowser> {
    const server = await serve(page, scripts);
    return new PageBrowser(await launchChromium([...CHROMIUM_ARGUMENTS, ...switches]), server);
  }

  /** Opens the page with `query` in a window of this size. */
  async open(size: { width: number; height: number }, query: Readonly<Record<string, string>> = {}): Promise<Page> {
    // Requests sent on closing need the page's context to exist.
    const context = await this.#browser.newContext({ viewport: size });
    const page = await context.newPage();
    const { port } = this.#server.address() as AddressInfo;
    await page.goto(`http://127.0.0.1:${port}/?${new URLSearchParams(query)}`);
    return page;
  }

  async close(): Promise<void> {
    await this.#browser.close();
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

async function serve(page: string, scripts: PageSource['scripts']): Promise<Server> {
  const { resolve: find } = createRequire(import.meta.url);
  const html = readFileSync(path.join(import.meta.dirname, page));
  const served = new Map(Object.entries(scripts).map(([at, module]) => [at, readFileSync(find(module))]));
  const server = createServer((request, response) => {
    const script = served.get(request.url ?? '');
    response.writeHead(200, { 'content-type': script === undefined ? 'text/html' : 'text/javascript' });
    response.end(script ?? html);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}
