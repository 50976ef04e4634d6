import fc from "fast-check";
import { expect, test } from "vitest";
import { optionBefore, wholeNumberBefore } from "../../../src/manifest/shape/repairs.js";

const ratios = ["1:1", "16:9", "9:16", "4:3", "4:5", "21:9", "32:9"];

test.each<[string, string, string[]]>([
  ["16:09", "16:9", ratios],
  ["04:05", "4:5", ratios],
  ["4:05 AM", "4:5", ratios],
  ["4:09:00 PM", "16:9", ratios],
  ["16:09:00", "16:9", ratios],
  ["00:16:09", "16:9", ratios],
  ["0.672916666666667", "16:9", ratios],
  ["0,170138888888889", "4:5", ratios],
  ["1899-12-31 08:09", "32:9", ratios],
  ["1899-12-30T16:09:00.000Z", "16:9", ratios],
  ["32:09:00", "32:9", ratios],
  ["TRUE", "true", ["true", "false"]],
  ["WAHR", "true", ["true", "false"]],
  ["FALSCH", "false", ["true", "false"]],
  ["1.0", "1", ["1", "2"]],
  ["1", "1.0", ["1.0", "2.0"]],
  ["0,5", "0.5", ["0.5", "1"]],
  ["50%", "0.5", ["0.5", "1"]],
  ["1,080", "1080", ["720", "1080"]],
  ["1.080", "1080", ["720", "1080"]],
  ["7", "007", ["007", "008"]],
  ["04. Mrz", "3-4", ["3-4", "5-6"]],
  ["4-Mar", "3-4", ["3-4", "5-6"]],
  ["2026-03-04", "3/4", ["3/4", "1/2"]],
  ["01.05.2026", "1.5", ["1.5", "2.5"]],
  ["Poster", "poster", ["poster", "paper"]],
  ["low–poly", "low-poly", ["low-poly", "real"]],
])("%s is what a spreadsheet makes of %s", (value, option, options) => {
  expect(optionBefore(value, options)).toBe(option);
});

test.each<[string, string[]]>([
  ["16:10", ratios],
  ["noon", ratios],
  ["", ratios],
  // Both became the 3rd of April or the 4th of March, and nobody can tell which.
  ["2026-03-04", ["3-4", "4-3"]],
  ["1:30", ["0.0625", "x"]],
  ["1e400", ["1", "2"]],
  ["x16:09", ratios],
])("of %s nothing is made up", (value, options) => {
  expect(optionBefore(value, options)).toBeNull();
});

test("whatever time a spreadsheet shows for a ratio leads back to it, or to nothing", () => {
  const part = fc.integer({ min: 1, max: 23 });
  const two = (n: number) => String(n).padStart(2, "0");
  fc.assert(
    fc.property(part, part, (a, b) => {
      const shown = [`${two(a)}:${two(b)}`, `${a}:${two(b)}:00`, String((a * 60 + b) / 1_440)];
      for (const value of shown) expect(optionBefore(value, ["x", `${a}:${b}`])).toBe(`${a}:${b}`);
    }),
  );
});

test("a whole number with decimals of nothing is that number; a thousand is not told from one", () => {
  expect(["2.0", "3,00", " 4.0 ", "-1.0"].map(wholeNumberBefore)).toEqual(["2", "3", "4", "-1"]);
  expect(["1,000", "1.5", "two", ""].map(wholeNumberBefore)).toEqual([null, null, null, null]);
});
