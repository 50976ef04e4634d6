import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { newPlace, run, started } from "../e2e/command.js";
import { startSandbox } from "../e2e/sandbox.js";
import { startChromium } from "./chromium.js";

/** The page in small windows: nothing lies beside the window, and pictures are shown whole. */

let browser: Browser;
beforeAll(async () => {
  browser = await startChromium();
});
afterAll(() => browser.close());

it("no view scrolls sideways at 390 and 700 px, and the gallery shows pictures of every shape whole", async () => {
  const sandbox = await startSandbox("--task-ms", "50-100");
  const { env } = sandbox;
  const place = newPlace();
  const long = "a stoneware cup on a wooden table in the light of an autumn morning ".repeat(4);
  const shapes = ["16:9", "9:16", "1:1"];
  const rows = shapes.map(
    (shape, at) => `a-rather-long-row-id-of-a-shape-${at},aurora-image-mini,${long}${at},${shape},x,y,z`,
  );
  const header = "id,model,prompt,params.aspect_ratio,season,chapter,notes";
  place.write("autumn.csv", [header, ...rows].join("\n"));
  expect(await run(place, ["run", "autumn.csv", "--yes"], { env })).toMatchObject({ code: 0 });
  place.write("winter.csv", [header, ...rows, "new,aurora-image-mini,a new cup,1:1,,,"].join("\n"));
  const dashboard = started(place, ["dashboard", "--json"], { serves: true, env });
  try {
    const [line] = await dashboard.prints(/^\{.*\}\n/);
    const { link } = JSON.parse(line) as { link: string };
    for (const width of [390, 700]) {
      const context = await browser.newContext({ viewport: { width, height: 844 }, reducedMotion: "reduce" });
      const page = await context.newPage();
      page.setDefaultTimeout(60_000);
      await page.goto(link);
      const views: [string, string][] = [
        ["runs", "autumn"],
        ["runs/1", "archived"],
        ["sheet/autumn.csv", "nothing to make"],
        ["sheet/winter.csv", "Make all again"],
        ["gallery", "Select"],
        ["decide/approval", "Nothing waits"],
        ["schedules", "Nothing is scheduled"],
      ];
      for (const [view, words] of views) {
        await page.goto(`${new URL(link).origin}/#/${view}`);
        await page.getByText(words).first().waitFor();
        const wide = await page.evaluate(() => {
          const main = document.querySelector("#main") as HTMLElement;
          return [main, document.documentElement].map((each) => each.scrollWidth - each.clientWidth);
        });
        const folder = process.env["SCREENSHOTS"];
        if (folder !== undefined) {
          mkdirSync(folder, { recursive: true });
          await page.screenshot({ path: join(folder, `${view.replaceAll("/", "-")}-${width}.png`) });
        }
        expect(wide, `${view} at ${width} px`).toEqual([0, 0]);
        // What is hidden for the eyes alone must not make room below the page.
        const beyond = await page.evaluate(
          () => document.documentElement.scrollHeight - document.documentElement.clientHeight,
        );
        expect(beyond, `below ${view} at ${width} px`).toBe(0);
        if (view !== "gallery") continue;
        const picture = page.locator(".tile img").first();
        await picture.waitFor();
        expect(await picture.evaluate((each) => getComputedStyle(each).objectFit)).toBe("contain");
        await page.getByLabel("Show", { exact: true }).selectOption("Picked");
        await page.getByText("No file matches").waitFor();
        await page.getByLabel("Show", { exact: true }).selectOption("All files");
        expect(await page.locator(".tile").count()).toBe(3);
      }
      await page.goto(`${new URL(link).origin}/#/sheet/winter.csv`);
      await page.getByRole("button", { name: /^Continue autumn \(1 new, \d+ credits?\)$/ }).waitFor();
      await context.close();
    }
  } finally {
    dashboard.interrupt();
    await dashboard.ended;
    await sandbox.tasks();
  }
});
