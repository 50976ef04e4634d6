import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  groupText,
  type Identity,
  itemKey,
  itemKeys,
  keysWith,
  modelOfGroup,
  normalText,
  offeredPrice,
  outputOf,
  priceGroup,
  shortId,
  variantKey,
} from "../../src/core/identity.js";
import { credits } from "../../src/core/money.js";
import { anyCharacter } from "../any-character.js";

const identity: Identity = {
  origin: "https://service.example",
  account: "u-1",
  model: "paint",
  prompt: "a cup",
  params: { aspect_ratio: "1:1", seed: "5" },
  inputs: { image_url: "https://example.com/a.png" },
  occurrence: 1,
  edition: "",
};

const key = (change: Partial<Identity> = {}) => itemKey({ ...identity, ...change });

test("a key of the first rules never changes: it says what was paid already", () => {
  expect(key()).toBe("k1:95d8d34310c2cc05264b50e73749997dfabfc11a4d1d7f3114b8676a7e60451e");
  expect(key({ prompt: null })).toBe("k1:b78282ac8e2d78a0f0b11b9b6cc734f03210b222c49441d301d94761856965ff");
  const unordered = key({ params: { seed: "1", aspect_ratio: "2" } });
  expect(unordered).toBe("k1:f612115e0bd00fe720c2f565d2366b2ffd840a4dc5cfda0463752f3becb81b79");
  expect(variantKey(key(), 2)).toBe("k1:0b930101f19a5be856d0d6fdd949ba575c9b4ea700f1019b43188f4b40671221");
  expect(shortId(key())).toBe("95d8d34310");
});

describe("what people do not see makes no other key", () => {
  test.each<[string, Partial<Identity>, Partial<Identity>]>([
    ["composed and decomposed accents", { prompt: "caf\u00e9" }, { prompt: "cafe\u0301" }],
    ["line ends of Windows", { prompt: "a\r\nb" }, { prompt: "a\nb" }],
    ["spaces at the ends", { prompt: " a cup \n" }, {}],
    ["a number and its text", { params: { seed: 5 } }, { params: { seed: "5" } }],
    ["true and its text", { params: { hd: true } }, { params: { hd: "true" } }],
    ["an empty cell and none", { params: { ...identity.params, style: " " } }, {}],
    [
      "a param without a value and none",
      { params: { ...identity.params, style: null, size: undefined } },
      {},
    ],
    [
      "the order of params whose names only look different",
      { params: { a: "1", "a ": "2" } },
      { params: { "a ": "2", a: "1" } },
    ],
    ["an empty prompt and none", { prompt: "" }, { prompt: null }],
    ["an empty input and none", { inputs: { ...identity.inputs, video_url: "" } }, {}],
    ["the order of params", { params: { seed: "5", aspect_ratio: "1:1" } }, {}],
  ])("%s", (_name, one, other) => {
    expect(key(one)).toBe(key(other));
  });
});

describe("everything else makes another key", () => {
  test.each<[string, Partial<Identity>]>([
    ["origin", { origin: "https://other.example" }],
    ["account", { account: "u-2" }],
    ["model", { model: "paint-2" }],
    ["prompt", { prompt: "A cup" }],
    ["no prompt", { prompt: null }],
    ["a param's value", { params: { ...identity.params, seed: "6" } }],
    ["a param less", { params: { aspect_ratio: "1:1" } }],
    ["the field of an input", { inputs: { video_url: "https://example.com/a.png" } }],
    ["occurrence", { occurrence: 2 }],
    ["edition", { edition: "2026-11-20" }],
  ])("%s", (_name, change) => {
    expect(key(change)).not.toBe(key());
  });
});

test("a text is normalized as Unicode defines it, with and without the lookup", () => {
  const units = fc.oneof(
    fc.string({ unit: anyCharacter, maxLength: 3 }),
    fc.constantFrom("e\u0301", "\u00e9", "\u02ff", "\u0300", "\u212b", "\u1100\u1161", "\r\n", " "),
  );
  fc.assert(
    fc.property(fc.array(units), (pieces) => {
      const text = pieces.join("");
      expect(normalText(text)).toBe(text.replaceAll("\r\n", "\n").normalize("NFC").trim());
    }),
    { numRuns: 500 },
  );
  for (let code = 0; code < 0x300; code++) {
    const character = String.fromCharCode(code);
    expect(normalText(`a${character}b`)).toBe(`a${character}b`.normalize("NFC"));
  }
});

test("params differ whenever their normal texts differ, whatever their names", () => {
  const texts = fc
    .string({ unit: "grapheme", minLength: 1, maxLength: 5 })
    .filter((text) => text.trim() !== "");
  const params = fc.array(
    fc.tuple(fc.oneof(texts, fc.constantFrom("1", "10", "__proto__", "toString")), texts),
    {
      maxLength: 4,
    },
  );
  const normal = (pairs: [string, string][]) =>
    JSON.stringify(
      Object.entries(Object.fromEntries(pairs))
        .map((pair) => pair.map((text) => text.normalize("NFC").trim()))
        .sort(),
    );
  fc.assert(
    fc.property(params, params, (one, other) => {
      const same = key({ params: Object.fromEntries(one) }) === key({ params: Object.fromEntries(other) });
      expect(same).toBe(normal(one) === normal(other));
    }),
    { numRuns: 500 },
  );
});

test("no text of one field can pass for another field's", () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (a, b) => {
      fc.pre(a.trim() !== b.trim());
      expect(key({ model: a, prompt: b })).not.toBe(key({ model: b, prompt: a }));
    }),
  );
});

test("a key's form is k1: and 64 hex digits, whatever goes in", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: anyCharacter }),
      fc.dictionary(fc.string(), fc.string()),
      (prompt, params) => {
        expect(key({ prompt, params })).toMatch(/^k1:[0-9a-f]{64}$/);
      },
    ),
  );
});

test("the keys of a job's items are those that each of them has alone", () => {
  const keyOf = itemKeys(identity);
  const items = ["paint", "animate", "paint", ""].map((model) => ({ ...identity, model }));
  expect(items.map(keyOf)).toEqual(items.map(itemKey));
  const many = Array.from({ length: 1_200 }, (_, seed) => ({ ...identity, params: { seed } }));
  expect([...many, ...many].map(keyOf)).toEqual([...many, ...many].map(itemKey));
});

test("each variant of an item has a key of its own, as has each output as an input", () => {
  const keys = [key(), variantKey(key(), 2), variantKey(key(), 3), variantKey(key({ occurrence: 2 }), 2)];
  expect(new Set(keys).size).toBe(4);
  expect(outputOf({ key: "k1:ab", output: 2 })).toBe("output 2 of k1:ab");
});

test("a short id stands for the keys that begin with it, and any other text for none", () => {
  const { prefix, end } = keysWith(shortId(key()));
  expect(prefix).toBe("k1:95d8d34310");
  for (const digits of ["0", "f".repeat(54)]) {
    expect(prefix <= `${prefix}${digits}` && `${prefix}${digits}` < end).toBe(true);
  }
  expect(end <= "k1:95d8d34311").toBe(true);
  for (const other of ["", "95d8d3431", "95d8d343100", "95D8D34310", "cup", "x95d8d34310"])
    expect(keysWith(other)).toEqual({ prefix: "", end: "" });
});

describe("a price group", () => {
  const item = { model: "paint", params: { size: "2k", hd: "" } };

  test("is a model with its params, whatever is not seen of them", () => {
    const group = priceGroup(item);
    expect(group).toBe(priceGroup({ model: "paint", params: { size: " 2k " } }));
    expect(group).not.toBe(priceGroup({ model: "paint", params: { size: "4k" } }));
    expect(modelOfGroup(group)).toBe("paint");
    expect(groupText(group)).toBe("paint size=2k");
  });

  test("is offered again at the service's price, or at what was charged for it if that is more", () => {
    const charged = (amount: number) => new Map([[priceGroup(item), credits(amount)]]);
    expect(offeredPrice(item, credits(4), charged(5))).toBe(credits(5));
    expect(offeredPrice(item, credits(4), charged(3))).toBe(credits(4));
    expect(offeredPrice(item, credits(4), new Map())).toBe(credits(4));
    expect(offeredPrice({ model: "film", params: {} }, credits(4), charged(5))).toBe(credits(4));
  });
});
