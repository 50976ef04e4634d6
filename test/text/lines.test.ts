import fc from "fast-check";
import { expect, test } from "vitest";
import { LineSplitter } from "../../src/text/pieces.js";

test("the lines are those of the whole text, wherever its pieces end", () => {
  const text = fc.array(fc.constantFrom("a", "é", "😀", "\n", "\r\n", " "), { maxLength: 40 });
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 5 }), (parts, size) => {
      const whole = parts.join("");
      const bytes = Buffer.from(whole);
      const splitter = new LineSplitter();
      const lines: string[] = [];
      // One buffer for all pieces, as a file is read.
      const piece = Buffer.alloc(size);
      for (let at = 0; at < bytes.length; at += size) {
        const length = bytes.copy(piece, 0, at, at + size);
        lines.push(...splitter.take(piece.subarray(0, length)));
      }
      expect([...lines, splitter.last()]).toEqual(whole.split("\n"));
    }),
  );
});
