import fc from "fast-check";
import { expect, test } from "vitest";
import {
  asBalance,
  asCharge,
  asCredits,
  type Credits,
  credits,
  inCredits,
  minus,
  noCredits,
  plus,
  showCredits,
  sumOf,
  times,
  toNumber,
} from "../../src/core/money.js";

test("a sum takes more amounts than a call takes arguments", () => {
  expect(sumOf(Array.from({ length: 300_000 }, () => credits(0.001)))).toBe(credits(300));
  expect(sumOf([])).toBe(noCredits);
});

test("sums of decimal credits are exact", () => {
  expect(toNumber(plus(credits(0.1), credits(0.2)))).toBe(0.3);
  expect(showCredits(plus(credits(0.1), credits(0.2)))).toBe("0.3");
  expect(plus(...Array.from({ length: 1_000 }, () => credits(0.001)))).toBe(credits(1));
});

test("credits are shown without trailing zeros and with their sign", () => {
  expect(showCredits(credits(12))).toBe("12");
  expect(showCredits(credits(12.5))).toBe("12.5");
  expect(showCredits(credits(-0.25))).toBe("-0.25");
  expect(showCredits(noCredits)).toBe("0");
  expect(showCredits(credits(-0))).toBe("0");
});

test("in a sentence one credit is one, and every other amount several", () => {
  const texts = [1, 0, 0.5, 1.5, 2, -1].map((amount) => inCredits(credits(amount)));
  expect(texts).toEqual(["1 credit", "0 credits", "0.5 credits", "1.5 credits", "2 credits", "-1 credits"]);
});

test("what is not an amount is refused", () => {
  expect(() => credits(Number.NaN)).toThrow(RangeError);
  expect(() => credits(Number.POSITIVE_INFINITY)).toThrow("not an amount of credits: Infinity");
  expect(() => credits(1e10)).toThrow("not an amount of credits: 10000000000");
});

test("a service's answer has a valid amount or none", () => {
  expect(asCredits(4.5)).toBe(credits(4.5));
  for (const odd of [1e10, -1e300, Number.NaN, "four", "NaN", "0x4", "", " ", true, [4], null, undefined, {}])
    expect(asCredits(odd)).toBeNull();
});

test("a number that a service sends as text is that number", () => {
  expect(["4.5", " 4.5 ", "-0", "12", "1e3"].map(asCredits)).toEqual([
    credits(4.5),
    credits(4.5),
    noCredits,
    credits(12),
    null,
  ]);
});

test("a negative charge counts as none, and a free one as 0", () => {
  expect([4.5, 0, -1, Number.NaN].map(asCharge)).toEqual([credits(4.5), noCredits, null, null]);
});

test("a balance too large to calculate with counts as the largest, and may be negative", () => {
  const most = credits(9_000_000_000);
  expect([9e9, 9e9 + 1, Number.POSITIVE_INFINITY].map(asBalance)).toEqual([most, most, most]);
  expect([4.5, -1, -1e300, Number.NaN, "1e300"].map(asBalance)).toEqual([
    credits(4.5),
    credits(-1),
    null,
    null,
    null,
  ]);
});

test("taking away what was added, and multiplying, lose nothing", () => {
  const amount = fc.integer({ min: 0, max: 10 ** 12 }).map((value) => value as Credits);
  fc.assert(
    fc.property(amount, amount, fc.integer({ min: 0, max: 50 }), (a, b, n) => {
      expect(minus(plus(a, b), b)).toBe(a);
      expect(times(a, n)).toBe(plus(...Array.from({ length: n }, () => a)));
      expect(credits(Number(showCredits(a)))).toBe(a);
    }),
  );
});
