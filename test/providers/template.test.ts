import { join } from "node:path";
import sharp from "sharp";
import { expect, test } from "vitest";
import type { JsonObject, ModelSettings } from "../../src/providers/provider.js";
import { templateKind } from "../../src/providers/template/kind.js";
import { jobOf, mistakesOf, modelOf, unhurried } from "./job.js";
import {
  bytesOf,
  factsOf,
  folderWith,
  hasRed,
  hostilePrompts,
  lime,
  opened,
  page,
  pixelAt,
  red,
} from "./template-files.js";

// What needs a browser is in test/browser/template.test.ts.

test("a prompt is text, and nothing else", async () => {
  const folder = folderWith({
    "sale.svg": `<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90"><rect width="90" height="90" fill="lime"/><text x="2" y="9" font-size="8">{{ prompt }}</text></svg>`,
  });
  const provider = opened(folder);
  for (const prompt of hostilePrompts) {
    const job = jobOf(modelOf({ template: "sale.svg" }), { prompt, params: { size: "90x90" } });
    const bytes = await bytesOf(provider, job);
    expect([await pixelAt(bytes, 80, 80), await hasRed(bytes)]).toEqual([lime, false]);
  }
});

test("an input picture stands where the template has it", async () => {
  const image = await sharp({ create: { width: 4, height: 4, channels: 3, background: "lime" } })
    .png()
    .toBuffer();
  const folder = folderWith({
    "in.bin": image,
    "a.svg": `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><image href="{{ image }}" width="8" height="8"/></svg>`,
  });
  const media = { image: { path: join(folder, "in.bin"), type: "image/png", address: null } };
  const provider = opened(folder);
  for (const template of ["a.svg"]) {
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
    name: "JobRefused",
    kind: "parameter",
    message,
  });
});

test("an SVG that is none, and a filter that fails, are the template's fault", async () => {
  const folder = folderWith({ "a.svg": "<svg", "b.svg": "{% for x in (1..90000000) %}{{ x }}{% endfor %}" });
  for (const template of ["a.svg", "b.svg", "none.svg"])
    await expect(opened(folder).submit(jobOf(modelOf({ template })), unhurried)).rejects.toMatchObject({
      name: "JobRefused",
      kind: "provider",
    });
});

test("a check says when there is no browser, and only for HTML", async () => {
  const folder = folderWith({ "a.html": page(""), "a.svg": "<svg/>" });
  const models = (template: string) => [modelOf({ template })];
  const without = opened(folder, { env: { PATH: "" } });
  expect(await without.check?.(unhurried, models("a.svg"))).toBeNull();
  const message =
    "HTML templates need Chromium or Chrome, and none is on the PATH: install one, or name it as browser of the provider";
  expect(await without.check?.(unhurried, models("a.html"))).toBe(message);
  await expect(
    without.submit(jobOf(modelOf({ template: "a.html", width: 9, height: 9 })), unhurried),
  ).rejects.toMatchObject({
    name: "JobRefused",
    message,
  });
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
  ...[
    ["away.html", "https://example.com/a.css"],
    ["file.html", "file:///logo.png"],
  ].map(([template = "", address]): [string, JsonObject, string[], ModelSettings["input"], string[]] => [
    `a page that refers to ${address}`,
    { template, width: 9, height: 9 },
    [],
    "text",
    [
      `template: ${template} refers to ${address}, but templates are shown without a network and without other folders: save the file beside the template, and write its name`,
    ],
  ]),
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
    "away.html": `<a href="https://example.com">{{ prompt }}</a><style>@import "https://example.com/a.css";</style>`,
    "file.html": "<img alt='' src=file:///logo.png>",
    "files.svg": '<svg><image width="3" href="logo.png"/></svg>',
  });
  expect(mistakesOf(templateKind, modelOf(details, { input }), folder, params)).toEqual(expected);
});
