import { describe, expect, test } from "vitest";
import { fetchBy, statedEnd } from "../../src/core/pace/poll.js";

const now = Date.UTC(2026, 10, 21, 12);
const minute = 60_000;
const url = "https://files.example/a.png?signature=1";

describe("an address that says until when it is good", () => {
  test.each([
    ["S3", "https://b.s3.amazonaws.com/a?X-Amz-Date=20261121T120000Z&X-Amz-Expires=900", now + 900_000],
    [
      "Google",
      "https://storage.googleapis.com/b/a?x-goog-date=20261121T120000Z&X-Goog-Expires=60",
      now + minute,
    ],
    ["CloudFront", `https://d1.cloudfront.net/a?Expires=${now / 1000 + 60}&Signature=x`, now + minute],
    ["Azure", "https://b.blob.core.windows.net/a?se=2026-11-21T13%3A00%3A00Z&sig=x", now + 60 * minute],
    ["the sandbox", `http://127.0.0.1:4010/files/t/1.png?expires=${now + 5}&signature=x`, now + 5],
  ])("P15: as %s does is taken at its word", (_, address, end) => {
    expect(statedEnd(address)).toBe(end);
    expect(fetchBy([address, `${address}&again`], now - 1)).toBe(end);
  });

  test.each([
    url,
    "no address",
    "https://a.example/?expires=soon",
    "https://a.example/?X-Amz-Expires=900",
    "https://a.example/?X-Amz-Date=yesterday&X-Amz-Expires=900",
    "https://a.example/?se=2026",
    "https://a.example/?X-Amz-Date=120261121T120000Z&X-Amz-Expires=900",
    "https://a.example/?X-Amz-Date=20261121T120000Z1&X-Amz-Expires=900",
    "https://a.example/?X-Amz-Date=20261121T120000Z&X-Amz-Expires=900s",
    "https://a.example/?X-Amz-Date=20261121T120000Z&X-Amz-Expires=-900",
    "https://a.example/?X-Amz-Date=20261121T120000Z",
    "https://a.example/?expires=17637264000001",
    "https://a.example/?expires=v1763726400000",
    "https://a.example/?expires=1763726400s",
  ])("%s does not say", (address) => {
    expect(statedEnd(address)).toBeNull();
  });
});

test("P15: addresses that do not say come after those that do, in the order in which they came", () => {
  const stated = `${url}&expires=${now + 90 * 24 * 60 * minute}`;
  const [early, late] = [fetchBy([url], now), fetchBy([url], now + minute)];
  expect(fetchBy([url, stated], now)).toBe(now + 90 * 24 * 60 * minute);
  expect(fetchBy([stated], now)).toBeLessThan(early);
  expect(fetchBy([stated, `${url}&expires=${now + minute}`], now)).toBe(now + minute);
  expect(early).toBeLessThan(late);
});
