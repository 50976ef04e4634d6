import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import axe from "axe-core";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { galleryPage } from "../../src/report/gallery/document.js";
import { type GalleryCard, type GalleryPage, writeGallery } from "../../src/upkeep/archive/gallery.js";
import { media } from "../archive/media.js";
import { newPlace, type Place, run } from "../e2e/command.js";
import { unzip } from "../e2e/unzip.js";
import { archivedPlace } from "../upkeep/archived-place.js";
import { startChromium } from "./chromium.js";

let browser: Browser;
let context: BrowserContext | undefined;
let page: Page;
/** What the page complained about, and what it asked others for. */
let complaints: string[];
const folder = mkdtempSync(join(tmpdir(), "bulkgen-pages-"));

beforeAll(async () => {
  browser = await startChromium();
});
afterAll(async () => {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
});
afterEach(async () => {
  await context?.close();
  context = undefined;
});

async function open(path: string, hash = "", options: BrowserContextOptions = {}): Promise<void> {
  context = await browser.newContext(options);
  page = await context.newPage();
  complaints = [];
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    if (!/^(file|blob):/.test(request.url())) complaints.push(request.url());
  });
  await page.goto(pathToFileURL(path).href + hash);
}

/** The row ids of the cards, in order. */
const shown = () => page.locator(".card .name").allInnerTexts();

/** The row id of the card that has the focus. */
const focused = () =>
  page.evaluate(() => document.activeElement?.closest(".card")?.querySelector(".name")?.textContent);

async function press(...keys: string[]): Promise<void> {
  for (const key of keys) await page.keyboard.press(key);
}

async function expectAccessible(): Promise<void> {
  // The page's own policy blocks scripts from outside, but not those of the debugger.
  const found =
    await page.evaluate(`${axe.source}; axe.run().then(({ violations }) => violations.map(({ id, nodes }) =>
    id + ": " + nodes.map(({ html, failureSummary }) => html + " " + failureSummary).join("\\n")))`);
  expect(found).toEqual([]);
}

describe("the gallery of a run", () => {
  let place: Place;
  const path = () => join(place.folder, "sandbox-outputs/set/gallery.html");
  const call = async (...args: string[]) => {
    const end = await run(place, [...args, "--sandbox"]);
    expect(end.code, end.stderr).toBe(0);
    return end.stdout;
  };

  beforeAll(async () => {
    place = newPlace();
    place.write(
      "set.yaml",
      `
name: set
rows:
  - { id: cup, thing: a cup }
  - { id: jar, thing: a jar }
steps:
  - name: shot
    model: aurora-image-mini
    prompt: "{{ thing }}"
    approve: true
    matrix: { params.aspect_ratio: ["1:1", "16:9"] }
  - name: clip
    model: reel-text
    prompt: "{{ thing }} turns"
  - name: voice
    model: voice-clear
    prompt: "This is {{ thing }}."
`,
    );
    const made = await run(place, ["run", "set.yaml", "--sandbox", "--yes", "--gallery"]);
    expect(made.code, made.stderr).toBe(10);
  }, 120_000);

  it("shows every file, and can be read without seeing it", async () => {
    await open(path());
    expect(await page.title()).toBe("set");
    expect(await shown()).toHaveLength(8);
    await page.waitForFunction(() => [...document.images].every((image) => image.naturalWidth > 0));
    await expectAccessible();
    await press("Enter");
    await expectAccessible();
    await press("Escape", "?");
    await expectAccessible();
    await press("Escape");
    await page.getByRole("button", { name: "X/Y" }).click();
    expect(await page.locator("table").count()).toBe(1);
    await expectAccessible();
    expect(complaints).toEqual([]);
  });

  it("filters by text, state, model and params, tells how many there are, and keeps it over a reload", async () => {
    await open(path());
    await press("/");
    await page.keyboard.type("jar");
    const jars = await shown();
    expect(jars).toHaveLength(4);
    expect(jars.every((id) => id.startsWith("jar"))).toBe(true);
    const model = page.getByLabel("model");
    expect(await model.locator("option").allInnerTexts()).toEqual([
      "all",
      "aurora-image-mini (2)",
      "reel-text (1)",
      "voice-clear (1)",
    ]);
    await model.selectOption({ label: "aurora-image-mini (2)" });
    await page.getByLabel("aspect_ratio").selectOption({ label: "16:9 (1)" });
    expect(await shown()).toHaveLength(1);
    expect(await page.locator(".found").innerText()).toBe("1 of 8 shown");
    const kept = await shown();
    await page.reload();
    expect(await shown()).toEqual(kept);
    await page.getByRole("button", { name: "Clear filters" }).click();
    await page.getByRole("button", { name: "Waiting for approval 4" }).click();
    expect(await shown()).toHaveLength(4);
    await page.getByRole("searchbox").fill("no such thing");
    expect(await page.getByText("Nothing passes these filters.").isVisible()).toBe(true);
    expect(complaints).toEqual([]);
  });

  it("clips and sounds play, and a pointer that moves over a clip scrubs it", async () => {
    await open(path(), "#q=clip");
    const clip = page.locator(".card video").first();
    const timeOf = () => clip.evaluate((video: HTMLVideoElement) => video.currentTime);
    await page.waitForFunction(() => (document.querySelector("video")?.readyState ?? 0) >= 2);
    const box = await clip.boundingBox();
    if (box === null) throw new Error("no clip");
    const at = (share: number) =>
      page.mouse.move(box.x + share * box.width, box.y + box.height / 2, { steps: 3 });
    const duration = await clip.evaluate((video: HTMLVideoElement) => video.duration);
    await at(0.25);
    await at(0.75);
    await page.waitForFunction(
      (limit) => (document.querySelector("video")?.currentTime ?? 0) > limit,
      duration * 0.6,
    );
    // A pointer that rests lets it play on.
    await page.waitForFunction(() => document.querySelector("video")?.paused === false);
    await page.mouse.move(5, 5);
    await page.waitForFunction(() => document.querySelector("video")?.paused === true);
    expect(await timeOf()).toBeLessThan(1);
    await page.locator(".card .preview").first().click();
    await page.waitForFunction(
      () => (document.querySelector<HTMLVideoElement>("dialog video")?.currentTime ?? 0) > 0.2,
    );
    await press("Escape");
    await page.getByRole("searchbox").fill("voice");
    expect(await page.locator(".wave .base path").count()).toBe(2);
    expect(await page.locator(".wave.flat").count()).toBe(0);
    await page.locator(".card .preview").first().click();
    await page.waitForFunction(
      () => (document.querySelector<HTMLAudioElement>("dialog audio")?.currentTime ?? 0) > 0.1,
    );
    expect(complaints).toEqual([]);
  });

  it("is gone through by keys; what was chosen stays, and commands carry out the exported review.csv", async () => {
    await open(path(), "", { acceptDownloads: true });
    const [first, second, third] = await shown();
    await press("ArrowRight", "ArrowLeft", "p");
    expect(await focused()).toBe(first);
    await press("ArrowRight", "x");
    expect(await focused()).toBe(second);
    // In the large view the same keys hold.
    await press("Enter", "ArrowRight", "r", "u", "r");
    expect(await page.locator("dialog h2").innerText()).toBe(third);
    await press("Escape");
    await expect.poll(focused).toBe(third);
    await page.reload();
    await page.getByRole("button", { name: "1 picked · 1 rejected · 1 to redo" }).click();
    const commands = await page.locator(".commands code").allInnerTexts();
    expect(commands).toEqual([
      "bulkgen pick --from review.csv --sandbox",
      "bulkgen approve --from review.csv --sandbox",
      "bulkgen reject --from review.csv --sandbox",
      "bulkgen redo --from review.csv --sandbox",
      "bulkgen export 1 --zip picked.zip --files-only --from review.csv --sandbox",
    ]);
    await expectAccessible();
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save review.csv" }).click();
    const file = await download;
    expect(file.suggestedFilename()).toBe("review.csv");
    await file.saveAs(join(place.folder, "review.csv"));
    expect(await call("pick", "--from", "review.csv")).toBe(`${first} is picked\n`);
    expect(await call("approve", "--from", "review.csv")).toContain(`${first} is approved`);
    expect(await call("reject", "--from", "review.csv")).toContain(`${second} is rejected`);
    await call("export", "--zip", "picked.zip", "--files-only", "--from", "review.csv");
    const packed = [...unzip(join(place.folder, "picked.zip")).keys()];
    expect(packed).toHaveLength(1);
    const redone = await run(place, ["redo", "--from", "review.csv", "--yes", "--sandbox"]);
    expect([0, 10], redone.stderr).toContain(redone.code);
    // The next page knows what was carried out.
    await call("gallery");
    await page.goto(pathToFileURL(path()).href);
    expect(await page.getByRole("button", { name: "Your choices" }).isVisible()).toBe(true);
    expect(await shown()).toHaveLength(9);
    expect(await page.locator(".card.pick .name").allInnerTexts()).toEqual([first]);
    expect(await page.locator(".card.reject .name").allInnerTexts()).toEqual([second]);
    // Two takes of a row side by side.
    await page.getByRole("button", { name: new RegExp(`^${third}, `) }).click();
    await page.getByRole("button", { name: `Compare with ${third}-v2` }).click();
    await page.waitForFunction(() =>
      [...document.querySelectorAll<HTMLVideoElement>(".half video")].every(
        ({ currentTime }) => currentTime > 0.2,
      ),
    );
    expect(await page.locator(".half video").count()).toBe(2);
    await press("s");
    expect(await page.getByRole("slider", { name: "How much of A is shown" }).count()).toBe(1);
    await expectAccessible();
    await press("2", "Escape", "Escape");
    expect(await page.locator(".card.pick .name").allInnerTexts()).toEqual([first, `${third}-v2`]);
    expect(complaints).toEqual([]);
  }, 120_000);

  it("shows the axes of a matrix as a contact sheet, with the columns and rows that are asked for", async () => {
    await open(path(), "#view=xy&x=p.aspect_ratio&y=row");
    expect(await page.locator("thead th").allInnerTexts()).toEqual(["1:1", "16:9"]);
    expect(await page.locator("tbody th").count()).toBeGreaterThanOrEqual(2);
    await page.getByLabel("Across").selectOption("model");
    expect(await page.locator("thead th").allInnerTexts()).toEqual([
      "aurora-image-mini",
      "reel-text",
      "voice-clear",
    ]);
    await page.reload();
    expect(await page.locator("thead th")).toBeDefined();
    expect(await page.locator("thead th").first().innerText()).toBe("aurora-image-mini");
    await page.locator(".small").first().click();
    expect(await page.locator("dialog h2").count()).toBe(1);
    expect(complaints).toEqual([]);
  });

  it("prompt and params are copied by a click", async () => {
    await open(path(), "", { permissions: ["clipboard-read", "clipboard-write"] });
    const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
    await press("Enter");
    await page.getByRole("button", { name: "Copy prompt" }).click();
    await page.getByText("Prompt copied").waitFor();
    expect(await clipboard()).toBe("a cup");
    await page.getByRole("button", { name: "Copy params" }).click();
    await page.getByText("Params copied").waitFor();
    expect(await clipboard()).toMatch(/^aspect_ratio=(1:1|16:9)$/);
    // Where the page has no clipboard, the selection is copied.
    await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
    await page.getByRole("button", { name: "Copy id" }).click();
    await page.getByText("Id copied").waitFor();
    expect(complaints).toEqual([]);
  });

  it("the page for a client has no choices", async () => {
    const [first] = (await call("pick", "--json")).match(/cup-shot[^"]*/) ?? [];
    await call("gallery", "--picked");
    await open(join(place.folder, "sandbox-outputs/set/picked.html"));
    expect(await shown()).toContain(first);
    await press("p");
    expect(await page.getByRole("button", { name: /Pick|Reject|Redo|choices/ }).count()).toBe(0);
    expect(await page.locator(".mark.pick").count()).toBe(0);
    await expectAccessible();
  });

  it("cuts no button in a narrow window", async () => {
    await open(path(), "", { viewport: { width: 390, height: 844 } });
    const widths = page
      .locator(".controls > *")
      .evaluateAll((all) => all.map((each) => [each.className, each.scrollWidth - each.clientWidth]));
    expect((await widths).filter(([, cut]) => cut !== 0)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  });

  it("fits a phone", async () => {
    await open(path(), "", { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    for (const [index, name] of ["Pick (P)", "Reject (X)", "Redo (R)"].entries())
      await page
        .locator(".card")
        .nth(index + 3)
        .getByRole("button", { name })
        .tap();
    expect(await page.locator(".review-button").innerText()).toBe("1 picked · 1 rejected · 1 to redo");
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await page.locator(".preview").first().tap();
    expect(
      await page.evaluate(() => document.querySelector("dialog[open]")?.scrollWidth),
    ).toBeLessThanOrEqual(390);
    await expectAccessible();
  });
});

const evil = `"><img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;
const bidi = "\u202egnp.exe\u2066 \u0007\u0000\u009b31m עברית 👩‍👩‍👧‍👦 Z̸̡̢̧̛̗̱͎̲̠̪a";

describe("texts from outside", () => {
  it("are shown as text wherever they are, and run nothing", async () => {
    const place = await archivedPlace();
    try {
      const long = `${evil} ${bidi} ${"x".repeat(10_000)}`;
      await place.archive("png", [await media.png()], {
        prompt: long,
        params: { [evil]: bidi, ["__proto__x"]: evil },
        model: evil,
      });
      await place.archive(evil.slice(0, 40) + bidi, [await media.webp()], {
        name: "javascript:alert(1)#?/50%",
        params: { [evil]: "other" },
      });
      await place.archive("clip", [await media.mp4()], { category: "video", prompt: bidi });
      await place.archive("sound", [await media.mp3()], { category: "audio", prompt: null });
      const made = await writeGallery({
        workspace: place.workspace,
        run: undefined,
        clock: place.clock,
        only: null,
        prices: true,
        onProgress: () => {},
        render: galleryPage,
        signal: new AbortController().signal,
      });
      expect(made.files).toBe(4);
      await open(made.page);
      expect(await shown()).toHaveLength(4);
      await page.waitForFunction(() => [...document.images].every((image) => image.naturalWidth > 0));
      for (let card = 0; card < 4; card++) {
        await press("Enter");
        const text = await page.locator("dialog[open]").innerText();
        if (card === 0) {
          expect(text).toContain("<script>document.title='owned'</script>");
          expect(text).toContain("⟨U+202E⟩gnp.exe⟨U+2066⟩ ␇␀␡31m עברית 👩‍👩‍👧‍👦");
          expect(text).toContain("4 credits");
        }
        const href = await page.locator("a.file-link").evaluate((link: HTMLAnchorElement) => link.href);
        expect(href).toMatch(/^file:\/\/\/.*\/demo\//);
        await press("Escape", "p", "ArrowRight");
      }
      await page.getByRole("button", { name: /4 picked/ }).click();
      await press("Escape");
      await page.getByRole("button", { name: "X/Y" }).click();
      expect(await page.title()).toBe("demo");
      expect(await page.locator("script").count()).toBe(2);
      expect(complaints.filter((text) => !/ERR_|decode/i.test(text))).toEqual([]);
      // The policy holds even for what would get through.
      const broken = join(place.folder, "broken.html");
      writeFileSync(
        broken,
        readFileSync(made.page, "utf8").replace("<body>", `<body>${evil}<b style="color:red">x</b>`),
      );
      await open(broken);
      expect(await page.title()).toBe("demo");
      expect(complaints.join()).toContain("Content Security Policy");
    } finally {
      await place.close();
    }
  });

  it("failed and held items are there with their reasons and what to do, and cannot be chosen", async () => {
    const failed = { ...cardOf(0), rowId: "bad", name: "", state: "failed" as const, file: null };
    const trouble = { reason: `refused: ${evil}`, evidence: null, commands: ["bulkgen retry"] };
    const held = {
      ...failed,
      rowId: "lost",
      state: "held" as const,
      trouble: {
        reason: "no answer",
        evidence: "POST 2026, body 00",
        commands: ["bulkgen resolve lost --skip"],
      },
    };
    await open(written({ cards: [cardOf(0), { ...failed, trouble }, held] }));
    expect(await page.locator(".title p").innerText()).toContain("1 file · 1 failed · 1 held");
    await page.getByRole("button", { name: "Failed 1" }).click();
    expect(await shown()).toEqual(["bad"]);
    await press("ArrowRight", "p", "Enter");
    expect(await page.getByRole("button", { name: "Your choices" }).count()).toBe(1);
    expect(await page.locator("dialog[open]").innerText()).toContain(`refused: ${evil}`);
    await expectAccessible();
    await press("Escape");
    await page.getByRole("button", { name: "Held 1" }).click();
    await page.locator(".preview").click();
    expect(await page.locator("dialog code").innerText()).toBe("bulkgen resolve lost --skip");
    expect(await page.title()).toBe("demo");
  });
});

describe("files that a bucket has instead of this disk", () => {
  it("are named by their address, and nothing is loaded in their place", async () => {
    const address = "s3://inputs/team/demo/row-1.mp4";
    const [first, second] = [cardOf(0), cardOf(1)];
    const file = { ...first.file, path: "row-1.mp4", address, mime: "video/mp4", loudness: null };
    await open(written({ cards: [{ ...first, file: file as GalleryCard["file"] }, second] }));
    expect(await page.locator(".card").first().innerText()).toContain(address);
    await page.locator(".card .preview").first().click();
    expect(await page.locator("dialog[open]").innerText()).toContain(address);
    await expectAccessible();
    const loaded = await page.locator("[src*='row-1'], [href*='row-1']").count();
    expect([loaded, complaints]).toEqual([0, []]);
  });
});

describe("a page without the files of its folder", () => {
  it("says in the place of each picture that it cannot be loaded, and what to do", async () => {
    const card = cardOf(0);
    const thumbnail = { file: "_gallery/cup.webp", width: 40, height: 40 };
    const file = { ...card.file, path: "cup.png", mime: "image/png", thumbnail } as GalleryCard["file"];
    await open(written({ cards: [{ ...card, file }] }));
    const message = "cup.png cannot be loaded. Keep this page in the folder with its files.";
    const inGrid = page.locator(".card .no-file");
    await inGrid.waitFor();
    expect(await inGrid.innerText()).toBe(message);
    await page.locator(".card .preview").click();
    const large = page.locator("dialog .no-file");
    await large.first().waitFor();
    expect(await large.first().innerText()).toBe(message);
    await expectAccessible();
  });
});

describe("a job of 5,000 files", () => {
  it("keeps only what can be seen in the document, however far it is scrolled", async () => {
    const cards = Array.from({ length: 5_000 }, (_, at) => cardOf(at));
    await open(written({ cards }));
    const inDocument = () => page.locator(".card").count();
    expect(await page.locator(".title p").innerText()).toContain("5000 files");
    const most: number[] = [await inDocument()];
    for (const share of [0.1, 0.5, 0.9, 1]) {
      await page.evaluate((to) => scrollTo(0, to * document.documentElement.scrollHeight), share);
      const first = Math.floor(share * 4_900);
      await page.waitForFunction(
        (least) =>
          [...document.querySelectorAll(".card")].some(
            (card) => Number(card.getAttribute("aria-posinset")) > least,
          ),
        first * 0.9,
      );
      most.push(await inDocument());
    }
    expect(Math.max(...most)).toBeLessThan(90);
    await press("End");
    expect(await focused()).toBe("row-5000");
    await press("Home", "PageDown");
    expect(await page.locator(".card:focus-within").getAttribute("aria-posinset")).not.toBe("1");
    await page.getByRole("searchbox").fill("row-4321");
    expect(await shown()).toEqual(["row-4321"]);
    await press("Enter", "p", "Escape");
    expect(await page.getByRole("button", { name: "1 picked" }).isVisible()).toBe(true);
    expect(complaints).toEqual([]);
  });
});

/** A card with a sound, whose outline is in the page. */
function cardOf(at: number): GalleryCard {
  return {
    name: `task-${at + 1}`,
    rowId: `row-${at + 1}`,
    rowNumber: at + 2,
    row: String(at),
    model: ["one", "two", "three"][at % 3] ?? "",
    prompt: `prompt ${at} ${"words ".repeat(20)}`,
    params: { seed: String(at), size: String(at % 7) },
    columns: {},
    edition: "",
    variant: 1,
    isEarlier: false,
    isPicked: false,
    state: "archived",
    file: {
      path: `row-${at + 1}.mp3`,
      address: null,
      mime: "audio/mpeg",
      bytes: 1_000,
      savedAt: 0,
      unproven: null,
      thumbnail: null,
      loudness: Array.from({ length: 96 }, (_, slice) => (slice * at) % 100),
      price: null,
    },
    trouble: null,
  };
}

function written(page: Pick<GalleryPage, "cards">): string {
  const path = join(folder, "gallery.html");
  writeFileSync(
    path,
    galleryPage({ job: "demo", run: 1, madeAt: 0, key: "k", flags: "", isForClient: false, ...page }),
  );
  return path;
}
