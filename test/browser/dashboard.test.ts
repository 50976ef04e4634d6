import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import writeWorkbook from "write-excel-file/node";
import { openSqlite } from "../../src/sqlite.js";
import { newPlace, type Place, run, type Started, started } from "../e2e/command.js";
import { type SandboxProcess, startSandbox } from "../e2e/sandbox.js";
import { type Scripted, startProxy } from "../e2e/service.js";
import { startChromium } from "./chromium.js";

/** The page as a person uses it: a real browser, real commands, and the sandbox as the service. */

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let browser: Browser;
let sandbox: SandboxProcess;
let env: Record<string, string>;
let place: Place;
let dashboard: Started;
let link: string;
let context: BrowserContext;
let page: Page;
/** What the page complained about, and which other hosts it asked. */
let complaints: string[];

beforeAll(async () => {
  browser = await startChromium();
});
afterAll(() => browser.close());
beforeEach(async () => {
  sandbox = await startSandbox("--task-ms", "300-600");
  ({ env } = sandbox);
  place = newPlace();
});
afterEach(async () => {
  await context.close();
  dashboard.interrupt();
  await dashboard.ended;
  await sandbox.tasks();
});

async function open(viewport = { width: 1280, height: 900 }): Promise<void> {
  dashboard = started(place, ["dashboard", "--json"], { serves: true, env });
  const [line] = await dashboard.prints(/^\{.*\}\n/);
  link = (JSON.parse(line) as { link: string }).link;
  context = await browser.newContext({ viewport, reducedMotion: "reduce" });
  complaints = [];
  page = await newPage();
}

async function newPage(): Promise<Page> {
  const made = await context.newPage();
  made.setDefaultTimeout(100_000);
  made.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  made.on("pageerror", (error) => complaints.push(error.message));
  made.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(link).origin) complaints.push(`asked ${request.url()}`);
  });
  await made.goto(link);
  return made;
}

/** Drops a file on the page, as from another window. */
async function drop(name: string, text: string): Promise<void> {
  const dataTransfer = await page.evaluateHandle(
    ([file, content]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([content], file));
      return transfer;
    },
    [name, text] as [string, string],
  );
  await page.getByRole("main").dispatchEvent("drop", { dataTransfer });
}

/** What axe finds to be serious. */
async function serious(): Promise<string[]> {
  await page.evaluate(axe);
  const found = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as {
    violations: { id: string; impact: string; nodes: { target: string[] }[] }[];
  };
  return found.violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(" ")).join(", ")}`);
}

const rows = [
  "id,model,prompt",
  "cup,aurora-image-mini,a stoneware cup",
  "jar,aurora-imge-mini,a jar with a lid",
  "film,reel-text,steam over a cup",
  "voice,voice-clear,Autumn is the season of tea",
].join("\n");

describe("start work", () => {
  it("a folder that is dropped is answered with the command that makes rows of its files", async () => {
    await open();
    await page.evaluate(() => {
      DataTransferItem.prototype.webkitGetAsEntry = () => ({ isDirectory: true }) as FileSystemEntry;
    });
    await drop("my photos", "");
    await page.getByText("bulkgen run 'my photos' --model MODEL").waitFor();
  });

  it("what is typed into a chosen cell arrives whole, however fast it is typed", async () => {
    await open();
    await page.getByRole("link", { name: "Start", exact: true }).click();
    await drop("autumn.csv", rows);
    await page.getByRole("gridcell", { name: "aurora-imge-mini" }).click();
    await page.keyboard.type("aurora-image-mini");
    await page.keyboard.press("Enter");
    await page.getByRole("gridcell", { name: "aurora-image-mini", exact: true }).nth(1).waitFor();
    await expect.poll(() => place.read("sheets/autumn.csv")).toContain("jar,aurora-image-mini,a jar");
  });

  it("what is typed for a run stays while the page is drawn again", async () => {
    await open();
    let check: (() => void) | undefined;
    await page.route("**/api/check", async (route) => {
      await new Promise<void>((resolve) => {
        check = resolve;
      });
      await route.continue();
    });
    await page.getByRole("link", { name: "Start", exact: true }).click();
    await drop("one.csv", "id,model,prompt\ncup,aurora-image-mini,a cup\n");
    await expect.poll(() => check !== undefined).toBe(true);
    const edition = page.getByRole("textbox", { name: "Edition" });
    await edition.click();
    await page.keyboard.type("autumn ");
    check?.();
    await page.getByText("1 item to make").waitFor();
    await page.keyboard.type("sale");
    await page.keyboard.press("Tab");
    expect(await edition.inputValue()).toBe("autumn sale");
  });

  it("what is typed into another field does not go into the cell that was changed before", async () => {
    await open();
    await page.getByRole("link", { name: "Start", exact: true }).click();
    await drop("autumn.csv", rows);
    await page.getByRole("gridcell", { name: "a stoneware cup" }).click();
    await page.keyboard.type("a red cup");
    const edition = page.getByRole("textbox", { name: "Edition" });
    await edition.click();
    await page.keyboard.type("winter");
    expect(await edition.inputValue()).toBe("winter");
    await expect.poll(() => place.read("sheets/autumn.csv")).toContain("a red cup");
  });

  it("what was typed is saved when its cell is scrolled away, and the keys go on from there", async () => {
    await open();
    await page.getByRole("link", { name: "Start", exact: true }).click();
    const many = Array.from({ length: 300 }, (_, index) => `r${index},aurora-image-mini,picture ${index}`);
    await drop("many.csv", ["id,model,prompt", ...many].join("\n"));
    await page.getByRole("gridcell", { name: "picture 0", exact: true }).click();
    await page.keyboard.type("a red cup");
    // Not every browser tells of the lost focus.
    await page
      .locator(".cell-editor")
      .evaluate((cell) =>
        addEventListener("blur", (event) => event.target === cell && event.stopImmediatePropagation(), true),
      );
    await page.getByRole("grid").evaluate((grid) => grid.scrollTo(0, grid.scrollHeight));
    await page.getByRole("gridcell", { name: "picture 299", exact: true }).waitFor();
    await expect.poll(() => place.read("sheets/many.csv")).toContain("r0,aurora-image-mini,a red cup");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.type("a red jar");
    await page.keyboard.press("Enter");
    await expect.poll(() => place.read("sheets/many.csv")).toContain("r1,aurora-image-mini,a red jar");
  });

  it("nothing can be run while the price is not of what is set", async () => {
    await open();
    const held: (() => void)[] = [];
    await page.route("**/api/check", async (route) => {
      await new Promise<void>((resolve) => held.push(resolve));
      await route.continue();
    });
    await page.getByRole("link", { name: "Start", exact: true }).click();
    await drop("one.csv", "id,model,prompt\ncup,aurora-image-mini,a cup\n");
    await expect.poll(() => held.length).toBe(1);
    await page.getByLabel("Make everything again, as a new edition").check();
    held[0]?.();
    await page.getByText("1 item to make").waitFor();
    const runButton = page.getByRole("button", { name: "Run…" });
    expect(await runButton.isEnabled()).toBe(false);
    await expect.poll(() => held.length).toBe(2);
    held[1]?.();
    await expect.poll(() => runButton.isEnabled()).toBe(true);
  });

  it("with a cap, what it allows is what is agreed to", async () => {
    place.write(
      "three.csv",
      "id,model,prompt\n1,aurora-image-mini,a cup\n2,aurora-image-mini,a jar\n3,aurora-image-mini,a pot\n",
    );
    const { models } = JSON.parse((await run(place, ["plan", "three.csv", "--json"], { env })).stdout) as {
      models: [{ credits: number }];
    };
    const [{ credits: all }] = models;
    await open();
    await page.goto(`${new URL(link).origin}/#/sheet/three.csv`);
    await page.getByLabel("Spend at most (credits)").fill(String(all - 1));
    await page.keyboard.press("Tab");
    const allowed = (2 * all) / 3;
    const said = `All of it would cost ${all} credits; the caps allow ${allowed}.`;
    await page.getByText(said).waitFor();
    await page.getByRole("button", { name: "Run…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText(`This makes up to 3 items of the sheet. ${said}`).waitFor();
    await dialog.getByRole("button", { name: `Run for ${allowed} credits` }).click();
    await expect.poll(() => sandbox.madeSoFar().length).toBe(2);
    await page.getByRole("region", { name: "Notices" }).getByText("2 of 3 items").waitFor();
  });

  it("changes of a sheet of one's own go to one copy, however fast they are made", async () => {
    place.write("mine.csv", rows);
    await open();
    await page.getByRole("link", { name: "Start", exact: true }).click();
    await page.getByRole("link", { name: /mine\.csv/ }).click();
    await page.getByRole("gridcell", { name: "a stoneware cup" }).click();
    for (const prompt of ["a red cup", "a red jar", "red steam"]) {
      await page.keyboard.type(prompt);
      await page.keyboard.press("Enter");
    }
    // A cell that is still being changed when the copy is there.
    await page.keyboard.type("Autumn is");
    await page.getByRole("heading", { name: "sheets/mine.csv" }).waitFor();
    await page.keyboard.type(" over");
    await page.keyboard.press("Enter");
    await expect.poll(() => place.read("sheets/mine.csv")).toContain("voice,voice-clear,Autumn is over");
    for (const prompt of ["a red cup", "a red jar", "red steam"])
      expect(place.read("sheets/mine.csv")).toContain(prompt);
    expect(readdirSync(join(place.folder, "sheets"))).toEqual(["mine.csv"]);
    expect(place.read("mine.csv")).toBe(rows);
    await page.reload();
    await page.getByRole("gridcell", { name: "Autumn is over" }).waitFor();
  });

  it("a schedule that was saved says that nothing runs it by itself, and how it is run", async () => {
    place.write("mine.csv", rows);
    await open();
    await page.goto(`${new URL(link).origin}/#/sheet/mine.csv`);
    await page.getByRole("button", { name: /schedule/i }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Nothing runs it before bulkgen schedule start is open in this folder.").waitFor();
    await dialog.getByRole("button", { name: "Save the schedule" }).click();
    await page.getByRole("link", { name: "Schedules", exact: true }).click();
    await page.getByRole("heading", { name: "mine" }).waitFor();
    await page
      .getByText(
        "This page runs no schedule. What is due is run only while bulkgen schedule start is open in this folder; bulkgen schedule print shows how the machine starts it by itself.",
      )
      .waitFor();
  });

  it("a change that is saved after its view was left does not change the address of another view", async () => {
    place.write("mine.csv", rows);
    await open();
    let save: (() => void) | undefined;
    await page.route("**/api/sheet/cells*", async (route) => {
      await new Promise<void>((resolve) => {
        save = resolve;
      });
      await route.continue();
    });
    await page.goto(`${new URL(link).origin}/#/sheet/mine.csv`);
    await page.getByRole("gridcell", { name: "a stoneware cup" }).click();
    await page.keyboard.type("a red cup");
    await page.getByRole("link", { name: "Schedules", exact: true }).click();
    await page.getByText("Nothing is scheduled").waitFor();
    const saved = page.waitForResponse("**/api/sheet/cells*");
    await expect.poll(() => save !== undefined).toBe(true);
    save?.();
    await (await saved).finished();
    expect(place.read("sheets/mine.csv")).toContain("a red cup");
    await page.reload();
    await page.getByText("Nothing is scheduled").waitFor();
  });

  it("a sheet that another program has changed is shown as it is now, and stays so", async () => {
    await open();
    await page.getByRole("link", { name: "Start", exact: true }).click();
    await drop("autumn.csv", rows);
    await page.getByRole("gridcell", { name: "a stoneware cup" }).click();
    const others = rows.replace("cup,", "bowl,aurora-image-mini,a bowl\ncup,");
    place.write("sheets/autumn.csv", others);
    await page.keyboard.type("a red cup");
    await page.keyboard.press("Enter");
    await page.locator(".notice.failed").getByText("has changed since this page read it").waitFor();
    await page.getByRole("gridcell", { name: "a bowl" }).waitFor();
    expect(place.read("sheets/autumn.csv")).toBe(others);
  });

  it("a sheet that another program has changed is not run before it is shown as it is now", async () => {
    const sheet = rows.replace("imge", "image");
    await open();
    await page.getByRole("link", { name: "Start", exact: true }).click();
    await drop("autumn.csv", sheet);
    const runButton = page.getByRole("button", { name: "Run…" });
    await expect.poll(() => runButton.isEnabled()).toBe(true);
    place.write("sheets/autumn.csv", sheet.replace("a stoneware cup", "a glass cup"));
    await runButton.click();
    await page.locator(".notice.failed").getByText("has changed since this page read it").waitFor();
    await page.getByRole("gridcell", { name: "a glass cup" }).waitFor();
    expect(await page.getByRole("dialog").count()).toBe(0);
    await runButton.click();
    await page
      .getByRole("dialog")
      .getByRole("button", { name: /^Run for/ })
      .waitFor();
    expect(complaints).toEqual([]);
  });

  it("a sheet that is dropped once more is read anew, and replaces another one after a question", async () => {
    await open();
    await page.getByRole("link", { name: "Start", exact: true }).click();
    await drop("autumn.csv", rows);
    await page.getByRole("gridcell", { name: "a stoneware cup" }).waitFor();
    const questions: string[] = [];
    const answers = [false, true];
    page.on("dialog", (dialog) => {
      questions.push(dialog.message());
      void (answers.shift() ? dialog.accept() : dialog.dismiss());
    });
    const others = rows.replace("a stoneware cup", "a porcelain cup");
    await drop("autumn.csv", others);
    await expect.poll(() => questions).toHaveLength(1);
    await drop("autumn.csv", others);
    await page.getByRole("gridcell", { name: "a porcelain cup" }).waitFor();
    expect(questions[1]).toContain("sheets/autumn.csv exists and is different. Replace it?");
    expect(place.read("sheets/autumn.csv")).toBe(others);
  });

  it("a run that waits for approval has not failed: its notice says so", async () => {
    const job = "approve: true\nrows:\n  - { id: cup, model: aurora-image-mini, prompt: a cup }\n";
    await open();
    await page.getByRole("link", { name: "Start", exact: true }).click();
    await drop("cups.yaml", job);
    await page.getByRole("button", { name: "Run…" }).click();
    await page
      .getByRole("dialog")
      .getByRole("button", { name: /^Run for/ })
      .click();
    await page.locator(".notice.waiting").getByText("waiting for your approval").waitFor();
    expect(await page.locator(".notice.failed").count()).toBe(0);
  });

  it("a workbook that begins with a sheet of notes: the sheet with the rows is chosen, and run", async () => {
    const notes = { sheet: "Notes", data: [["Please do not change"], ["Anna"]] };
    const set = {
      sheet: "Set",
      data: rows
        .split("\n")
        .map((row) => row.split(","))
        .slice(0, 2),
    };
    writeFileSync(join(place.folder, "autumn.xlsx"), await writeWorkbook([notes, set]).toBuffer());
    await open();
    await page.getByRole("link", { name: "Start", exact: true }).click();
    await page.getByRole("link", { name: /autumn\.xlsx/ }).click();
    await page.getByRole("alert").first().waitFor();
    expect(await serious()).toEqual([]);
    await page.getByRole("combobox", { name: /^Sheet/ }).selectOption("Set");
    await page.getByRole("gridcell", { name: "a stoneware cup" }).waitFor();
    await page.getByRole("button", { name: "Run…" }).click();
    await page.getByRole("dialog").getByText("bulkgen run autumn.xlsx --sheet=Set").waitFor();
    expect(complaints.filter((text) => !text.includes("422"))).toEqual([]);
  });

  it("a sheet is dropped, its wrong cell mended, its price agreed to, and its run watched until the media play", async () => {
    await open();
    await page.getByRole("link", { name: "Start", exact: true }).click();
    await drop("autumn.csv", rows);
    await page.getByRole("heading", { name: "autumn.csv" }).waitFor();
    const wrong = page.getByRole("gridcell", { name: "aurora-imge-mini" });
    await wrong.waitFor();
    await expect.poll(() => wrong.getAttribute("class")).toContain("bad");
    expect(await page.getByRole("button", { name: "Run…" }).isEnabled()).toBe(false);
    expect(await serious()).toEqual([]);
    await page.getByRole("button", { name: "Use aurora-image-mini", exact: true }).first().click();
    await page.getByRole("gridcell", { name: "aurora-imge-mini" }).waitFor({ state: "detached" });
    await expect.poll(() => page.getByRole("button", { name: "Run…" }).isEnabled()).toBe(true);
    await page.getByRole("button", { name: "Run…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("bulkgen run sheets/autumn.csv").waitFor();
    expect(await sandbox.madeSoFar()).toEqual([]);
    expect(await serious()).toEqual([]);
    await dialog.getByRole("button", { name: /^Run for \d+ credits/ }).click();
    await page
      .getByRole("link", { name: /autumn/ })
      .first()
      .click();
    await page.getByText("of 4 archived").waitFor();
    await expect.poll(() => page.getByText(/^4$/).count()).toBeGreaterThan(0);
    await page.getByText("finished").first().waitFor();
    expect(sandbox.madeSoFar()).toHaveLength(4);
    expect(await serious()).toEqual([]);
    await page.getByRole("link", { name: "Gallery" }).first().click();
    await page.getByRole("button", { name: "Open film, file 1" }).click();
    await plays("video");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Open voice, file 1" }).click();
    await plays("audio");
    expect(await serious()).toEqual([]);
    expect(complaints).toEqual([]);
  });

  it("in a sheet with empty rows, keys and problems lead to the cell that is meant, and it can be changed", async () => {
    const many = Array.from({ length: 400 }, (_, index) => `r${index},aurora-image-mini,picture ${index}`);
    many[350] = many[350]?.replace("mini", "mimi") ?? "";
    const text = many.map((row, index) => (index % 4 === 0 ? `\n${row}` : row)).join("\n");
    await open();
    await page.getByRole("link", { name: "Start", exact: true }).click();
    await drop("gaps.csv", `id,model,prompt\n${text}`);
    await page.getByRole("grid").focus();
    await page.keyboard.press("Control+End");
    const current = page.locator("[role=gridcell][aria-selected=true]");
    await expect.poll(() => current.allInnerTexts()).toEqual(["picture 399"]);
    await page.keyboard.type("the last one");
    await page.keyboard.press("Enter");
    await expect.poll(() => place.read("sheets/gaps.csv")).toContain("r399,aurora-image-mini,the last one");
    await page.keyboard.press("Control+Home");
    await page.getByRole("button", { name: /row 440 · model/ }).click();
    await expect.poll(() => current.allInnerTexts()).toEqual(["aurora-image-mimi"]);
    expect(
      await current.evaluate((cell) => {
        const { top, bottom } = cell.getBoundingClientRect();
        const sheet = cell.closest(".sheet")?.getBoundingClientRect();
        return sheet !== undefined && top >= sheet.top && bottom <= sheet.bottom;
      }),
    ).toBe(true);
    expect(complaints).toEqual([]);
  });

  it("a wrong value in more rows than are told of is not said to be corrected in all of them", async () => {
    const lines = (count: number) =>
      Array.from({ length: count }, (_, index) => `r${index},aurora-imge-mini,picture ${index}\n`).join("");
    await open();
    await page.getByRole("link", { name: "Start", exact: true }).click();
    await drop("some.csv", `id,model,prompt\n${lines(3)}`);
    await page.getByRole("button", { name: "Use aurora-image-mini in all 3 rows alike" }).first().waitFor();
    await page.getByRole("link", { name: "Start", exact: true }).first().click();
    await drop("many.csv", `id,model,prompt\n${lines(2_001)}`);
    await page.getByRole("button", { name: "Use aurora-image-mini in 2,000 rows alike" }).first().click();
    await expect.poll(() => place.read("sheets/many.csv").match(/imge/g)).toHaveLength(1);
  });

  it("100,000 rows are dropped, of which the page holds a screenful", async () => {
    await open();
    await page.getByRole("link", { name: "Start", exact: true }).click();
    const many = Array.from(
      { length: 100_000 },
      (_, index) => `r${index},aurora-image-mini,picture ${index}`,
    );
    await drop("many.csv", ["id,model,prompt", ...many].join("\n"));
    await page.getByRole("gridcell", { name: "r0", exact: true }).waitFor();
    await page.getByRole("grid").focus();
    await page.keyboard.press("Control+End");
    await page.getByRole("gridcell", { name: "r99999", exact: true }).waitFor();
    expect(await page.getByRole("row").count()).toBeLessThan(120);
    expect(complaints).toEqual([]);
  });
});

/** The medium in the dialog is loaded, and goes on when it is played. */
async function plays(kind: "video" | "audio"): Promise<void> {
  const medium = page.getByRole("dialog").locator(kind);
  await medium.waitFor();
  await medium.evaluate(async (element) => {
    const media = element as HTMLMediaElement;
    media.muted = true;
    await media.play();
  });
  await expect
    .poll(() => medium.evaluate((element) => (element as HTMLMediaElement).currentTime))
    .toBeGreaterThan(0.05);
  expect(await medium.evaluate((element) => (element as HTMLMediaElement).readyState)).toBeGreaterThanOrEqual(
    2,
  );
}

describe("decide", () => {
  const steps =
    "name: set\nrows: [{ id: cup, prompt: a cup }, { id: jar, prompt: a jar }]\ndefaults: { model: aurora-image-mini }\nsteps:\n  - { name: draft, approve: true }\n  - { name: final, model: atelier-upscale, prompt: '', image_url: '@draft' }\n";

  it("what waits is approved and rejected by keys with its picture in view, and the run resumed at its price", async () => {
    place.write("set.yaml", steps);
    expect(await run(place, ["run", "set.yaml", "--yes"], { env })).toMatchObject({ code: 10 });
    await open();
    await page.getByRole("link", { name: /Decide/ }).click();
    await page.getByRole("link", { name: "cup-draft" }).waitFor();
    const picture = page.getByRole("region", { name: "Approval" }).locator("img.medium");
    await expect
      .poll(() => picture.evaluate((image) => (image as HTMLImageElement).naturalWidth))
      .toBeGreaterThan(0);
    expect(await serious()).toEqual([]);
    await page.keyboard.press("a");
    await page.getByRole("link", { name: "jar-draft" }).waitFor();
    await page.keyboard.press("x");
    await page.getByText("Nothing waits for approval").waitFor();
    await page.goto(`${new URL(link).origin}/#/runs/1`);
    await page.getByText("ready to continue", { exact: true }).waitFor();
    await page.getByRole("button", { name: /^Continue set \(1 item, \d+ credits?\)$/ }).waitFor();
    expect(await page.locator("button.main").count()).toBe(1);
    await page.goto(`${new URL(link).origin}/#/decide/approval`);
    await page.getByRole("button", { name: /^Continue set \(1 item, \d+ credits?\)$/ }).click();
    await page.getByRole("dialog").getByText("1 item to submit").waitFor();
    await page
      .getByRole("dialog")
      .getByRole("button", { name: /^Continue for/ })
      .click();
    await expect.poll(() => sandbox.madeSoFar().length).toBe(3);
    await page.goto(`${new URL(link).origin}/#/runs/1`);
    await page.getByText("finished").first().waitFor();
    await page.getByRole("button", { name: "Final set" }).click();
    await page.locator(".notice.waiting").getByText("row 2 (jar-draft): rejected").waitFor();
    expect(complaints).toEqual([]);
  });

  it("a key that is held down decides about one item alone", async () => {
    place.write("set.yaml", steps);
    expect(await run(place, ["run", "set.yaml", "--yes"], { env })).toMatchObject({ code: 10 });
    await open();
    await page.getByRole("link", { name: /Decide/ }).click();
    await page.getByRole("link", { name: "cup-draft" }).waitFor();
    for (let times = 0; times < 5; times++) await page.keyboard.down("a");
    await page.keyboard.up("a");
    await page.getByText("1 of 1").waitFor();
    await page.getByRole("link", { name: "jar-draft" }).waitFor();
    expect(await page.getByRole("button", { name: "Approve" }).isEnabled()).toBe(true);
  });

  it("an item whose decision could not be carried out waits again, however late the command failed", async () => {
    place.write(
      "cups.yaml",
      "approve: true\nrows:\n  - { id: cup, model: aurora-image-mini, prompt: a cup }\n",
    );
    expect(await run(place, ["run", "cups.yaml", "--yes"], { env })).toMatchObject({ code: 10 });
    env = { ...env, BULKGEN_API_KEY: `svc_${"0".repeat(32)}` };
    await open();
    await page.goto(`${new URL(link).origin}/#/decide/approval`);
    await page.getByRole("button", { name: "Make it again…" }).click();
    await page
      .getByRole("dialog")
      .getByRole("button", { name: /^Make it again for/ })
      .click();
    await page.locator(".notice.failed").getByText("INVALID_API_KEY").waitFor();
    await expect.poll(() => page.getByRole("button", { name: "Approve" }).isEnabled()).toBe(true);
    expect(await page.getByText("rejected, made again").count()).toBe(0);
    // What needs no key is carried out.
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByText("Nothing waits for approval").waitFor();
  });

  it("held items are shown with what is known of their requests; one is adopted, one submitted again at its price", async () => {
    place.write("two.csv", "id,model,prompt\ncup,aurora-image-mini,a cup\njar,aurora-image-mini,a jar\n");
    const proxy = await startProxy(
      sandbox,
      ({ what, before }): Scripted => (what === "POST generate" && before < 2 ? "serve and cut" : "serve"),
    );
    env = proxy.env;
    expect(await run(place, ["run", "two.csv", "--yes", "--lanes", "1"], { env })).toMatchObject({
      code: 10,
    });
    await open({ width: 390, height: 844 });
    await page.getByRole("link", { name: /Decide/ }).click();
    await page.getByText("body (SHA-256)").first().waitFor();
    expect(await serious()).toEqual([]);
    const cup = page
      .getByRole("listitem")
      .filter({ has: page.getByRole("link", { name: "cup", exact: true }) });
    const task = sandbox.madeSoFar().find(({ prompt }) => prompt === "a cup");
    await cup.getByLabel("Task id at the service").fill(String(task?.id));
    await cup.getByRole("button", { name: "Adopt…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Adopt the task" }).click();
    await cup.waitFor({ state: "detached" });
    expect(sandbox.madeSoFar()).toHaveLength(2);
    // How a command ended stays until somebody has seen it, where it did not end well: here an item is still held.
    await page.getByRole("region", { name: "Notices" }).getByRole("button", { name: "Dismiss" }).click();
    await page.getByRole("button", { name: "Submit again…" }).click();
    const agree = page.getByRole("dialog").getByRole("button", { name: "Submit again for 1 credit" });
    await agree.click();
    await expect.poll(() => sandbox.madeSoFar().length).toBe(3);
    await page.getByText(/^Nothing (is held|waits for approval)/).waitFor();
    await page.goto(`${new URL(link).origin}/#/runs/1`);
    await page.getByText("finished").first().waitFor();
    expect(complaints).toEqual([]);
  });
});

describe("trouble", () => {
  it("a run that has ended before its items can be cancelled from its page, and then there is nothing to resume", async () => {
    place.write("two.csv", "id,model,prompt\ncup,aurora-image-mini,a cup\njar,aurora-image-mini,a jar\n");
    expect(await run(place, ["run", "two.csv", "--yes", "--max-credits", "1"], { env })).toMatchObject({
      code: 6,
    });
    await open();
    await page.goto(`${new URL(link).origin}/#/runs/1`);
    await page.getByRole("button", { name: "Resume" }).waitFor();
    expect(await page.getByRole("button", { name: "Pause" }).count()).toBe(0);
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await page.getByRole("dialog").getByText("1 item of two is not archived.").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel the run" }).click();
    await page.getByText("cancelled").first().waitFor();
    await page.getByRole("button", { name: "Resume" }).waitFor({ state: "detached" });
    expect(await page.getByRole("button", { name: "Cancel", exact: true }).count()).toBe(0);
    expect(sandbox.madeSoFar()).toHaveLength(1);
    expect(complaints).toEqual([]);
  });

  it("a sheet whose items have failed is not said to be archived", async () => {
    place.write(
      "two.csv",
      "id,model,prompt\ncup,aurora-image-mini,a cup\nbad,aurora-image-mini,[[moderation]] x\n",
    );
    expect((await run(place, ["run", "two.csv", "--yes"], { env })).code).toBe(5);
    await open();
    await page.goto(`${new URL(link).origin}/#/sheet/two.csv`);
    await page.getByText("There is nothing new to make: 1 archived, 1 failed.").waitFor();
    expect(await page.getByText("Everything in it is archived").count()).toBe(0);
  });

  it("items of a state are shown again after all were", async () => {
    place.write(
      "two.csv",
      "id,model,prompt\ncup,aurora-image-mini,a cup\nbad,aurora-image-mini,[[moderation]] x\n",
    );
    expect((await run(place, ["run", "two.csv", "--yes"], { env })).code).toBe(5);
    await open();
    await page.goto(`${new URL(link).origin}/#/runs/1`);
    const items = page.getByRole("region", { name: "Items" });
    const troubled = page
      .getByRole("region", { name: "Trouble" })
      .getByRole("button", { name: "1 × failed" });
    for (let times = 0; times < 2; times++) {
      await troubled.click();
      await expect.poll(() => items.getByRole("listitem").count()).toBe(1);
      await items.getByRole("button", { name: "all", exact: true }).click();
      await expect.poll(() => items.getByRole("listitem").count()).toBe(2);
    }
  });

  it("older runs are listed once, however often they are asked for", async () => {
    place.write("one.csv", "id,model,prompt\ncup,aurora-image-mini,a cup\n");
    expect((await run(place, ["run", "one.csv", "--yes"], { env })).code).toBe(0);
    await open();
    // As if there were more runs than fit on a page.
    let newest = {};
    let asked = 0;
    await page.route(/\/api\/runs(\?before=1)?$/, async (route) => {
      if (route.request().url().includes("before")) {
        asked++;
        return route.fulfill({ json: { runs: [{ ...newest, run: 0 }], older: null } });
      }
      const { runs } = (await (await route.fetch()).json()) as { runs: [object] };
      [newest] = runs;
      return route.fulfill({ json: { runs, older: 1 } });
    });
    await page.reload();
    await page.getByRole("button", { name: "Show older runs" }).dblclick();
    await page.getByRole("link", { name: /run 0/ }).first().waitFor();
    expect(asked).toBe(1);
    expect(await page.getByRole("link", { name: /run 0/ }).count()).toBe(1);
  });

  it("where requests are limited, the page says how many of them a check of the sheet uses", async () => {
    const limited = await startSandbox("--plan", "Starter");
    ({ env } = limited);
    place.write("one.csv", "id,model,prompt\ncup,aurora-image-mini,a cup\n");
    await open();
    await page.goto(`${new URL(link).origin}/#/sheet/one.csv`);
    await page
      .getByText("plan Starter: 30 requests a minute, 1,000 a day; each check of the sheet uses 2 of them")
      .waitFor();
    await limited.tasks();
  });

  it("where nothing limits requests, no number of them is shown for a run in progress", async () => {
    const slow = await startSandbox("--task-ms", "600000");
    place.write("one.csv", "id,model,prompt\ncup,aurora-image-mini,a cup\n");
    const going = started(place, ["run", "one.csv", "--yes"], { env: slow.env });
    await open();
    await page.getByText("1 at the service").first().waitFor();
    // They come with the first figures of the process at work.
    await page.locator(".gauge").nth(2).waitFor();
    const gauges = (await page.locator(".gauge").allInnerTexts()).map((text) => text.replaceAll("\n", " "));
    expect(gauges).toEqual([
      "Requests this minute no limit",
      "Requests in 24 hours no limit",
      "Credits 1 no cap",
    ]);
    going.interrupt();
    await going.ended;
    await slow.tasks();
  });

  it("a workspace that cannot be read says so, and is not called empty", async () => {
    place.write("one.csv", "id,model,prompt\ncup,aurora-image-mini,a cup\n");
    expect((await run(place, ["run", "one.csv", "--yes"], { env })).code).toBe(0);
    const db = openSqlite(join(place.folder, ".bulkgen", "state.db"));
    db.pragma("user_version = 99");
    db.close();
    await open();
    await page.getByRole("heading", { name: "This workspace cannot be shown" }).waitFor();
    await page.getByText("was written by a newer bulkgen").waitFor();
  });

  it("a run whose items a later run took over says so, in the list and on its page, in place of an empty bar", async () => {
    place.write("one.csv", "id,model,prompt\ncup,aurora-image-mini,a cup\n");
    for (const _ of ["paid", "free"])
      expect(await run(place, ["run", "one.csv", "--yes"], { env })).toMatchObject({ code: 0 });
    await open();
    await page.getByRole("link", { name: /run 1 a later run of this job followed/ }).click();
    await page.getByText("A later run of this job followed. The gallery has the files of both.").waitFor();
    await page.goto(`${new URL(link).origin}/#/runs/2`);
    await page.getByText("archived").first().waitFor();
    expect(await page.getByText("later run").count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  it("hostile texts are shown as texts everywhere", async () => {
    const evil = `"><img src=x onerror="document.title='owned'"><script>document.title='owned'</script>\u202Egpj.exe {{7*7}}`;
    const long = `${"long ".repeat(2_000)}end`;
    const cell = (text: string) => `"${text.replaceAll('"', '""')}"`;
    place.write(
      "evil.csv",
      `id,model,prompt,note\n${cell("<b>id</b>")},aurora-image-mini,${cell(evil.replace(" {{7*7}}", ""))},${cell(evil)}\nlong,aurora-image-mini,${cell(long)},👩‍🚀 שלום\n`,
    );
    expect((await run(place, ["run", "evil.csv", "--yes"], { env })).code).toBe(0);
    await open();
    for (const path of ["runs", "runs/1", "items/1", "items/2", "gallery", "sheet/evil.csv", "decide"]) {
      await page.goto(`${new URL(link).origin}/#/${path}`);
      await page.getByRole("heading", { level: 1 }).first().waitFor();
      expect(await page.title(), path).not.toContain("owned");
      expect(await page.locator("b", { hasText: /^id$/ }).count(), path).toBe(0);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      expect(overflow, path).toBeLessThanOrEqual(0);
    }
    expect(complaints).toEqual([]);
  });

  it("shows the view that is asked for while the page starts", async () => {
    await open();
    const second = await context.newPage();
    second.setDefaultTimeout(100_000);
    // After the page was drawn for the first time, and before it listens.
    await second.addInitScript(() =>
      addEventListener("DOMContentLoaded", () => {
        location.hash = "#/gallery";
      }),
    );
    await second.goto(link);
    await second.getByRole("heading", { name: "Gallery" }).waitFor();
  });

  it("an act that is carried out does not close the question about the next one", async () => {
    place.write("two.csv", "id,model,prompt\ncup,aurora-image-mini,a cup\njar,aurora-image-mini,a jar\n");
    expect((await run(place, ["run", "two.csv", "--yes"], { env })).code).toBe(0);
    await open();
    let release: (() => void) | undefined;
    await page.route("**/api/act", async (route) => {
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      await route.continue();
    });
    const dialog = page.getByRole("dialog");
    const ask = async (item: number) => {
      await page.goto(`${new URL(link).origin}/#/items/${item}`);
      await page.getByRole("button", { name: "Make it again…" }).click();
      return dialog.getByRole("button", { name: /^Make it again for/ });
    };
    await (await ask(1)).click();
    await dialog.getByText("Working…").waitFor();
    await page.keyboard.press("Escape");
    await (await ask(2)).waitFor();
    await expect.poll(() => release !== undefined).toBe(true);
    release?.();
    await page.getByRole("region", { name: "Notices" }).getByText("bulkgen redo").waitFor();
    await dialog.getByRole("heading", { name: "Make jar again" }).waitFor();
    // The command would go on without its service.
    await expect.poll(() => existsSync(join(place.folder, "outputs", "two", "cup-v2.png"))).toBe(true);
  });

  it("a file far down in the gallery is shown as picked, too", async () => {
    const many = Array.from({ length: 122 }, (_, index) => `r${index},aurora-image-mini,picture ${index}`);
    place.write("many.csv", ["id,model,prompt", ...many].join("\n"));
    expect((await run(place, ["run", "many.csv", "--yes"], { env })).code).toBe(0);
    await open();
    await page.goto(`${new URL(link).origin}/#/gallery`);
    await page.getByRole("button", { name: "Open r121, file 1" }).waitFor();
    const first = page.getByRole("button", { name: "Open r0, file 1" });
    const toTheEnd = () => page.getByRole("main").evaluate((main) => main.scrollTo(0, main.scrollHeight));
    await expect
      .poll(async () => {
        await toTheEnd();
        return first.count();
      })
      .toBe(1);
    await first.click();
    await page.getByRole("dialog").getByRole("button", { name: /^Pick/ }).click();
    await page
      .getByRole("dialog")
      .getByRole("button", { name: /^Picked/ })
      .waitFor();
    await page.keyboard.press("Escape");
    await page.getByText("picked", { exact: true }).waitFor();
    expect(await first.count()).toBe(1);
    expect(complaints).toEqual([]);
  });

  it("two pages see the same; a workspace that is deleted under them and a dashboard that ends are said", async () => {
    place.write("one.csv", "id,model,prompt\ncup,aurora-image-mini,a cup\n");
    expect((await run(place, ["run", "one.csv", "--yes"], { env })).code).toBe(0);
    await open();
    const second = await newPage();
    await second.goto(`${new URL(link).origin}/#/gallery`);
    await second.getByRole("button", { name: "Open cup, file 1" }).click();
    await second.getByRole("dialog").getByRole("button", { name: /^Pick/ }).click();
    await page.goto(`${new URL(link).origin}/#/gallery`);
    await page.getByText("picked", { exact: true }).waitFor();
    const marker = join(place.folder, ".bulkgen");
    renameSync(marker, `${marker}-away`);
    await page.getByText("Nothing has been run here yet").waitFor();
    renameSync(`${marker}-away`, marker);
    await page.getByRole("button", { name: "Open cup, file 1" }).waitFor();
    dashboard.interrupt();
    await dashboard.ended;
    await page.getByText("bulkgen dashboard has ended").waitFor();
  });

  it("a link that is opened in a new tab is let in by the tab that it came from", async () => {
    await open();
    await page.getByRole("link", { name: "Start with a sheet" }).waitFor();
    const gallery = page.getByRole("link", { name: "Gallery", exact: true });
    const [other] = await Promise.all([
      context.waitForEvent("page"),
      gallery.click({ modifiers: ["ControlOrMeta"] }),
    ]);
    await other.getByRole("heading", { name: "Gallery" }).waitFor();
    await other.reload();
    await other.getByRole("heading", { name: "Gallery" }).waitFor();
  });

  it("ten tabs are open, of which nine are hidden, and each shows what has changed", async () => {
    place.write("one.csv", "id,model,prompt\ncup,aurora-image-mini,a cup\n");
    await open();
    // Without a screen no tab is hidden by another one.
    const setHidden = (tab: Page, isHidden: boolean) =>
      tab.evaluate((hidden) => {
        Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
        document.dispatchEvent(new Event("visibilitychange"));
      }, isHidden);
    const tabs = [page];
    while (tabs.length < 10) {
      await setHidden(tabs.at(-1) as Page, true);
      tabs.push(await newPage());
      await tabs.at(-1)?.getByText("Nothing has been run here yet").waitFor();
    }
    expect((await run(place, ["run", "one.csv", "--yes"], { env })).code).toBe(0);
    for (const tab of tabs) await tab.getByRole("listitem").getByText("finished", { exact: true }).waitFor();
    await setHidden(page, false);
    await page.getByRole("link", { name: "Gallery", exact: true }).click();
    await page.getByRole("button", { name: "Open cup, file 1" }).waitFor();
    expect(complaints).toEqual([]);
  });

  it("without the link's token the page shows how to get in, and nothing else", async () => {
    await open();
    const stranger = await browser.newContext();
    const visitor = await stranger.newPage();
    await visitor.goto(new URL(link).origin);
    await visitor.getByText("Open the link that").waitFor();
    await visitor.goto(`${new URL(link).origin}/#token=${"0".repeat(64)}`);
    await visitor.getByText("Open the link that").waitFor();
    expect(await visitor.content()).not.toContain(place.folder);
    await stranger.close();
  });
});
