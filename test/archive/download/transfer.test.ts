import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { nodeDisk } from "../../../src/archive/disk/node-disk.js";
import { AddressRefused } from "../../../src/archive/download/address.js";
import { type Partial, Partials, strongTag } from "../../../src/archive/download/partial.js";
import { limitsFor, type TransferPorts, transfer, Watch } from "../../../src/archive/download/transfer.js";
import type { DownloadReply } from "../../../src/core/ports/send.js";
import { ManualClock } from "../../manual-clock.js";
import { systemError, watchedDisk } from "../watched-disk.js";

let folder: string;
let partials: Partials;
let partial: Partial;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "bulkgen-transfer-"));
  partials = new Partials();
  partial = await partials.open(nodeDisk, folder, "k1:a");
  limits = small;
});
afterEach(async () => {
  await partial.temporary.discard();
  rmSync(folder, { recursive: true, force: true });
});

const url = "https://files.example/a.png?signature=1";
const small = { bytesMax: 10, msMax: 90_000, stallMsMax: 60_000, bytesPerSecondMin: 1 };
let limits = small;
const content = () => readFileSync(partial.temporary.path, "utf8");

async function* body(...pieces: (string | Buffer | Error)[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) {
    if (piece instanceof Error) throw piece;
    yield Buffer.from(piece);
  }
}
const reply = (
  status: number,
  headers: Record<string, string>,
  ...pieces: (string | Buffer | Error)[]
): DownloadReply => ({
  status,
  headers,
  body: body(...pieces),
});

/** Transfers from a server that answers so, one answer for each request; returns what it was asked as well. */
async function fetched(...answers: (DownloadReply | Error)[]) {
  const asked: Record<string, string>[] = [];
  const ports: TransferPorts = {
    clock: new ManualClock(),
    freeBytes: async () => 2 ** 40,
    async download(_, { headers = {} }) {
      asked.push({ ...headers });
      const answer = answers[asked.length - 1] as DownloadReply | Error;
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  const result = await transfer(url, partial, limits, ports);
  return { result, asked };
}
const resultOf = async (...answers: (DownloadReply | Error)[]) => (await fetched(...answers)).result;

test("P22: each category has its limits, and one that nobody knows has those of video", () => {
  const [mebibyte, minute] = [2 ** 20, 60_000];
  expect(limitsFor("image")).toEqual({
    bytesMax: 256 * mebibyte,
    msMax: 10 * minute,
    stallMsMax: minute,
    bytesPerSecondMin: 1_024,
  });
  expect(limitsFor("audio")).toMatchObject({ bytesMax: 1_024 * mebibyte, msMax: 30 * minute });
  expect(limitsFor("video")).toMatchObject({ bytesMax: 8_192 * mebibyte, msMax: 120 * minute });
  expect([limitsFor("hologram"), limitsFor("toString")]).toEqual([limitsFor("video"), limitsFor("video")]);
});

describe("a transfer", () => {
  test("P13: is complete with the stated length, and says whether one was stated", async () => {
    const sha256 = createHash("sha256").update("abcdef").digest("hex");
    const received = { kind: "received", bytes: 6, sha256 };
    expect(await resultOf(reply(200, { "content-length": "6" }, "abc", "def"))).toEqual({
      ...received,
      lengthStated: true,
    });
    expect(content()).toBe("abcdef");
    // Complete is complete: nothing of it is continued.
    expect(partial.isWorthKeeping).toBe(false);
  });

  test.each(["", "six", "6.5", "-6"])("P13: takes a length of %j for none", async (length) => {
    expect(await resultOf(reply(200, { "content-length": length }, "abcdef"))).toMatchObject({
      kind: "received",
      lengthStated: false,
    });
  });

  test("P13: that ends early or late is none", async () => {
    expect(await resultOf(reply(200, { "content-length": "7" }, "abcdef"))).toEqual({
      kind: "try_again",
      reason: "the transfer ended after 6 of 7 bytes",
    });
    expect(await resultOf(reply(200, { "content-length": "5" }, "abcdef"))).toEqual({
      kind: "try_again",
      reason: "the transfer ended after 6 of 5 bytes",
    });
  });

  test("P22: may have as many bytes as allowed, and not one more, stated or not", async () => {
    expect(await resultOf(reply(200, { "content-length": "10" }, "0123456789"))).toMatchObject({ bytes: 10 });
    expect(await resultOf(reply(200, { "content-length": "11" }))).toEqual({
      kind: "refused",
      reason: "the output has 11 bytes; expected at most 10",
    });
    expect(await resultOf(reply(200, {}, "0123456789"))).toMatchObject({ bytes: 10 });
    expect(await resultOf(reply(200, {}, "0123456789", "a"))).toEqual({
      kind: "refused",
      reason: "the output has more bytes; expected at most 10",
    });
  });

  test("tells why it broke off in one short line", async () => {
    const broke = (error: Error) => resultOf(reply(200, {}, "abc", error));
    const reason = (text: string) => ({ kind: "try_again", reason: `the transfer broke off (${text})` });
    expect(await broke(systemError("ECONNRESET"))).toEqual(
      reason("ECONNRESET: ECONNRESET: as the test wants it"),
    );
    expect(await broke(new Error("two\n  lines"))).toEqual(reason("two lines"));
    expect(await broke(new Error("x".repeat(300)))).toEqual(reason("x".repeat(200)));
    expect(await resultOf(systemError("ETIMEDOUT"))).toEqual(
      reason("ETIMEDOUT: ETIMEDOUT: as the test wants it"),
    );
  });

  test("P22: from an address that is refused is refused", async () => {
    expect(await resultOf(new AddressRefused("it leads inwards"))).toEqual({
      kind: "refused",
      reason: "it leads inwards",
    });
  });

  test("P13: is none with a part that was not asked for", async () => {
    const headers = { "content-range": "bytes 0-2/6", etag: '"a"' };
    expect(await resultOf(reply(206, headers, "abc"))).toEqual({
      kind: "try_again",
      reason: "the server answered 206",
    });
  });

  test("P17: checks the room on the disk before it begins and on its way, and rejects where there is none", async () => {
    const free: number[] = [];
    const large = { ...limits, bytesMax: 2 ** 30 };
    const piece = Buffer.alloc(9 * 2 ** 20);
    const ports = (bytes: (call: number) => number, headers: Record<string, string>): TransferPorts => ({
      clock: new ManualClock(),
      freeBytes: async () => bytes(free.push(1)),
      download: async () => ({
        status: 200,
        headers,
        body: (async function* () {
          for (let count = 0; count < 4; count++) yield piece;
        })(),
      }),
    });
    expect(
      await transfer(
        url,
        partial,
        large,
        ports(() => 2 ** 40, {}),
      ),
    ).toMatchObject({ kind: "received" });
    expect(free).toHaveLength(2);
    const reserve = 64 * 2 ** 20;
    const stated = { "content-length": `${4 * piece.length}` };
    // After two pieces there must be room for the other two.
    const shrinking = (call: number) => (call === 4 ? reserve + 2 * piece.length - 1 : 2 ** 40);
    await expect(transfer(url, partial, large, ports(shrinking, stated))).rejects.toMatchObject({
      code: "ENOSPC",
    });
    const enough = (call: number) => (call === 6 ? reserve + 2 * piece.length : 2 ** 40);
    expect(await transfer(url, partial, large, ports(enough, stated))).toMatchObject({ kind: "received" });
  });
});

describe("P14: the rest of a broken transfer", () => {
  const rest = { etag: '"a"', "content-range": "bytes 3-5/6" };
  const broken = () => fetched(reply(200, { etag: '"a"', "content-length": "6" }, "abc", new Error("broke")));
  const range = { range: "bytes=3-", "if-range": '"a"' };

  test("is asked for, and taken when it is that of the same version", async () => {
    await broken();
    expect(partial.isWorthKeeping).toBe(true);
    const { result, asked } = await fetched(reply(206, rest, "def"));
    expect(asked).toEqual([range]);
    expect(result).toMatchObject({ kind: "received", bytes: 6, lengthStated: true });
    expect(content()).toBe("abcdef");
  });

  test.each<[string, Record<string, string>]>([
    ["has another ETag", { ...rest, etag: '"b"' }],
    ["has no ETag", { "content-range": "bytes 3-5/6" }],
    ["has a weak ETag", { ...rest, etag: 'W/"a"' }],
    ["begins elsewhere", { ...rest, "content-range": "bytes 2-5/6" }],
    ["does not go to the end", { ...rest, "content-range": "bytes 3-4/6" }],
    ["does not say where the end is", { ...rest, "content-range": "bytes 3-5/*" }],
    ["does not say what it is", { etag: '"a"' }],
    ["is packed", { ...rest, "content-encoding": "gzip" }],
  ])("is not taken when it %s: all is asked for again", async (_, headers) => {
    await broken();
    const { result, asked } = await fetched(reply(206, headers, "def"), reply(200, {}, "uvwxyz"));
    expect(asked).toEqual([range, {}]);
    expect(result).toMatchObject({ kind: "received", bytes: 6 });
    expect(content()).toBe("uvwxyz");
  });

  test("is not there when the server says so: all is asked for again", async () => {
    await broken();
    expect((await fetched(reply(416, {}), reply(200, {}, "uvwxyz"))).asked).toEqual([range, {}]);
    expect(content()).toBe("uvwxyz");
  });

  test("may come as the whole of another version, which counts from its first byte", async () => {
    await broken();
    const { result, asked } = await fetched(reply(200, { "content-length": "4" }, "wxyz"));
    expect(asked).toHaveLength(1);
    expect(result).toMatchObject({ kind: "received", bytes: 4 });
    expect(content()).toBe("wxyz");
  });

  test("is refused when both parts are too large together", async () => {
    await broken();
    const large = { etag: '"a"', "content-range": "bytes 3-10/11" };
    expect(await resultOf(reply(206, large, "defghijk"))).toEqual({
      kind: "refused",
      reason: "the output has 11 bytes; expected at most 10",
    });
  });

  test("is not asked for at another place, nor without a strong ETag; a new signature is the same place", async () => {
    await broken();
    expect(partial.continues(url.replace("signature=1", "signature=2"))).toBe(true);
    expect(partial.continues("https://files.example/b.png")).toBe(false);
    expect(partial.continues("https://other.example/a.png")).toBe(false);
    expect(partial.continues("no address")).toBe(false);
    await fetched(reply(200, {}, "abc", new Error("broke")));
    expect([partial.continues(url), partial.isWorthKeeping]).toEqual([false, false]);
  });
});

test("only a strong and well-formed ETag names a version", () => {
  expect(['"a"', '""', 'W/"a"', "a", '"a', 'a"', '"a"b"', 'x"a"', undefined].map(strongTag)).toEqual([
    '"a"',
    '""',
    ...Array(7).fill(null),
  ]);
});

describe("broken transfers of a process", () => {
  const open = (identity: string, of = partials, where = folder) => of.open(nodeDisk, where, identity);
  const names = async () => (await nodeDisk.list(folder)).length;

  test("are continued once, in their own folder", async () => {
    await partials.keep("k1:a", partial);
    expect(await open("k1:a")).toBe(partial);
    const other = await open("k1:a");
    expect(other).not.toBe(partial);
    await partials.keep("k1:a", other);
    const elsewhere = join(folder, "sub");
    await nodeDisk.makeFolder(elsewhere);
    const moved = await open("k1:a", partials, elsewhere);
    expect(moved.folder).toBe(elsewhere);
    // The first one, and the folder.
    expect(await names()).toBe(2);
    await moved.temporary.discard();
  });

  test("are kept for the last few outputs, and none after the end", async () => {
    const few = new Partials(2);
    const kept: Partial[] = [];
    for (const identity of ["k1:b", "k1:c", "k1:d"]) {
      kept.push(await open(identity, few));
      await few.keep(identity, kept.at(-1) as Partial);
    }
    expect(await names()).toBe(3);
    expect(await open("k1:c", few)).toBe(kept[1]);
    await few.keep("k1:c", kept[1] as Partial);
    await few.close();
    expect(await names()).toBe(1);
  });
});

test("P13: a write that failed is told by the next one or at the end, and so is a flush", async () => {
  const failing = (what: "write" | "sync") =>
    watchedDisk(nodeDisk, (step) => {
      if (step === what) throw systemError("EIO");
    });
  const mebibyte = Buffer.alloc(2 ** 20);
  const broken = await new Partials().open(failing("write"), folder, "k1:w");
  await broken.take(mebibyte);
  await expect(broken.complete()).rejects.toThrow("EIO");
  const unflushed = await new Partials().open(failing("sync"), folder, "k1:f");
  for (let count = 0; count < 15; count++) await unflushed.take(mebibyte);
  await unflushed.complete();
  await unflushed.take(mebibyte);
  await expect(unflushed.complete()).rejects.toThrow("EIO");
  await expect(unflushed.complete()).rejects.toThrow("EIO");
  for (const each of [broken, unflushed]) await each.temporary.discard();
});

describe("an answer", () => {
  test.each([400, 401, 403, 404, 410])("of %i says that the address has expired", async (status) => {
    expect(await resultOf(reply(status, {}, "no"))).toEqual({ kind: "expired", status });
  });

  test.each([204, 206, 302, 429, 500])("of %i is tried again", async (status) => {
    expect(await resultOf(reply(status, {}, "no"))).toEqual({
      kind: "try_again",
      reason: `the server answered ${status}`,
    });
  });

  const text = Buffer.from("a picture, ".repeat(10_000));
  test.each([
    ["gzip", gzipSync(text)],
    ["x-gzip", gzipSync(text)],
    ["GZIP", gzipSync(text)],
    ["deflate", deflateSync(text)],
    ["deflate", deflateRawSync(text)],
    ["br", brotliCompressSync(text)],
    ["gzip, br", brotliCompressSync(gzipSync(text))],
    ["identity, gzip", gzipSync(text)],
    ["identity", text],
    ["", text],
    // What has no such coding, or an unknown one, is taken as it is: the check of the file decides.
    ["gzip", text],
    ["aws-chunked", text],
    ["utf-8", text],
  ])("that is sent with the coding %j is decoded", async (coding, bytes) => {
    limits = { ...small, bytesMax: 2 ** 20 };
    const headers = { "content-encoding": coding, "content-length": String(bytes.length), etag: '"a"' };
    expect(await resultOf(reply(200, headers, bytes))).toEqual({
      kind: "received",
      bytes: text.length,
      sha256: createHash("sha256").update(text).digest("hex"),
      lengthStated: true,
    });
    expect(content()).toBe(text.toString());
  });

  test("that was cut short within its coding is tried again from the beginning, and so is a damaged one", async () => {
    limits = { ...small, bytesMax: 2 ** 20 };
    const coded = gzipSync(text);
    const headers = { "content-encoding": "gzip", etag: '"a"' };
    const short = reply(200, headers, coded.subarray(0, coded.length - 20));
    const { result, asked } = await fetched(short);
    expect(result).toMatchObject({ kind: "try_again" });
    const damaged = Buffer.from(coded);
    damaged.fill(0xff, 20, 60);
    const next = await fetched(reply(200, headers, damaged));
    expect(next.result).toMatchObject({ kind: "try_again" });
    expect([...asked, ...next.asked]).toEqual([{}, {}]);
  });

  test("P22: that becomes too large when it is decoded is refused before it is whole", async () => {
    limits = { ...small, bytesMax: 2 ** 20 };
    for (const [coding, pack] of [
      ["gzip", gzipSync],
      ["br", brotliCompressSync],
      ["deflate", deflateSync],
    ] as const) {
      const bomb = pack(Buffer.alloc(50 * 2 ** 20));
      const result = await resultOf(reply(200, { "content-encoding": coding }, bomb));
      expect(result).toMatchObject({ kind: "refused", reason: expect.stringContaining("expected at most") });
      expect(content().length).toBeLessThanOrEqual(2 ** 20);
    }
  });

  test("P11: that asks for a pause says for how long, at most a day", async () => {
    const pause = async (seconds: string) => resultOf(reply(503, { "retry-after": seconds }, "no"));
    expect(await pause("7")).toMatchObject({ kind: "try_again", pauseMs: 7_000 });
    expect(await pause("99999999")).toMatchObject({ kind: "try_again", pauseMs: 86_400_000 });
    expect(await pause("soon")).not.toHaveProperty("pauseMs");
  });

  test("P13: whose checksum is of other content is tried again from its beginning", async () => {
    const md5 = createHash("md5").update("abd").digest("base64");
    const headers = { "content-md5": md5, etag: '"a"', "content-length": "3" };
    expect(await resultOf(reply(200, headers, "abc"))).toEqual({
      kind: "try_again",
      reason: "the md5 checksum of the content is not the one that the server stated",
    });
    expect(partial.isWorthKeeping).toBe(false);
    expect(await resultOf(reply(200, headers, "abd"))).toMatchObject({ kind: "received", bytes: 3 });
  });

  test("of a part that only looks right is not taken for the rest", async () => {
    await fetched(reply(200, { etag: '"a"' }, "abc", new Error("broke")));
    const odd = { etag: '"a"', "content-range": "x bytes 3-5/6" };
    expect((await fetched(reply(206, odd, "def"), reply(200, {}, "uvwxyz"))).asked).toHaveLength(2);
    await fetched(reply(200, { etag: '"a"' }, "abc", new Error("broke")));
    const longer = { etag: '"a"', "content-range": "bytes 3-5/6 or so" };
    expect((await fetched(reply(206, longer, "def"), reply(200, {}, "uvwxyz"))).asked).toHaveLength(2);
  });
});

describe("P22: a watch over a transfer", () => {
  const pace = { msMax: 300_000, stallMsMax: 60_000, bytesPerSecondMin: 10 };
  const turn = () => new Promise((resolve) => setImmediate(resolve));

  /** What becomes of a transfer for which bytes come at these times (ms), by the end of the last. */
  async function watched(arrivals: readonly [ms: number, bytes: number][], wanted?: AbortSignal) {
    const clock = new ManualClock();
    const watch = new Watch(clock, pace, wanted);
    let now = 0;
    for (const [ms, bytes] of arrivals) {
      clock.advance(ms - now);
      now = ms;
      await turn();
      if (watch.signal.aborted) break;
      watch.moved(bytes);
    }
    const { reason } = watch;
    const found = { reason, aborted: watch.signal.aborted };
    watch.end();
    await turn();
    expect(clock.asleep).toBe(0);
    return found;
  }
  const fine = { reason: null, aborted: false };
  const ended = (reason: string) => ({ reason, aborted: true });

  test("ends it when no byte has come for a minute", async () => {
    expect(await watched([[59_999, 0]])).toEqual(fine);
    expect(await watched([[60_000, 0]])).toEqual(ended("no bytes arrived for 60 s"));
    // An answer without a body counts as a sign of life.
    expect(
      await watched([
        [30_000, 600],
        [89_999, 600],
      ]),
    ).toEqual(fine);
    expect(
      await watched([
        [30_000, 600],
        [90_000, 0],
      ]),
    ).toEqual(ended("no bytes arrived for 60 s"));
  });

  test("ends it when too few bytes have come in a minute, each minute for itself", async () => {
    const slow = (bytes: number) =>
      ended(`only ${bytes} bytes arrived in 60 s; expected at least 10 a second`);
    expect(
      await watched([
        [30_000, 600],
        [60_000, 0],
      ]),
    ).toEqual(fine);
    expect(
      await watched([
        [30_000, 599],
        [60_000, 0],
      ]),
    ).toEqual(slow(599));
    expect(
      await watched([
        [30_000, 9_000],
        [60_000, 1],
        [90_000, 500],
        [120_000, 0],
      ]),
    ).toEqual(slow(501));
    expect(
      await watched([
        [30_000, 600],
        [60_000, 600],
        [90_000, 0],
        [120_000, 0],
      ]),
    ).toEqual(fine);
  });

  test("ends it when it takes too long in all", async () => {
    const minutes = [1, 2, 3, 4].flatMap((n): [number, number][] => [
      [n * 60_000 - 30_000, 600],
      [n * 60_000, 0],
    ]);
    expect(await watched([...minutes, [270_000, 600], [299_999, 0]])).toEqual(fine);
    expect(await watched([...minutes, [270_000, 600], [300_000, 0]])).toEqual(
      ended("the transfer took longer than 300 s"),
    );
  });

  test("ends it when it is no longer wanted, or was not from the beginning", async () => {
    const interrupt = new AbortController();
    const watch = new Watch(new ManualClock(), pace, interrupt.signal);
    interrupt.abort();
    expect(watch).toMatchObject({ reason: "the download was interrupted", signal: { aborted: true } });
    watch.end();
    expect(await watched([], interrupt.signal)).toEqual(ended("the download was interrupted"));
  });

  test("lets it be once it has ended", async () => {
    const interrupt = new AbortController();
    const watch = new Watch(new ManualClock(), pace, interrupt.signal);
    watch.end();
    interrupt.abort();
    expect(watch).toMatchObject({ reason: null, signal: { aborted: false } });
  });
});
