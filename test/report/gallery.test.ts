import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { galleryPage } from "../../src/report/gallery/document.js";
import type { GalleryCard, GalleryPage } from "../../src/upkeep/archive/gallery.js";
import { galleryData } from "./gallery-data.js";

const card: GalleryCard = {
  name: "task-1",
  rowId: "a",
  rowNumber: 2,
  row: "a",
  model: "flux",
  prompt: "a cup",
  params: { aspect_ratio: "16:9" },
  columns: {},
  edition: "",
  variant: 1,
  isEarlier: false,
  isPicked: false,
  state: "archived",
  file: {
    path: "cards/a b#1?.png",
    address: null,
    mime: "image/png",
    bytes: 1_000,
    savedAt: 0,
    unproven: null,
    thumbnail: { file: "_gallery/00.webp", width: 560, height: 315 },
    loudness: null,
    price: "4 credits",
  },
  trouble: null,
};

function pageOf(...cards: GalleryCard[]): GalleryPage {
  return { job: "demo", run: 1, madeAt: 0, key: "k", flags: " --sandbox", isForClient: false, cards };
}

/** The content policy, and the text of an element. */
function parts(text: string) {
  const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(text)?.[1] ?? "";
  return {
    policy: policy.replaceAll("&#39;", "'"),
    style: /<style>([\s\S]*?)<\/style>/.exec(text)?.[1] ?? "",
    script: /<script>([\s\S]*?)<\/script>/.exec(text)?.[1] ?? "",
  };
}

const hashOf = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

describe("the gallery's page", () => {
  test("holds everything that it shows", () => {
    const page = pageOf(card, { ...card, name: "", file: null, state: "failed" });
    expect(galleryData(galleryPage(page))).toEqual(page);
  });

  test("P24: its policy allows its own style, script and files, and nothing from elsewhere", () => {
    const { policy, style, script } = parts(galleryPage(pageOf(card)));
    expect(script.length).toBeGreaterThan(10_000);
    expect(policy.split("; ")).toEqual([
      "default-src 'none'",
      "img-src 'self' file:",
      "media-src 'self' file:",
      `script-src ${hashOf(script)}`,
      "require-trusted-types-for 'script'",
      `style-src ${hashOf(style)}`,
      "base-uri 'none'",
      "form-action 'none'",
    ]);
  });

  test("its script reads no text as HTML or as code, and asks nobody for anything", () => {
    const forbidden =
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|fetch\(|XMLHttpRequest|WebSocket|import\(/gi;
    const sources = readdirSync("src/page", { recursive: true, encoding: "utf8" })
      .filter((name) => /^(gallery|parts)\/(?!service\/).*\.tsx?$/.test(name))
      .map((name) => readFileSync(join("src/page", name), "utf8"));
    expect(sources.length).toBeGreaterThan(10);
    expect(sources.flatMap((text) => text.match(forbidden) ?? [])).toEqual([]);
    // Preact sets the HTML of an element that asks for it, which none does, and the policy would not let it.
    const preact = readFileSync("node_modules/preact/dist/preact.mjs", "utf8");
    const { script } = parts(galleryPage(pageOf()));
    expect(script.match(forbidden)?.sort()).toEqual(preact.match(forbidden)?.sort());
  });

  test("P24: no text from outside becomes a tag or an attribute", () => {
    const tags = (text: string) =>
      text.match(/<[a-z!/][^>]*>/gi)?.map((tag) => tag.replace(/"[^"]*"/g, '""'));
    const plain = tags(galleryPage(pageOf(card)));
    const hostile = fc.string({
      unit: fc.constantFrom(..."<>\"'&/=`! \n\u202e\u2028\ud800scriptonerror;:-".split("")),
    });
    fc.assert(
      fc.property(hostile, hostile, (one, two) => {
        const page = pageOf({
          ...card,
          file: card.file && { ...card.file, path: `x/${one}.png` },
          prompt: `${one}${two}</script><script>`,
          rowId: two,
          model: one,
          params: { [`k${one}`]: two },
        });
        const text = galleryPage({ ...page, job: one });
        expect(tags(text)).toEqual(plain);
        expect(galleryData(text).cards).toEqual(page.cards);
      }),
      { numRuns: 500 },
    );
  });
});
