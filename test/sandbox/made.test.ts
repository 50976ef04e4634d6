import { expect, test } from "vitest";
import { MadeMedia } from "../../src/sandbox/studio/studio.js";

test("media are kept up to a number of bytes, and what was wanted last is forgotten last", () => {
  const made = new MadeMedia(10);
  const [first, second, third] = [new Uint8Array(4), new Uint8Array(5), new Uint8Array(6)];
  made.keep("first", first);
  made.keep("second", second);
  expect(made.get("first")).toBe(first);
  made.keep("third", third);
  expect([made.get("first"), made.get("second"), made.get("third")]).toEqual([first, undefined, third]);
  made.keep("first", first);
  expect(made.get("third")).toBe(third);
  made.keep("too large", new Uint8Array(11));
  expect(made.get("too large")).toBeUndefined();
});
