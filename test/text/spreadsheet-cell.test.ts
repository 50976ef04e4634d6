import { stringify } from "csv-stringify/sync";
import fc from "fast-check";
import { expect, test } from "vitest";
import { fromSpreadsheetText, quotedCells, spreadsheetText } from "../../src/text/spreadsheet-cell.js";

const text = fc.string({
  unit: fc.constantFrom(
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "'",
    "a",
    "1",
    "＝",
    " ",
    ",",
    ";",
    '"',
    "\n",
    "\u2060",
  ),
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

test("P24: wherever a spreadsheet splits the lines, none of its cells begins like a formula", () => {
  // Three quotes begin a cell with a quote in it.
  const formula = /^"{0,2}[=+\-@＝]/;
  const signed = /^"*[+-]\d+(?:[.,]\d+)?"*$/;
  fc.assert(
    fc.property(
      fc.array(text, { minLength: 1, maxLength: 4 }),
      fc.constantFrom(",", ";", "\t"),
      (cells, delimiter) => {
        const line = stringify([cells.map(spreadsheetText)], { delimiter, quoted_match: quotedCells });
        for (const other of [",", ";", "\t"].filter((each) => each !== delimiter))
          for (const cell of line.split(/[\r\n]+/).flatMap((part) => part.split(other)))
            if (!signed.test(cell)) expect(cell).not.toMatch(formula);
      },
    ),
  );
  expect(spreadsheetText("x;=cmd|'/C calc'!A0;y")).toBe("x;\u2060=cmd|'/C calc'!A0;y");
  expect(spreadsheetText("x;-5;y")).toBe("x;-5;y");
});
