import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import type { Browser, BrowserContext, Page, Route } from "playwright-core";
import type { ProviderPlace } from "../provider.js";
import type { OutputFormat, Size } from "./size.js";

/** One Chromium for all jobs, which is started when a page is needed and ended after a while without. */

/** A page to be shown: what it is, and what it may load. */
export interface FilledPage {
  html: string;
  size: Size;
  format: OutputFormat;
  /** The file for a path such as `/logo.svg`; null if it may not have it. */
  file(path: string): Promise<LoadedFile | null>;
}

export interface LoadedFile {
  path: string;
  /** Null: as its name says. */
  type: string | null;
}

/** Thrown if there is no browser; the message says how to install one. */
export class NoBrowser extends Error {
  override readonly name = "NoBrowser";
}

/** Thrown if a page asks for what it may not have: a picture without its logo is no result. */
export class MissingFiles extends Error {
  override readonly name = "MissingFiles";
}

/** How long it stays without a job (ms). Starting it takes about a second. */
const idleMs = 60_000;

/** No host is looked up under this name, so a page that got out of its bounds would still find nobody. */
const origin = "http://template.invalid";

const names = [
  "chromium",
  "chromium-browser",
  "google-chrome",
  "google-chrome-stable",
  "chrome",
  "microsoft-edge",
];
const macPaths = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
];

export interface BrowserWays {
  /** The browser's program; null to look for one. */
  program: string | null;
  /** Chromium's own sandbox. It does not start as root, and not in every container. */
  isSandboxed: boolean;
  timeoutMs: number;
}

export class TemplateBrowser {
  private started: Promise<{ browser: Browser; context: BrowserContext }> | null = null;
  /** Pages that are not in use: making one takes as long as showing it. */
  private readonly idle: BrowserPage[] = [];
  private inUse = 0;
  private rest = new AbortController();

  constructor(
    private readonly ways: BrowserWays,
    private readonly place: Pick<ProviderPlace, "env" | "clock">,
  ) {}

  /** The picture of a page, as PNG or JPEG, or a PDF. WebP is for the caller to make. */
  async shown(filled: FilledPage, signal: AbortSignal): Promise<Uint8Array> {
    this.inUse++;
    this.rest.abort();
    try {
      return await this.shownOnce(filled, signal).catch((error: Error) => {
        signal.throwIfAborted();
        if (error instanceof MissingFiles || error instanceof NoBrowser || error.name === "TimeoutError")
          throw error;
        // A browser may crash, and on a busy machine it sometimes takes no picture. Another try costs nothing.
        return this.shownOnce(filled, signal);
      });
    } finally {
      this.inUse--;
      if (this.inUse === 0) this.closeLater();
    }
  }

  private async shownOnce(filled: FilledPage, signal: AbortSignal): Promise<Uint8Array> {
    signal.throwIfAborted();
    const page = this.idlePage() ?? (await this.newPage());
    const close = () => void page.close();
    signal.addEventListener("abort", close, { once: true });
    try {
      signal.throwIfAborted();
      const bytes = await page.shown(filled);
      this.idle.push(page);
      return bytes;
    } catch (error) {
      await page.close();
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener("abort", close);
    }
  }

  /** Starts it, unless it runs. Throws NoBrowser. */
  async start(): Promise<void> {
    await this.running();
    if (this.inUse === 0) this.closeLater();
  }

  async close(): Promise<void> {
    this.rest.abort();
    const { started } = this;
    this.started = null;
    this.idle.length = 0;
    const found = await started?.catch(() => null);
    await found?.browser.close();
  }

  private closeLater(): void {
    this.rest.abort();
    this.rest = new AbortController();
    const { signal } = this.rest;
    void this.place.clock.sleep(idleMs, signal).then(() => (signal.aborted ? undefined : this.close()));
  }

  private idlePage(): BrowserPage | undefined {
    // The browser may have been closed while its last job ended.
    return this.idle.splice(0).find((page, index, pages) => {
      if (page.isClosed()) return false;
      this.idle.push(...pages.slice(index + 1));
      return true;
    });
  }

  private async newPage(): Promise<BrowserPage> {
    const { context } = await this.running();
    return BrowserPage.open(await context.newPage(), this.ways.timeoutMs);
  }

  private running(): Promise<{ browser: Browser; context: BrowserContext }> {
    if (this.started === null) {
      const started = this.launch();
      this.started = started;
      const forget = () => {
        if (this.started !== started) return;
        this.started = null;
        this.idle.length = 0;
      };
      started.then(({ browser }) => browser.on("disconnected", forget), forget);
    }
    return this.started;
  }

  private async launch(): Promise<{ browser: Browser; context: BrowserContext }> {
    const { chromium } = await import("playwright-core").catch(() => {
      throw new NoBrowser(
        "HTML templates need the package playwright-core: install it where bulkgen is installed, with npm install playwright-core, or npm install --global playwright-core",
      );
    });
    const program = this.ways.program ?? (await browserOn(this.place.env));
    if (program === null)
      throw new NoBrowser(
        "HTML templates need Chromium or Chrome, and none is on the PATH: install one, or name it as browser of the provider",
      );
    let browser: Browser;
    try {
      browser = await chromium.launch({
        executablePath: program,
        chromiumSandbox: this.ways.isSandboxed,
        env: { ...this.place.env },
        // Ctrl-C is the service's, which ends its jobs first.
        handleSIGINT: false,
        handleSIGTERM: false,
        handleSIGHUP: false,
        args: [
          "--host-resolver-rules=MAP * ~NOTFOUND",
          "--disable-quic",
          "--disable-background-networking",
          "--disable-component-update",
          "--disable-sync",
          "--no-first-run",
        ],
      });
    } catch (error) {
      const [first] = (error as Error).message.split("\n");
      const hint = this.ways.isSandboxed ? "; in a container it may need sandbox: false in the provider" : "";
      throw new NoBrowser(`the browser does not start: ${first}${hint}`);
    }
    const context = await browser.newContext({
      javaScriptEnabled: false,
      offline: true,
      serviceWorkers: "block",
      acceptDownloads: false,
      deviceScaleFactor: 1,
    });
    return { browser, context };
  }
}

/** A page of the browser, which shows one job after the other. */
class BrowserPage {
  private filled: FilledPage | null = null;
  private missing: string[] = [];
  /** Each job has an address of its own, so that nothing of the one before is taken for it. */
  private number = 0;

  private constructor(private readonly page: Page) {}

  static async open(page: Page, timeoutMs: number): Promise<BrowserPage> {
    const own = new BrowserPage(page);
    page.setDefaultTimeout(timeoutMs);
    await page.route("**/*", (route) => own.answer(route));
    return own;
  }

  async shown(filled: FilledPage): Promise<Uint8Array> {
    const { page } = this;
    this.filled = filled;
    this.missing = [];
    this.number++;
    await page.setViewportSize(filled.size);
    await page.goto(`${origin}/?${this.number}`, { waitUntil: "load" });
    const bytes = await this.picture(filled);
    this.filled = null;
    if (this.missing.length > 0) throw new MissingFiles(missingText(this.missing));
    return bytes;
  }

  isClosed(): boolean {
    return this.page.isClosed();
  }

  close(): Promise<void> {
    return this.page.close().catch(() => {});
  }

  private async picture({ size, format }: FilledPage): Promise<Uint8Array> {
    const { page } = this;
    if (format === "pdf") {
      await page.emulateMedia({ media: "screen" });
      return page.pdf({
        width: `${size.width}px`,
        height: `${size.height}px`,
        printBackground: true,
      });
    }
    const animations = "disabled";
    if (format === "jpeg") return page.screenshot({ type: "jpeg", quality: 92, animations });
    return page.screenshot({ type: "png", animations });
  }

  /** All that a page loads comes from here. */
  private async answer(route: Route): Promise<void> {
    const { filled } = this;
    const address = route.request().url();
    if (filled === null) return route.abort();
    if (address === `${origin}/?${this.number}`)
      return route.fulfill({ contentType: "text/html; charset=utf-8", body: filled.html });
    const { origin: from, pathname } = new URL(address);
    const file = from === origin ? await filled.file(decodedPath(pathname)) : null;
    if (file !== null)
      return route.fulfill({ path: file.path, ...(file.type === null ? {} : { contentType: file.type }) });
    this.missing.push(from === origin ? decodedPath(pathname).slice(1) : address);
    return route.abort();
  }
}

function decodedPath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

function missingText(missing: readonly string[]): string {
  const [first = ""] = missing;
  const more = missing.length > 1 ? ` (and ${missing.length - 1} more)` : "";
  return /^\w+:/.test(first)
    ? `the template asks for ${first}${more}, but templates are shown without a network: save the file beside the template`
    : `the template asks for ${first}${more}, which is not in its folder`;
}

/** The browser of this machine: the one that CHROMIUM names, or the first that is found. */
async function browserOn(env: ProviderPlace["env"]): Promise<string | null> {
  const folders = (env["PATH"] ?? "").split(delimiter).filter(Boolean);
  const found = folders.flatMap((folder) => names.map((name) => join(folder, name)));
  const own = process.platform === "darwin" ? macPaths : [];
  for (const path of [env["CHROMIUM"] ?? "", ...found, ...own]) if (await canRun(path)) return path;
  return null;
}

async function canRun(path: string): Promise<boolean> {
  return (
    path !== "" &&
    access(path, constants.X_OK).then(
      () => true,
      () => false,
    )
  );
}
