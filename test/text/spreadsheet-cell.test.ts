import fc from "fast-check";
import { expect, test } from "vitest";
import { fromSpreadsheetText, spreadsheetText } from "../../src/text/spreadsheet-cell.js";

const text = fc.string({
  unit: fc.constantFrom("=", "+", "-", "@", "\t", "\r", "'", "a", "1", "＝", " "),
});

test("P24: no text begins like a formula, and each comes back as it was", () => {
  fc.assert(
    fc.property(text, (written) => {
      const safe = spreadsheetText(written);
      expect(fromSpreadsheetText(safe)).toBe(written);
      if (!/^[+-]?\d+$/.test(safe)) expect(safe).not.toMatch(/^[=+\-@\t\r＝]/);
    }),
  );
});

test("numbers stay numbers, and what is harmless stays as it is", () => {
  for (const harmless of ["-5", "+1.5", "-0,25", "a cup", "'quoted'", "", "3-4"]) {
    expect(spreadsheetText(harmless)).toBe(harmless);
    expect(fromSpreadsheetText(harmless)).toBe(harmless);
  }
  expect(spreadsheetText("=SUM(A1)")).toBe("'=SUM(A1)");
  expect(spreadsheetText("-5+cmd|' /C calc'!A0")).toBe("'-5+cmd|' /C calc'!A0");
});
