import { expect, test } from "vitest";
import { digestOf } from "../../src/core/problem.js";
import { bytesOf } from "../../src/manifest/formats/bytes.js";
import { manifestOf, sourceOf } from "../../src/manifest/read.js";
import { problemsText } from "../../src/report/problem-text.js";
import { amount } from "../fuzz/amount.js";
import { plan } from "../plan/account.js";
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

test("very many wrong rows are all counted, and the first hundred mistakes are shown", {
  tags: ["fuzz"],
}, async () => {
  const length = amount(3_000, 130_000);
  const rows = Array.from({ length }, (_, n) => `r${n},nobody${n},x`).join("\n");
  const { source } = await sourceOf("a.csv", bytesOf(Buffer.from(`id,model,prompt\n${rows}\n`)), {});
  const { problems } = await plan(manifestOf("a.csv", source, {}));
  expect(problems).toHaveLength(length);
  const lines = problemsText(digestOf(problems), "").split("\n");
  expect(lines).toHaveLength(101);
  expect(lines[100]).toContain(`and ${length - 100} more`);
});
