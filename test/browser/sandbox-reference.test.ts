import { mkdirSync } from "node:fs";
import { join } from "node:path";
import axe from "axe-core";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { catalogue } from "../../src/sandbox/catalogue/catalogue.js";
import type { SandboxOptions } from "../../src/sandbox/sandbox.js";
import { Caller } from "../sandbox/caller.js";
import { startChromium } from "./chromium.js";

let browser: Browser;
let caller: Caller;
let context: BrowserContext;
let page: Page;
/** What the page complained about: blocked by its own policy, not found, broken. */
let complaints: string[];
/** Addresses that the page asked for, of any other server than its own. */
let elsewhere: string[];

beforeAll(async () => {
  browser = await startChromium();
});
afterAll(() => browser.close());
beforeEach(() => start({}));
afterEach(stop);

async function start(options: Partial<SandboxOptions>): Promise<void> {
  caller = await Caller.start(options);
  await open({});
}

async function stop(): Promise<void> {
  await context.close();
  await caller.sandbox.close();
}

async function open(options: BrowserContextOptions): Promise<void> {
  context = await browser.newContext(options);
  page = await context.newPage();
  complaints = [];
  elsewhere = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${caller.sandbox.url}/`) && !url.startsWith("data:")) elsewhere.push(url);
  });
  await page.goto(`${caller.sandbox.url}/docs`);
}

/** The button that opens an operation, by its method and path. */
function operation(name: RegExp) {
  return page.getByRole("button", { name }).first();
}

async function openAll(): Promise<void> {
  for (const name of [/^POST\s*\/api\/v1\/generate/, /^GET\s*\/api\/v1\/task/, /^GET\s*\/api\/v1\/models/]) {
    await operation(name).click();
  }
  await page.getByText("The models of this service.").waitFor();
}

describe("the reference", () => {
  it("makes a generation with the key that every sandbox takes, and asks no other server for anything", async () => {
    await operation(/^POST\s*\/api\/v1\/generate/).click();
    await page.getByRole("button", { name: "Try it out" }).click();
    await page.getByRole("button", { name: "Execute" }).click();
    await page.locator(".live-responses-table").getByText("task_id").first().waitFor();
    expect((await caller.get("/api/v1/me")).body.credits.used_this_key).toBe(1);
    expect(complaints).toEqual([]);
    expect(elsewhere).toEqual([]);
  });

  it("shows names from a model file as text alone", async () => {
    await stop();
    const [model] = catalogue;
    if (model === undefined) throw new Error("there are no models");
    const key = "<img src=x onerror=alert(1)> | **bold** `code`";
    await start({ models: [{ ...model, key, parameters: [] }] });
    await operation(/^GET\s*\/api\/v1\/models/).click();
    await page.getByRole("cell", { name: key }).waitFor();
    expect(await page.locator("img").count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  const windows: Record<string, BrowserContextOptions> = {
    light: { viewport: { width: 1_280, height: 900 }, colorScheme: "light" },
    dark: { viewport: { width: 1_280, height: 900 }, colorScheme: "dark" },
    narrow: { viewport: { width: 390, height: 760 }, colorScheme: "light" },
    "narrow-dark": { viewport: { width: 390, height: 760 }, colorScheme: "dark" },
  };
  it.each(Object.entries(windows))("fits its window and can be read: %s", async (name, options) => {
    await context.close();
    await open(options);
    await openAll();
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    expect(overflow).toBeLessThanOrEqual(0);
    const scheme = await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme);
    expect(scheme === "dark").toBe(options.colorScheme === "dark");
    expect(await seriousViolations()).toEqual([]);
    const folder = process.env["BULKGEN_SCREENSHOTS"];
    if (folder) {
      mkdirSync(folder, { recursive: true });
      await page.screenshot({ path: join(folder, `reference-${name}.png`), fullPage: true });
    }
    expect(complaints).toEqual([]);
    expect(elsewhere).toEqual([]);
  });

  it("names the document for programs where JavaScript is off", async () => {
    await context.close();
    await open({ javaScriptEnabled: false });
    await page.getByRole("link", { name: "/openapi.json" }).click();
    expect(new URL(page.url()).pathname).toBe("/openapi.json");
  });
});

/** What axe finds to be serious. */
async function seriousViolations(): Promise<string[]> {
  await page.evaluate(axe.source);
  const found = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as {
    violations: { impact: string; id: string; nodes: { html: string }[] }[];
  };
  return found.violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
}
