import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import sharp from "sharp";
import { expect, test } from "vitest";
import { afterwards, jobOf, modelOf, unhurried } from "../providers/job.js";
import {
  bytesOf,
  factsOf,
  folderWith,
  full,
  hasRed,
  hostilePrompts,
  lime,
  opened,
  page,
  pixelAt,
  red,
} from "../providers/template-files.js";

test("a page is shown in the size and format that the params say", async () => {
  const folder = folderWith({
    "sale.html": page(
      `<main style="height: {{ height }}px"><p>{{ prompt }}, {{ width }} px</p></main>`,
      "main{background:lime;overflow:hidden}",
    ),
  });
  const provider = opened(folder);
  expect(provider.repeatable).toBe("yes");
  const model = modelOf({ template: "sale.html" });
  for (const [size, output_format, expected] of [
    ["1200x628", undefined, "png 1200x628"],
    ["1080 × 1920", "jpeg", "jpeg 1080x1920"],
    ["300X200", "webp", "webp 300x200"],
    ["30x20", "JPG", "jpeg 30x20"],
  ] as const) {
    const params = { size, ...(output_format ? { output_format } : {}) };
    const bytes = await bytesOf(provider, jobOf(model, { params }));
    expect(await factsOf(bytes)).toBe(expected);
    expect((await pixelAt(bytes, 29, 1))[1]).toBeGreaterThan(250);
  }
  // One page, whose points are 3/4 of a px.
  for (const [width, height] of [
    [600, 300],
    [1200, 628],
  ] as const) {
    const job = jobOf(model, { params: { size: `${width}x${height}`, output_format: "pdf" } });
    const pdf = (await bytesOf(provider, job)).toString("latin1");
    const [, right, top] = /MediaBox \[0 0 ([\d.]+) ([\d.]+)\]/.exec(pdf) ?? [];
    expect([pdf.slice(0, 5), Math.round(Number(right)), Math.round(Number(top))]).toEqual([
      "%PDF-",
      (width * 3) / 4,
      (height * 3) / 4,
    ]);
    expect(/\/Count (\d+)/.exec(pdf)?.[1]).toBe("1");
  }
  const own = modelOf({ template: "sale.html", width: 40, height: 50 });
  expect(await factsOf(await bytesOf(provider, jobOf(own)))).toBe("png 40x50");
  expect(await factsOf(await bytesOf(provider, jobOf(own, { params: { width: "60" } })))).toBe("png 60x50");
});

test("a prompt is text, and nothing else", async () => {
  const folder = folderWith({
    "sale.html": page(
      `<p title="{{ prompt }}" style="font-size:8px">{{ prompt }}</p><div style="${full};top:50px;background:lime"></div>`,
    ),
  });
  const provider = opened(folder);
  for (const prompt of hostilePrompts) {
    const job = jobOf(modelOf({ template: "sale.html" }), { prompt, params: { size: "90x90" } });
    const bytes = await bytesOf(provider, job);
    expect([await pixelAt(bytes, 80, 80), await hasRed(bytes)]).toEqual([lime, false]);
  }
});

test("the page's own scripts do not run", async () => {
  const folder = folderWith({
    "a.html": page(
      `<div style="${full};background:lime"></div><script>document.body.innerHTML = "";</script>`,
    ),
  });
  const bytes = await bytesOf(opened(folder), jobOf(modelOf({ template: "a.html", width: 20, height: 20 })));
  expect(await pixelAt(bytes, 10, 10)).toEqual(lime);
});

test("files of the template's folder are there, with their styles and pictures", async () => {
  const folder = folderWith({
    "banners/sale.html": page(`<link rel="stylesheet" href="parts/sale.css"><img src="parts/my logo.svg">`),
    "banners/parts/sale.css": "img { position: fixed; left: 0; top: 0 } body { background: url(back.svg) }",
    "banners/parts/back.svg": `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9" fill="red"/></svg>`,
    "banners/parts/my logo.svg": `<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><rect width="10" height="10" fill="lime"/></svg>`,
  });
  const bytes = await bytesOf(
    opened(folder),
    jobOf(modelOf({ template: "banners/sale.html", width: 20, height: 20 })),
  );
  expect([await pixelAt(bytes, 5, 5), await pixelAt(bytes, 15, 15)]).toEqual([lime, red]);
});

test("nothing else is: no other folder, no hidden file, no network; a picture without its parts is no result", async () => {
  let requests = 0;
  const server = createServer((_, response) => {
    requests++;
    response.end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  afterwards(() => server.close());
  const away = `http://127.0.0.1:${(server.address() as AddressInfo).port}/logo.png`;
  const folder = folderWith({
    "secret.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>",
    "banners/.env": "KEY=1",
    ...Object.fromEntries(
      [away, "none.png", "../secret.svg", "%2e%2e/secret.svg", ".env", "link.svg", "parts"].map(
        (src, index) => [`banners/${index}.html`, page(`<img src="${src}">`)],
      ),
    ),
  });
  mkdirSync(join(folder, "banners/parts"));
  symlinkSync(join(folder, "secret.svg"), join(folder, "banners/link.svg"));
  const provider = opened(folder);
  const messages: string[] = [];
  for (let index = 0; index < 7; index++) {
    const job = jobOf(modelOf({ template: `banners/${index}.html`, width: 20, height: 20 }));
    const error = await provider.submit(job, unhurried).catch((reason: Error) => reason);
    expect(error).toMatchObject({ name: "JobRefused", kind: "provider", billed: false });
    messages.push((error as Error).message);
  }
  expect(messages).toEqual([
    `the template asks for ${away}, but templates are shown without a network: save the file beside the template`,
    "the template asks for none.png, which is not in its folder",
    "the template asks for secret.svg, which is not in its folder",
    "the template asks for secret.svg, which is not in its folder",
    "the template asks for .env, which is not in its folder",
    "the template asks for link.svg, which is not in its folder",
    "the template asks for parts, which is not in its folder",
  ]);
  expect(requests).toBe(0);
});

test("an input picture stands where the template has it", async () => {
  const image = await sharp({ create: { width: 4, height: 4, channels: 3, background: "lime" } })
    .png()
    .toBuffer();
  const folder = folderWith({
    "in.bin": image,
    "a.html": page(`<img src="{{ image }}" style="${full};width:100%;height:100%">`),
  });
  const media = { image: { path: join(folder, "in.bin"), type: "image/png", address: null } };
  const provider = opened(folder);
  for (const template of ["a.html"]) {
    const model = modelOf({ template, width: 40, height: 40 }, { input: "image" });
    const bytes = await bytesOf(provider, jobOf(model, { media }));
    expect(await pixelAt(bytes, 20, 20)).toEqual(lime);
  }
});

test("jobs share one browser, which ends when it is closed or idle, and starts again", async () => {
  const folder = folderWith({ "a.html": page("{{ prompt }}") });
  const sleeps: (() => void)[] = [];
  const clock = {
    now: () => 0,
    monotonic: () => 0,
    sleep: (_: number, signal?: AbortSignal) =>
      new Promise<void>((resolve) => {
        sleeps.push(resolve);
        signal?.addEventListener("abort", () => resolve(), { once: true });
      }),
  };
  const provider = opened(folder, { clock });
  const job = () => jobOf(modelOf({ template: "a.html", width: 30, height: 30 }));
  const together = await Promise.all([1, 2, 3].map(() => bytesOf(provider, job())));
  expect(together.map((bytes) => bytes.length > 0)).toEqual([true, true, true]);
  sleeps.at(-1)?.();
  expect((await bytesOf(provider, job())).length).toBeGreaterThan(0);
  await provider.close?.();
  expect((await bytesOf(provider, job())).length).toBeGreaterThan(0);
});

test("a browser that crashed is started again", async () => {
  const folder = folderWith({ "a.html": page("{{ prompt }}") });
  const provider = opened(folder);
  const job = () => jobOf(modelOf({ template: "a.html", width: 30, height: 30 }));
  await bytesOf(provider, job());
  for (const pid of childrenNow()) process.kill(pid, "SIGKILL");
  const all = await Promise.all([bytesOf(provider, job()), bytesOf(provider, job())]);
  expect(all.every((bytes) => bytes.length > 0)).toBe(true);
});

/** The browsers of this process. */
function childrenNow(): number[] {
  return readdirSync("/proc").flatMap((name) => {
    try {
      const [, program = "", parent] =
        /\((.*)\) \S (\d+)/s.exec(readFileSync(`/proc/${name}/stat`, "utf8")) ?? [];
      return Number(parent) === process.pid && program.includes("chrom") ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}

test("an aborted job ends its page and no other", async () => {
  const folder = folderWith({ "a.html": page("{{ prompt }}") });
  const provider = opened(folder);
  const job = () => jobOf(modelOf({ template: "a.html", width: 30, height: 30 }));
  const controller = new AbortController();
  const aborted = expect(provider.submit(job(), controller.signal)).rejects.toMatchObject({
    name: "AbortError",
  });
  const other = bytesOf(provider, job());
  controller.abort();
  await aborted;
  expect((await other).length).toBeGreaterThan(0);
});

test("a check starts the browser", async () => {
  const folder = folderWith({ "a.html": page("") });
  const models = [modelOf({ template: "a.html" })];
  expect(await opened(folder).check?.(unhurried, models)).toBeNull();
  const wrong = opened(folder, { details: { browser: "/bin/false" } });
  expect(await wrong.check?.(unhurried, models)).toContain("the browser does not start: ");
});
