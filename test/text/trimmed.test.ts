import { expect, test } from "vitest";
import { trimmedText } from "../../src/text/trimmed.js";

test("spaces and invisible characters around a text go, in any order; those inside stay", () => {
  expect(trimmedText(" \u200b model\u2060 \u200b\ufeff")).toBe("model");
  expect(trimmedText("\u00a0a\u200bb ")).toBe("a\u200bb");
  expect(trimmedText("\u200b \u200b")).toBe("");
  expect(trimmedText("plain")).toBe("plain");
});

test("a long run of spaces inside is passed once", () => {
  const inside = `a${" ".repeat(1_000_000)}b`;
  expect(trimmedText(`\u200b${inside}\u200b`)).toBe(inside);
});
