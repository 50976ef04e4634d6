import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { writeGallery } from "../../src/job/archive/gallery.js";
import { galleryPage } from "../../src/report/gallery.js";
import { media } from "../archive/media.js";
import { type ArchivedPlace, archivedPlace } from "../job/archived-place.js";
import { startChromium } from "./chromium.js";

let browser: Browser;
let place: ArchivedPlace;
beforeAll(async () => {
  browser = await startChromium();
  place = await archivedPlace();
});
afterAll(async () => {
  await browser.close();
  place.close();
});

it("opens from the disk with pictures, clips and sounds, and runs nothing that a prompt holds", async () => {
  const evil = `"><img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;
  await place.archive("png", [await media.png()], { prompt: evil, params: { [evil]: evil }, model: evil });
  await place.archive("webp", [await media.webp()], { name: "javascript:alert(1)#?/50%" });
  await place.archive("clip", [await media.mp4()], { category: "video" });
  await place.archive("sound", [await media.mp3()], { category: "audio" });
  const { page: path, files } = await writeGallery({
    workspace: place.workspace,
    run: undefined,
    clock: place.clock,
    picked: false,
    prices: true,
    onProgress: () => {},
    render: galleryPage,
    signal: new AbortController().signal,
  });
  expect(files).toBe(4);
  const page = await browser.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => complaints.push(message.text()));
  await page.goto(pathToFileURL(path).href);
  expect(await page.title()).toBe("demo");
  expect(await page.getByRole("article").count()).toBe(4);
  await page.waitForFunction(() => [...document.images].every((image) => image.naturalWidth > 0));
  await page.waitForFunction(() =>
    [...document.querySelectorAll<HTMLMediaElement>("video, audio")].every(({ duration }) => duration > 0),
  );
  expect(await page.getByText(evil).first().innerText()).toContain("<script>");
  expect(complaints).toEqual([]);
  for (const link of await page.getByRole("link").all()) {
    const address = await link.evaluate((node) => (node as HTMLAnchorElement).href);
    expect(address).toMatch(/^file:\/\/\/.*\/demo\//);
  }
  // The policy holds even for what would get through the escaping.
  const broken = join(place.folder, "broken.html");
  writeFileSync(
    broken,
    readFileSync(path, "utf8").replace("<main>", `<main>${evil}<b style="color:red">x</b>`),
  );
  await page.goto(pathToFileURL(broken).href);
  expect(await page.title()).toBe("demo");
  expect(complaints.length).toBeGreaterThan(0);
});
