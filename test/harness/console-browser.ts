/** Headless Chromium as an operator uses it: pages of the server, watched for all errors of the browser. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { CHROMIUM_ARGUMENTS, launchChromium } from './page-browser.ts';
import { ACCESS_TOKEN } from './server-xml.ts';

/** A name of this machine that browsers take for another machine: its pages without TLS are not secure contexts. */
export const FAR_NAME = 'console.test';

const SWITCHES = [
  ...['--allow-loopback-in-peer-connection', '--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream'],
  `--host-resolver-rules=MAP ${FAR_NAME} 127.0.0.1`,
];

/** How a page is opened. */
export interface PageOptions {
  readonly width?: number;
  readonly height?: number;
  readonly scheme?: 'dark' | 'light';
  /** Default: the token of the test servers; null: not logged in. */
  readonly token?: string | null;
}

/** A page with its errors. */
export class ConsolePage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors of scripts, violations of the content policy, and all messages that the page logs as errors. */
  readonly complaints: string[] = [];

  constructor(context: BrowserContext, page: Page) {
    this.context = context;
    this.page = page;
    page.on('pageerror', (error) => this.complaints.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error') this.complaints.push(message.text());
    });
  }

  /** Faults that axe-core finds in the present page, each with its elements. */
  async violations(): Promise<string[]> {
    const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
    await this.page.evaluate(axe);
    const found: { id: string; nodes: { html: string; failureSummary: string }[] }[] = await this.page.evaluate(
      "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)",
    );
    return found.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`));
  }

  /** Pixels by which the page is wider than its window. */
  async overhang(): Promise<number> {
    return await this.page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
  }

  /** Pixels by which the widest table exceeds its container. */
  async hiddenBeside(): Promise<number> {
    const widths = `[...document.querySelectorAll('.scroll')].map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)`;
    return await this.page.evaluate(`Math.max(0, ...${widths})`);
  }

  close(): Promise<void> {
    return this.context.close();
  }
}

/** Its creator closes it. */
export class ConsoleBrowser {
  readonly #browser: Browser;

  private constructor(browser: Browser) {
    this.#browser = browser;
  }

  static async start(): Promise<ConsoleBrowser> {
    return new ConsoleBrowser(await launchChromium([...CHROMIUM_ARGUMENTS, ...SWITCHES]));
  }

  /** Opens an address in a new window with separate storage. */
  async open(url: string, { width = 1280, height = 800, scheme = 'light', token = ACCESS_TOKEN }: PageOptions = {}): Promise<ConsolePage> {
    const context = await this.#browser.newContext({ viewport: { width, height }, colorScheme: scheme });
    const page = await context.newPage();
    if (token !== null) await page.addInitScript(`sessionStorage.setItem('millrace.token', ${JSON.stringify(token)})`);
    const opened = new ConsolePage(context, page);
    await page.goto(url);
    return opened;
  }

  close(): Promise<void> {
    return this.#browser.close();
  }
}
