import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { credits } from "../../src/core/money.js";
import type { GalleryFile } from "../../src/job/archive/gallery.js";
import { galleryPage } from "../../src/report/gallery.js";

const file: GalleryFile = {
  file: "cards/a b#1?.png",
  thumbnail: { file: "_gallery/00.webp", width: 560, height: 315 },
  mime: "image/png",
  bytes: 1_000,
  rowId: "a",
  rowNumber: 2,
  model: "flux",
  prompt: "a cup",
  params: { aspect_ratio: "16:9" },
  edition: "",
  variant: 1,
  isEarlier: false,
  isPicked: false,
  credits: credits(4),
  savedAt: 0,
};

function page(...files: GalleryFile[]): string {
  return galleryPage({ job: "demo", madeAt: Date.UTC(2026, 0, 1), files, failed: [] });
}

describe("the contact sheet", () => {
  test("shows each file with its prompt, model, params, row and credits", () => {
    const text = page(file, { ...file, file: "b.mp4", mime: "video/mp4", thumbnail: null, credits: null });
    expect(text).toContain(`<a href="./cards/a%20b%231%3F.png" dir="auto">cards/a b#1?.png</a>`);
    expect(text).toContain(`src="./_gallery/00.webp" width="560" height="315"`);
    expect(text).toContain("<span>aspect_ratio</span> 16:9");
    expect(text).toContain("row 2 · a</span><span>4 credits");
    expect(text).toContain(`<video controls preload="metadata" src="./b.mp4#t=0.1"`);
    expect(text).toContain("<p>2 files · 2 kB · 4 credits · 2026-01-01 00:00 UTC");
    expect(page()).toContain("Nothing is archived yet.");
  });

  test("marks variants, editions, earlier versions and picks", () => {
    const text = page(file, { ...file, edition: "#2", variant: 3, isEarlier: true, isPicked: true });
    expect(text.match(/class="mark">✓ picked</g)).toHaveLength(1);
    expect(text).toContain("<p>2 files · 1 picked · 2 kB");
    const marks = [...text.matchAll(/<strong>(.*?)<\/strong>/g)].map(([, mark]) => mark);
    expect(marks).toEqual(["edition 2", "variant 3", "earlier version"]);
  });

  test("names the rows that failed, with the reason", () => {
    const failed = [{ rowId: "b", rowNumber: 3, prompt: "a <mug>", reason: "refused" }];
    const text = galleryPage({ job: "demo", madeAt: 0, files: [file], failed });
    expect(text).toContain("<p>1 file · 1 failed · 1 kB");
    expect(text).toContain("<h2>1 row failed</h2>");
    expect(text).toContain('row 3 · b</span><span dir="auto">a &lt;mug&gt;</span><span dir="auto">refused');
  });

  test("shows no prices where none are given", () => {
    expect(page({ ...file, credits: null })).not.toContain("credit");
  });

  test("P24: its policy allows its own style and pictures, and no script at all", () => {
    const text = page(file);
    const style = /<style>([\s\S]*)<\/style>/.exec(text)?.[1] ?? "";
    const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(text)?.[1] ?? "";
    const allowed = policy.replaceAll("&#39;", "'");
    expect(allowed).toContain("default-src 'none';");
    expect(allowed).toContain(`style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'`);
    expect(allowed).not.toMatch(/unsafe|script|https?:|\*/);
    expect(text).not.toMatch(/<script|style=|\son\w+=/i);
  });

  test("P24: no text from outside becomes a tag or an attribute", () => {
    const tags = (text: string) =>
      text.match(/<[a-z!/][^>]*>/gi)?.map((tag) => tag.replace(/"[^"]*"/g, '""'));
    const plain = tags(page(file));
    const hostile = fc.string({ unit: fc.constantFrom(..."<>\"'&/=`! \n\u202escriptonerror;:-".split("")) });
    fc.assert(
      fc.property(hostile, hostile, (one, two) => {
        const text = page({
          ...file,
          file: `x/${one}.png`,
          prompt: `${one}${two}`,
          rowId: two,
          model: one,
          params: { [`k${one}`]: two },
        });
        expect(tags(text)).toEqual(plain);
      }),
      { numRuns: 2_000 },
    );
  });
});
