import { describe, expect, test } from "vitest";
import { isFresh } from "../../src/core/pace/poll.js";
import { hasReference, isReference, referenceIn } from "../../src/core/reference.js";

test.each([
  ["@cup", { name: "cup", output: 1 }],
  ["@cup[2]", { name: "cup", output: 2 }],
  ["@ cup one.picture [12] ", { name: "cup one.picture", output: 12 }],
  ["@", null],
  ["@cup[0]", null],
  ["@cup[]", null],
  ["@cup[two]", null],
  ["@@cup", null],
  ["@ @cup", null],
  ["@[1]", null],
])("a reference is a name with the number of an output: %s", (written, expected) => {
  expect(referenceIn(written)).toEqual(expected);
});

test("an input is a reference if it begins with @, and an address or a path else", () => {
  expect(["@cup", "@", "cup@", "https://a.example/@cup", "pictures/@cup.png", ""].map(isReference)).toEqual([
    true,
    true,
    false,
    false,
    false,
    false,
  ]);
  expect(hasReference({ image_url: "https://a.example/a.png", video_url: "@clip" })).toBe(true);
  expect(hasReference({ image_url: "https://a.example/a.png", video_url: undefined })).toBe(false);
  expect(hasReference({})).toBe(false);
});

test("a text that is no reference names nothing", () => {
  expect(["cup", "cup@", ""].map(referenceIn)).toEqual([null, null, null]);
});

describe("an address may be sent as an input", () => {
  const now = Date.UTC(2026, 0, 1);
  const ending = (ms: number) => `https://files.example/a.png?expires=${now + ms}`;

  test("for five minutes after it arrived, if it does not state its end", () => {
    expect(isFresh("https://files.example/a.png", 299_000, now)).toBe(true);
    expect(isFresh("https://files.example/a.png", 300_000, now)).toBe(false);
    expect(isFresh("https://files.example/a.png", 0, now)).toBe(true);
  });

  test("until a minute before the end that it states, however old it is", () => {
    expect(isFresh(ending(61_000), 3_600_000, now)).toBe(true);
    expect(isFresh(ending(60_000), 3_600_000, now)).toBe(false);
  });

  test("when it has just arrived, if it has any time left at all", () => {
    expect(isFresh(ending(5_000), 1_000, now)).toBe(true);
    expect(isFresh(ending(5_000), 10_000, now)).toBe(false);
    expect([isFresh(ending(-1), 0, now), isFresh(ending(0), 0, now)]).toEqual([false, false]);
  });

  test("not after the clock was set back, because its age is unknown then", () => {
    expect(isFresh("https://files.example/a.png", -1, now)).toBe(false);
  });
});
