import { once } from "node:events";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import sharp from "sharp";
import { expect, test } from "vitest";
import type { Done, Job, JsonObject, ModelSettings } from "../../src/providers/provider.js";
import { templateKind } from "../../src/providers/template/kind.js";
import {
  afterwards,
  freshFolder,
  jobOf,
  mistakesOf,
  modelOf,
  openKind,
  type PlaceParts,
  unhurried,
} from "./job.js";

/** A folder with these files. */
function folderWith(files: Readonly<Record<string, string | Uint8Array>>): string {
  const folder = freshFolder();
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(folder, name, ".."), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return folder;
}

function opened(folder: string, parts: PlaceParts = {}) {
  const { PATH = "", HOME = "", CHROMIUM } = process.env;
  const env = { PATH, HOME, ...(CHROMIUM === undefined ? {} : { CHROMIUM }) };
  return openKind(templateKind, { folder, env, ...parts });
}

async function bytesOf(provider: ReturnType<typeof opened>, job: Job): Promise<Buffer> {
  const done = (await provider.submit(job, unhurried)) as Done;
  const [output] = done.outputs as { bytes: Uint8Array }[];
  return Buffer.from(output?.bytes ?? []);
}

async function pixelAt(bytes: Buffer, left: number, top: number): Promise<number[]> {
  const cut = await sharp(bytes).extract({ left, top, width: 1, height: 1 }).raw().toBuffer();
  return [...cut.subarray(0, 3)];
}

async function factsOf(bytes: Buffer): Promise<string> {
  const { format, width, height } = await sharp(bytes).metadata();
  return `${format} ${width}x${height}`;
}

const lime = [0, 255, 0];
const red = [255, 0, 0];
const page = (body: string, css = "") =>
  `<!doctype html><meta charset="utf-8"><style>body{margin:0}${css}</style>${body}`;
const full = "position:fixed;inset:0";

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

const prompts = [
  `<div style="${full};background:red"></div>`,
  `"><div style="${full};background:red"></div>`,
  `' onload='x' style='${full};background:red`,
  `<script>document.body.style.background='red'</script>`,
  `</style><style>body{background:red!important}</style>`,
  `<img src=x onerror="document.body.style.background='red'">`,
  "{{ prompt }} {% raw %}",
  "two\nlines & ünïcödé 🪁 עברית \u0001",
];

test("a prompt is text, and nothing else: whatever got out of its place would be red", async () => {
  const folder = folderWith({
    "sale.html": page(
      `<p title="{{ prompt }}" style="font-size:8px">{{ prompt }}</p><div style="${full};top:50px;background:lime"></div>`,
    ),
    "sale.svg": `<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90"><rect width="90" height="90" fill="lime"/><text x="2" y="9" font-size="8">{{ prompt }}</text></svg>`,
  });
  const provider = opened(folder);
  for (const prompt of prompts)
    for (const template of ["sale.html", "sale.svg"]) {
      const job = jobOf(modelOf({ template }), { prompt, params: { size: "90x90" } });
      const bytes = await bytesOf(provider, job);
      expect(await pixelAt(bytes, 80, 80)).toEqual(lime);
      const pixels = await sharp(bytes).removeAlpha().raw().toBuffer();
      const isRed = (_: number, at: number) =>
        at % 3 === 0 && pixels.subarray(at, at + 3).equals(Buffer.from(red));
      expect(pixels.findIndex(isRed)).toBe(-1);
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
    expect(error).toMatchObject({ name: "Refused", kind: "provider", billed: false });
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
    "a.svg": `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><image href="{{ image }}" width="8" height="8"/></svg>`,
  });
  const media = { image: { path: join(folder, "in.bin"), type: "image/png", address: null } };
  const provider = opened(folder);
  for (const template of ["a.html", "a.svg"]) {
    const model = modelOf({ template, width: 40, height: 40 }, { input: "image" });
    const bytes = await bytesOf(provider, jobOf(model, { media }));
    expect(await pixelAt(bytes, 20, 20)).toEqual(lime);
  }
});

test("an SVG is drawn sharply in any size, without a browser", async () => {
  const folder = folderWith({
    "a.svg": `<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><rect width="5" height="10" fill="red"/><rect x="5" width="5" height="10" fill="lime"/></svg>`,
  });
  const provider = opened(folder, { env: { PATH: "" } });
  const model = modelOf({ template: "a.svg" });
  const large = await bytesOf(provider, jobOf(model, { params: { size: "1000x1000" } }));
  expect([await pixelAt(large, 498, 9), await pixelAt(large, 501, 9)]).toEqual([red, lime]);
  expect(await factsOf(await bytesOf(provider, jobOf(model)))).toBe("png 10x10");
  const wide = await bytesOf(provider, jobOf(model, { params: { size: "200x100", output_format: "jpeg" } }));
  expect([await factsOf(wide), await pixelAt(wide, 2, 2)]).toEqual(["jpeg 200x100", [255, 255, 255]]);
  await expect(
    provider.submit(jobOf(model, { params: { output_format: "pdf" } }), unhurried),
  ).rejects.toThrow("PDF needs an HTML template");
});

test.each<[string, Record<string, string>, string]>([
  ["size", { size: "large" }, 'size is written as 1200x628, but it is "large"'],
  ["size", { size: "100000x2" }, "width is at least 1 and at most 8192 px, but it is 100000"],
  ["size", { size: "0x2" }, "width is at least 1 and at most 8192 px, but it is 0"],
  [
    "format",
    { size: "2x2", output_format: "gif" },
    'output_format is one of png, jpeg, webp, pdf, but it is "gif"',
  ],
  ["missing size", {}, "nothing says which size the picture has: expected a param size"],
])("a wrong %s is refused: %j", async (_, params, message) => {
  const folder = folderWith({ "a.html": page("") });
  await expect(
    opened(folder).submit(jobOf(modelOf({ template: "a.html" }), { params }), unhurried),
  ).rejects.toMatchObject({
    name: "Refused",
    kind: "parameter",
    message,
  });
});

test("an SVG that is none, and a filter that fails, are the template's fault", async () => {
  const folder = folderWith({ "a.svg": "<svg", "b.svg": "{% for x in (1..90000000) %}{{ x }}{% endfor %}" });
  for (const template of ["a.svg", "b.svg", "none.svg"])
    await expect(opened(folder).submit(jobOf(modelOf({ template })), unhurried)).rejects.toMatchObject({
      name: "Refused",
      kind: "provider",
    });
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

test("a check says when there is no browser, and only for HTML", async () => {
  const folder = folderWith({ "a.html": page(""), "a.svg": "<svg/>" });
  const models = (template: string) => [modelOf({ template })];
  expect(await opened(folder).check?.(unhurried, models("a.html"))).toBeNull();
  const without = opened(folder, { env: { PATH: "" } });
  expect(await without.check?.(unhurried, models("a.svg"))).toBeNull();
  const message =
    "HTML templates need Chromium or Chrome, and none is on the PATH: install one, or name it as browser of the provider";
  expect(await without.check?.(unhurried, models("a.html"))).toBe(message);
  await expect(
    without.submit(jobOf(modelOf({ template: "a.html", width: 9, height: 9 })), unhurried),
  ).rejects.toMatchObject({
    name: "Refused",
    message,
  });
  const wrong = opened(folder, { details: { browser: "/bin/false" } });
  expect(await wrong.check?.(unhurried, models("a.html"))).toContain("the browser does not start: ");
});

test.each<[string, JsonObject, string[], ModelSettings["input"], string[]]>([
  ["a good page", { template: "good.html" }, ["price", "size", "output_format"], "text", []],
  ["a good SVG", { template: "good.svg" }, [], "text", []],
  [
    "unknown and unused names",
    { template: "good.html", width: 10, height: 10 },
    ["prize", "image"],
    "text+image",
    [
      "params.image: image is a name that every template has: choose another",
      "template: good.html uses {{ price }}, which is no param of this model. Did you mean {{ prize }}?",
      "params.prize: good.html does not use {{ prize }}",
      "params.image: good.html does not use {{ image }}",
      "template: good.html does not use {{ image }}, which the model takes as input",
    ],
  ],
  [
    "a page without a size",
    { template: "good.html", width: 10 },
    ["price"],
    "text",
    [
      "template: an HTML template needs a size: a param size such as [1200x628, 1080x1080], or width and height of the model",
    ],
  ],
  [
    "Liquid that does not parse",
    { template: "broken.html" },
    [],
    "text",
    ['template: broken.html, line 2: tag "fi" not found'],
  ],
  [
    "a file that is not there",
    { template: "none.html" },
    [],
    "text",
    ["template: there is no file none.html"],
  ],
  [
    "another file",
    { template: "good.txt" },
    [],
    "text",
    ["template: good.txt is no template: expected a file .html or .svg"],
  ],
  [
    "an SVG with files",
    { template: "files.svg" },
    [],
    "video",
    [
      "template: files.svg refers to logo.png, but an SVG is drawn without other files: embed it as data:, or use an HTML template",
      "input: a template takes text and pictures, but no video",
    ],
  ],
])("mistakes of %s", (_, details, params, input, expected) => {
  const folder = folderWith({
    "good.html": "<p>{{ prompt }} {% if price %}{{ price | upcase }}{% endif %}{% assign a = 1 %}{{ a }}",
    "good.svg": "<svg><text>{{ prompt }}</text><use href='#a'/></svg>",
    "broken.html": "<p>\n{% fi %}",
    "files.svg": '<svg><image width="3" href="logo.png"/></svg>',
  });
  expect(mistakesOf(templateKind, modelOf(details, { input }), folder, params)).toEqual(expected);
});
