import { mkdirSync } from "node:fs";
import { join } from "node:path";
import axe from "axe-core";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { servePage } from "../../src/serve/page/serve-page.js";
import { systemRandom } from "../../src/system.js";
import { afterwards, openAi, Place } from "../serve/place.js";
import type { OpenAiUpstream } from "../upstreams/openai.js";
import { startChromium } from "./chromium.js";

let browser: Browser;
let place: Place;
let upstream: OpenAiUpstream;
let link: string;
let context: BrowserContext;
let page: Page;
/** What the page complained about: blocked by its own policy, not found, broken. */
let complaints: string[];

beforeAll(async () => {
  browser = await startChromium();
});
afterAll(() => browser.close());

beforeEach(async () => {
  upstream = await openAi();
  place = await new Place(`
credit: { value: 0.01, currency: EUR }
providers:
  vendor: { kind: openai, base_url: "${upstream.url}/v1", key_env: KEY, concurrency: 1 }
  colleague: { kind: openai, base_url: "${upstream.url}/v1", key_env: MISSING_KEY }
models:
  - key: hero
    name: Hero picture
    provider: vendor
    category: image
    credits: { base: 4, by: { quality: { high: 16 } } }
    params: { quality: [medium, high] }
    request: { model: gpt-image-2, quality: "{{ quality }}" }
  - { key: voice, provider: colleague, category: audio, credits: 0.5, request: { model: tts } }
`).open();
  const { service, clock, url } = place;
  const running = await servePage({ service, clock, random: systemRandom, url });
  afterwards(() => running.close());
  link = running.link;
  afterwards(() => context.close());
});

async function open(options: BrowserContextOptions = {}): Promise<void> {
  await context?.close();
  context = await browser.newContext(options);
  page = await context.newPage();
  complaints = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  await page.goto(link);
  await region("Models").waitFor();
}

function region(name: string) {
  return page.getByRole("region", { name });
}

function row(name: string, within = "Keys") {
  return region(within)
    .getByRole("row")
    .filter({ has: page.getByRole("rowheader", { name }) });
}

async function lose(prompt: string): Promise<string> {
  upstream.next("submit", { after: "drop" });
  const id = await place.generate({ model: "hero", prompt });
  await place.until(() => place.stage(id) === "unknown");
  return id;
}

function unknown(prompt: string) {
  return page.getByRole("listitem", { name: prompt });
}

async function createKey(name: string): Promise<string> {
  await page.getByLabel("Name of the new key").fill(name);
  await page.getByRole("button", { name: "Create key" }).click();
  await page.getByText(`Your new key “${name}”.`).waitFor();
  return page.locator("[data-key]").innerText();
}

describe("the page of a served models file", () => {
  it("shows the models with their prices and state, and what was spent", async () => {
    await place.finished(
      await place.generate({ model: "hero", prompt: "a boat", params: { quality: "high" } }),
    );
    await open();
    expect(new URL(page.url()).search).toBe("");
    const hero = row("hero", "Models");
    await hero.getByText("good").waitFor();
    expect(await hero.locator("[data-label=Price]").innerText()).toMatch(
      /4 credits \(€0\.04\)\s+quality high: 16 credits \(€0\.16\)/,
    );
    await row("voice", "Models").getByText("refuses the key").waitFor();
    const jobs = region("Jobs");
    await jobs.getByText("completed").waitFor();
    expect(await jobs.getByRole("row").filter({ hasText: "a boat" }).count()).toBe(1);
    const byDay = page.getByRole("table", { name: "By day" });
    expect(await byDay.getByRole("row").nth(1).innerText()).toMatch(/2026-11-28\s+1\s+16\s+€0\.16/);
    expect(complaints).toEqual([]);
  });

  it("asks the providers of models that came into the file while it is open", async () => {
    await open();
    await row("hero", "Models").getByText("good").waitFor();
    place.rewrite(`
models:
  - { key: draw, provider: { kind: command }, category: image, command: [no-such-program, --, "{{ prompt }}"] }
`);
    await place.until(() => place.service.served.models.length === 1);
    await row("draw", "Models").getByText("no-such-program").waitFor();
    expect(await row("hero", "Models").count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  it("makes a key with budgets that is shown once, and revokes it", async () => {
    await open();
    await page.getByLabel("Plan").selectOption("Starter");
    await page.getByLabel("Credits in all").fill("10");
    await page.getByLabel("Credits a month").fill("8");
    await page.getByLabel("Credits a day").fill("4");
    const value = await createKey("nightly");
    place.key = value;
    await place.finished(await place.generate({ model: "hero", prompt: "a kite" }));
    await row("nightly").locator("[data-label=Spent]").getByText("4", { exact: true }).waitFor();
    const cells = await row("nightly").locator("td").allInnerTexts();
    expect([cells[0], ...cells.slice(3, 7)]).toEqual(["Starter", "4", "0 today (UTC)", "8", "4"]);
    await page.reload();
    await row("nightly").waitFor();
    expect(await page.content()).not.toContain(value);

    await createKey("weekly");
    await page.getByLabel("Name of the new key").fill("weekly");
    await page.getByRole("button", { name: "Create key" }).click();
    expect(await page.getByRole("alert").innerText()).toContain('There is a key "weekly" already');
    expect(await page.getByLabel("Name of the new key").inputValue()).toBe("weekly");

    await row("nightly").getByText("Revoke", { exact: true }).click();
    await row("nightly").getByRole("button", { name: "Revoke this key" }).click();
    await row("nightly").getByText("revoked").waitFor();
    expect((await place.call("GET", "/api/v1/me")).status).toBe(401);
    expect(complaints.filter((text) => !text.includes("400"))).toEqual([]);
  });

  it("settles unknown jobs in each of three ways, and asks before one may be paid for twice", async () => {
    const [failed, again, found] = [await lose("a kite"), await lose("a boat"), await lose("a star")];
    await open();
    await page.getByRole("heading", { name: "3 unknown jobs" }).waitFor();

    await unknown("a kite").getByRole("button", { name: "It is not there: failed" }).click();
    await unknown("a kite").waitFor({ state: "detached" });
    expect((await place.task(failed)).status).toBe("failed");

    await unknown("a boat").getByRole("button", { name: "Send it again" }).click();
    const dialog = page.getByRole("dialog", { name: "Send it again?" });
    await dialog.getByRole("button", { name: "Leave it" }).click();
    expect(place.stage(again)).toBe("unknown");
    await unknown("a boat").getByRole("button", { name: "Send it again" }).click();
    await dialog.getByRole("button", { name: "Send it again" }).click();
    await unknown("a boat").waitFor({ state: "detached" });
    expect((await place.finished(again)).status).toBe("completed");
    expect(upstream.times("a boat")).toBe(2);

    await unknown("a star").getByLabel("The id at the provider").fill("gen-42");
    await page.keyboard.press("Enter");
    await unknown("a star").waitFor({ state: "detached" });
    expect(place.service.journal.job(found)).toMatchObject({ ref: "gen-42" });
    expect(await region("unknown job").count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  it("without the link is told to open it", async () => {
    await open();
    await context.clearCookies();
    await page.goto(new URL("/dashboard", link).href);
    await page.getByRole("heading", { name: "Open the link" }).waitFor();
    expect(await page.getByText("Keys").count()).toBe(0);
  });

  it("shows what people wrote as they wrote it, and never as markup", async () => {
    const hostile = `"><img src=x onerror=alert(1)>&amp;`;
    await lose(hostile);
    await open();
    expect(await page.getByText(hostile, { exact: true }).count()).toBeGreaterThan(0);
    await createKey("<b>bold</b>");
    expect(await page.locator('img[src="x"], b').count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  it("fits its window and is accessible, wide or narrow, light or dark, with long names and a key on show", async () => {
    await place.finished(await place.generate({ model: "hero", prompt: "a boat" }));
    await place.finished(await place.generate({ model: "hero", prompt: "forbidden things" }));
    await lose("a-long-word-".repeat(20));
    await open();
    await createKey("a-rather-long-name-for-a-key-of-the-nightly-job-on-a-build-host");
    await createKey("old");
    await row("old").getByText("Revoke", { exact: true }).click();
    await row("old").getByRole("button", { name: "Revoke this key" }).click();
    await row("old").getByText("revoked").waitFor();
    for (const colorScheme of ["light", "dark"] as const)
      for (const width of [390, 1_280]) {
        const name = `serve-${colorScheme}-${width}`;
        await open({ viewport: { width, height: 900 }, colorScheme });
        await createKey(`nightly, ${name}`);
        await page.getByText("good", { exact: true }).waitFor();
        await page.getByText("Spend of the last 30 days").waitFor();
        const overflow = await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        const folder = process.env["BULKGEN_SCREENSHOTS"];
        if (folder) {
          mkdirSync(folder, { recursive: true });
          await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
        }
        expect(overflow, name).toBeLessThanOrEqual(0);
        expect(await violations(), name).toEqual([]);
        await page.getByRole("button", { name: "Send it again" }).click();
        await page.getByRole("dialog").waitFor();
        expect(await violations(), `${name}, asked`).toEqual([]);
        expect(complaints, name).toEqual([]);
      }
  });
});

async function violations(): Promise<string[]> {
  await page.evaluate(axe.source);
  const found = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as {
    violations: { id: string; nodes: { html: string }[] }[];
  };
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join("\n")}`);
}
