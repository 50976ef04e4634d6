import { describe, expect, test } from "vitest";
import { Lifetimes, statedEnd } from "../../../src/core/pace/lifetimes.js";

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
    expect(new Lifetimes().fetchBy([address, `${address}&again`], now - 1)).toBe(end);
  });

  test.each([
    url,
    "no address",
    "https://a.example/?expires=soon",
    "https://a.example/?X-Amz-Expires=900",
    "https://a.example/?X-Amz-Date=yesterday&X-Amz-Expires=900",
    "https://a.example/?se=2026",
  ])("%s does not say", (address) => {
    expect(statedEnd(address)).toBeNull();
  });
});

describe("addresses of a host that say nothing", () => {
  test("P15: are taken for short-lived until one was seen", () => {
    expect(new Lifetimes().fetchBy([url], now)).toBe(now + 15 * minute);
  });

  test("P15: are to be fetched within the least age at which one had expired", () => {
    const lifetimes = new Lifetimes();
    expect(lifetimes.saw(url, 90 * minute, "expired")).toEqual({
      host: "files.example",
      workedMs: 0,
      endedMs: 90 * minute,
    });
    expect(lifetimes.saw(url, 120 * minute, "expired")).toBeNull();
    lifetimes.saw(url, 70 * minute, "expired");
    expect(lifetimes.fetchBy([url], now)).toBe(now + 70 * minute);
    expect(lifetimes.fetchBy(["https://other.example/a"], now)).toBe(now + 15 * minute);
  });

  test("P15: are given as long as one was seen to work, and no write is spent on hardly more", () => {
    const lifetimes = new Lifetimes();
    expect(lifetimes.saw(url, 100 * minute, "worked")).toMatchObject({ workedMs: 100 * minute });
    expect(lifetimes.saw(url, 110 * minute, "worked")).toBeNull();
    expect(lifetimes.saw(url, 500, "worked")).toBeNull();
    expect(lifetimes.fetchBy([url], now)).toBe(now + 100 * minute);
  });

  test("what was seen last holds: a host may be set to another lifetime", () => {
    const lifetimes = new Lifetimes();
    lifetimes.learn([{ host: "files.example", workedMs: 0, endedMs: 10 * minute }]);
    expect(lifetimes.saw(url, 30 * minute, "worked")).toMatchObject({ workedMs: 30 * minute, endedMs: null });
    expect(lifetimes.saw(url, 20 * minute, "expired")).toMatchObject({
      workedMs: 20 * minute,
      endedMs: 20 * minute,
    });
    expect(lifetimes.saw(url, -1, "expired")).toBeNull();
  });
});
