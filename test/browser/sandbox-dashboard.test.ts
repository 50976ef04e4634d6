import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import axe from "axe-core";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { madeHere } from "../../src/sandbox/studio/studio.js";
import { SqliteState } from "../../src/service/state/sqlite-state.js";
import { Caller } from "../sandbox/caller.js";
import { startChromium } from "./chromium.js";

let browser: Browser;
let caller: Caller;
let context: BrowserContext;
let page: Page;
/** What the page complained about: blocked by its own policy, not found, broken. */
let complaints: string[];

beforeAll(async () => {
  browser = await startChromium();
});
afterAll(() => browser.close());
beforeEach(async () => {
  caller = await Caller.start({ plan: "Enterprise", taskMs: { min: 1_000, max: 1_000 }, made: madeHere });
  await open({});
});
afterEach(async () => {
  await context.close();
  await caller.sandbox.close();
});

async function open(options: BrowserContextOptions): Promise<void> {
  context = await browser.newContext(options);
  page = await context.newPage();
  complaints = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  await page.goto(caller.sandbox.dashboard);
}

async function createKey(name: string): Promise<string> {
  await page.getByLabel("Name of the new key").fill(name);
  await page.getByRole("button", { name: "Create new key" }).click();
  await page.getByText(`Your new key “${name}”.`).waitFor();
  return page.locator("[data-key]").innerText();
}

function row(name: string) {
  return page.getByRole("row").filter({ has: page.getByRole("rowheader", { name, exact: true }) });
}

async function revoke(name: string): Promise<void> {
  await row(name).getByText("Revoke", { exact: true }).click();
  await row(name).getByRole("button", { name: "Revoke this key" }).click();
  await row(name).getByText("revoked").waitFor();
}

async function ask(key: string): Promise<[status: number, code: string | undefined]> {
  const answer = await caller.send("GET", "/api/v1/me", { headers: { authorization: `Bearer ${key}` } });
  return [answer.status, answer.body.error?.code];
}

describe("the keys panel", () => {
  it("makes a key that is shown once, works until it is revoked, and is refused from then on", async () => {
    expect(new URL(page.url()).search).toBe("");
    const value = await createKey("nightly");
    expect(value).toMatch(/^svc_[A-Za-z0-9]{32}$/);
    expect(await ask(value)).toEqual([200, undefined]);

    await page.reload();
    expect(await page.content()).not.toContain(value);
    expect(await row("nightly").locator("[data-label=Requests]").innerText()).toBe("1");

    const second = await createKey("weekly");
    await page.getByRole("link", { name: "API reference" }).first().click();
    await page.waitForURL("**/docs");
    await page.goBack();
    await row("weekly").waitFor();
    expect(await page.content()).not.toContain(second);

    await revoke("nightly");
    expect(await row("nightly").getByText("Revoke", { exact: true }).count()).toBe(0);
    expect(await ask(value)).toEqual([401, "INVALID_API_KEY"]);
    expect(complaints).toEqual([]);
  });

  it("says why a name cannot be had, and keeps what was typed", async () => {
    await page.getByLabel("Name of the new key").fill("sandbox");
    await page.getByRole("button", { name: "Create new key" }).click();
    expect(await page.getByRole("alert").innerText()).toContain('There is a key named "sandbox" already');
    expect(await page.getByLabel("Name of the new key").inputValue()).toBe("sandbox");
  });

  it("can be used with the keyboard alone", async () => {
    await page.getByLabel("Name of the new key").focus();
    await page.keyboard.type("by hand");
    await page.keyboard.press("Enter");
    await page.waitForSelector("[data-key]");
    const summary = row("by hand").getByText("Revoke", { exact: true });
    await summary.focus();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await row("by hand").getByText("revoked").waitFor();
    expect(await page.locator("tr.revoked").count()).toBe(1);
  });
});

describe("a page of another site", () => {
  it("cannot make a key, though the browser is let in here", async () => {
    const elsewhere = await context.newPage();
    await elsewhere.route("http://elsewhere.example/", (route) =>
      route.fulfill({
        contentType: "text/html",
        body: `<form method="post" action="${caller.sandbox.url}/dashboard/api/keys"><input name="name" value="theirs"><button>Win</button></form>`,
      }),
    );
    await elsewhere.goto("http://elsewhere.example/");
    const answered = elsewhere.waitForResponse("**/dashboard/api/keys");
    await elsewhere.getByRole("button").click();
    expect((await answered).status()).toBe(403);
    await page.reload();
    await row("sandbox public").waitFor();
    expect(await row("theirs").count()).toBe(0);
  });
});

/** Tasks of every kind, and keys with a history. */
async function fillUp(): Promise<void> {
  const generate = (body: object) => caller.generate(body);
  await generate({ model: "voice-clear", prompt: "Good evening, and welcome aboard." });
  await generate({ model: "reel-text", prompt: "Waves under a paper moon", params: { duration: "2" } });
  await generate({ model: "aurora-image", prompt: "[[moderation]] A prompt that is not allowed" });
  await generate({ model: "aurora-image", prompt: "A heron in the reeds at first light" });
  await generate({
    model: "aurora-image",
    prompt: "Roofs of a harbour town",
    params: { aspect_ratio: "16:9" },
  });
  await generate({ model: "score-music", prompt: "Slow strings", params: { duration: "5" } });
  caller.clock.advance(200_000);
}

describe("a newcomer", () => {
  it("finds the address, the key, the reference, and a first command that works", async () => {
    const panel = page.getByRole("region", { name: "Connect" });
    await panel.getByText(caller.sandbox.url, { exact: true }).waitFor();
    await panel.getByText(caller.sandbox.key, { exact: true }).waitFor();
    expect(await panel.getByRole("link", { name: "API reference" }).getAttribute("href")).toBe("/docs");
    const command = await page.locator(".command").innerText();
    const { stdout } = await promisify(execFile)("sh", ["-c", command]);
    expect(JSON.parse(stdout).status).toBe("processing");
  });

  it("without the link is told to open it", async () => {
    await context.clearCookies();
    await page.goto(`${caller.sandbox.url}/dashboard`);
    await page.getByRole("heading", { name: "Open the link" }).waitFor();
    expect(await page.getByText("API keys").count()).toBe(0);
  });
});

describe("the subscription", () => {
  it("can be activated", async () => {
    await context.close();
    await caller.sandbox.close();
    const folder = mkdtempSync(join(tmpdir(), "bulkgen-dashboard-"));
    const file = join(folder, "sandbox.db");
    caller = await Caller.start({ file });
    const { db } = new SqliteState(file);
    db.exec("update accounts set subscription_status = 'past_due'");
    db.close();
    await open({});
    const card = page.getByRole("region", { name: "Subscription" });
    await card.getByText("past due").waitFor();
    await card.getByRole("button", { name: "Activate subscription" }).click();
    await card.getByText("active", { exact: true }).waitFor();
    expect(await card.getByRole("button").count()).toBe(0);
    expect(complaints).toEqual([]);
    rmSync(folder, { recursive: true });
  });
});

describe("what people wrote", () => {
  it("is shown as they wrote it, and never as markup", async () => {
    const hostile = `"><img src=x onerror=alert(1)>&amp;`;
    await caller.generate({ model: "aurora-image", prompt: hostile });
    await page.reload();
    await page.getByText(hostile, { exact: true }).waitFor();
    await createKey("<b>bold</b>");
    await row("<b>bold</b>").waitFor();
    expect(await page.locator('img[src="x"], b').count()).toBe(0);
    expect(complaints).toEqual([]);
  });
});

describe("recent tasks", () => {
  it("are seen to finish without loading the page again, while a new key stays on show", async () => {
    await caller.generate({ model: "aurora-image", prompt: "A heron" });
    await page.reload();
    await page.getByText("processing").waitFor();
    const value = await createKey("nightly");
    caller.clock.advance(1_000);
    await page.locator(".preview img").waitFor();
    expect(await page.locator("[data-key]").innerText()).toBe(value);
  });

  it("show pictures, and play films and sounds, with nothing held back by the page's own policy", async () => {
    // All have ended: a page with open tasks loads itself again while one plays.
    await fillUp();
    await page.reload();
    await page.waitForFunction(() => {
      const shown = [...document.querySelectorAll<HTMLImageElement>(".preview img")];
      return shown.length === 2 && shown.every((image) => image.naturalWidth > 0);
    });
    const seconds = await page.evaluate(async () => {
      const media = [...document.querySelectorAll<HTMLMediaElement>("video, audio")];
      for (const one of media) {
        one.muted = true;
        await one.play();
      }
      return media.map((one) => [one.tagName, Math.round(one.duration)]);
    });
    expect(seconds.map(([tag]) => tag).sort()).toEqual(["AUDIO", "AUDIO", "VIDEO"]);
    expect(seconds).toContainEqual(["VIDEO", 2]);
    expect(seconds).toContainEqual(["AUDIO", 5]);
    expect(complaints).toEqual([]);
  });
});

describe("the page", () => {
  const day = { viewport: { width: 1_200, height: 900 } };
  const phone = { viewport: { width: 360, height: 760 }, hasTouch: true };
  const windows: Record<string, BrowserContextOptions> = {
    light: { ...day, colorScheme: "light" },
    dark: { ...day, colorScheme: "dark" },
    narrow: { ...phone, colorScheme: "light" },
    "narrow-dark": { ...phone, colorScheme: "dark" },
  };

  it("fits its window, wide or narrow, light or dark, with long names and a key on show", async () => {
    await fillUp();
    await caller.generate({ model: "aurora-image-mini", prompt: "Still to come" });
    await createKey("a-rather-long-name-for-a-key-of-the-nightly-job-on-a-build-host");
    await createKey("old");
    await revoke("old");
    for (const [name, options] of Object.entries(windows)) {
      await context.close();
      await open(options);
      await createKey(`nightly, ${name}`);
      await page.waitForLoadState("networkidle");
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      expect(overflow, name).toBeLessThanOrEqual(0);
      expect(await violations(), name).toEqual([]);
      const folder = process.env["BULKGEN_SCREENSHOTS"];
      if (folder) {
        mkdirSync(folder, { recursive: true });
        await page.screenshot({ path: join(folder, `dashboard-${name}.png`), fullPage: true });
      }
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
