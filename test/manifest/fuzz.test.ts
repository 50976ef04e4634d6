import { expect, test } from "vitest";
import { bytesOf } from "../../src/manifest/formats/bytes.js";
import { sourceOf } from "../../src/manifest/read.js";
import { amount } from "../fuzz/amount.js";
import { wholeSource } from "./read.js";

test("a line of many megabytes is one problem, and so is a quote that swallows a large file", {
  tags: ["fuzz"],
}, async () => {
  for (const text of [
    `id,prompt\na,${"x".repeat(amount(12_000_000, 100_000_000))}\n`,
    `id,prompt\na,"${"x,y\n".repeat(amount(3_000_000, 10_000_000))}`,
  ]) {
    const { source } = await sourceOf("a.csv", bytesOf(Buffer.from(text)), {});
    expect((await wholeSource(source)).problems).toMatchObject([
      { place: { line: 2 }, message: expect.stringContaining("row 2 is longer than any row should be") },
    ]);
  }
});
