import fc from "fast-check";
import { expect, test } from "vitest";
import { CompactTextMap } from "../../src/text/compact-text-map.js";

test("a text gets the number that came with it first, among a hundred thousand others", () => {
  const seen = new CompactTextMap();
  const name = (index: number) => `item-${index % 7}-${index}`;
  // A hundred thousand expectations would take much longer than what they look at.
  const numbers = Array.from({ length: 100_000 }, (_, index) => index);
  expect(numbers.filter((index) => seen.put(name(index), index) !== null)).toEqual([]);
  expect(numbers.filter((index) => index % 97 === 0 && seen.put(name(index), 5) !== index)).toEqual([]);
});

test("any texts are distinguished as a map would", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ maxLength: 3 }), { maxLength: 200 }), (texts) => {
      const seen = new CompactTextMap();
      const known = new Map<string, number>();
      for (const [index, text] of texts.entries()) {
        expect(seen.put(text, index)).toBe(known.get(text) ?? null);
        if (!known.has(text)) known.set(text, index);
      }
    }),
  );
});

test("the comparison is asked whether a text is the same; a different text gets its own entry", () => {
  const seen = new CompactTextMap();
  expect(seen.put("a", 1)).toBeNull();
  expect(seen.put("a", 2, () => false)).toBeNull();
  expect(seen.put("a", 3, (number) => number === 2)).toBe(2);
});
