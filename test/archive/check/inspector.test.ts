import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Worker } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { smallBytes } from "../../../src/archive/check/content.js";
import {
  type Inspector,
  type InspectorSettings,
  openInspector,
} from "../../../src/archive/check/inspector.js";
import { packageFile } from "../../../src/package-file.js";
import { ManualClock } from "../../manual-clock.js";
import { media } from "../media.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "bulkgen-inspector-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function using<Result>(
  settings: Partial<InspectorSettings>,
  use: (inspector: Inspector, clock: ManualClock) => Promise<Result>,
): Promise<Result> {
  const clock = new ManualClock();
  const inspector = openInspector({ clock, ...settings });
  try {
    return await use(inspector, clock);
  } finally {
    await inspector.close();
  }
}

describe("the thread that checks files", () => {
  test("P13: says what a file is, and what it is not", async () => {
    const [good, bad] = [join(folder, "good"), join(folder, "bad")];
    await writeFile(good, await media.png());
    await writeFile(bad, "<html></html>");
    await using({}, async (inspector) => {
      const looks = Array.from({ length: 6 }, (_, at) => inspector.inspect(at % 2 ? bad : good, "image", 1));
      const [first, second] = await Promise.all(looks);
      const size = { width: 48, height: 36 };
      expect(first).toEqual({
        kind: "media",
        extension: "png",
        mime: "image/png",
        check: "decoded",
        ...size,
      });
      expect(second).toMatchObject({ kind: "bad", reason: "expected image, got an HTML page" });
    });
  });

  test("is not started for a small picture", async () => {
    const path = join(folder, "small");
    await writeFile(path, await media.png());
    const worker = join(folder, "there-is-no-such-thread.mjs");
    await using({ worker }, async (inspector, clock) => {
      expect(await inspector.inspect(path, "image", smallBytes)).toMatchObject({
        mime: "image/png",
        check: "decoded",
      });
      expect(clock.asleep, "every watch is put away").toBe(0);
      const unthreaded = { kind: "bad", reason: expect.stringContaining("there-is-no-such-thread") };
      expect(await inspector.inspect(path, "video", 1)).toMatchObject(unthreaded);
      expect(await inspector.inspect(path, "image", smallBytes + 1)).toMatchObject(unthreaded);
    });
  });

  test("is one for files that come one by one, two where several wait, and ends with the inspector", async () => {
    const file = join(folder, "fragile.mjs");
    await writeFile(file, fragile);
    const threads = endsOfThreads();
    const inspectAll = (count: number) =>
      using({ worker: file }, async (inspector) => {
        await Promise.all(Array.from({ length: count }, () => inspector.inspect("good", "video", 1)));
        await inspector.inspect("good", "video", 1);
      });
    await inspectAll(1);
    expect(threads).toHaveLength(1);
    await inspectAll(6);
    expect(threads).toHaveLength(3);
    await Promise.all(threads);
  });

  test("P17: an unreadable disk is reported with its code, and is no verdict about the file", async () => {
    await using({}, async (inspector) => {
      await expect(inspector.inspect(folder, "image", 1)).rejects.toMatchObject({ code: "EISDIR" });
    });
  });
});

/** The ends of threads that this test starts. */
function endsOfThreads(): Promise<unknown>[] {
  const ends: Promise<unknown>[] = [];
  const watch = (thread: Worker) => ends.push(once(thread, "exit"));
  process.on("worker", watch);
  onTestFinished(() => void process.off("worker", watch));
  return ends;
}

/** A worker that meets its end by some files, and takes the others for pictures. */
const fragile = `
import { parentPort } from "node:worker_threads";
parentPort.on("message", ({ path, typeBecause }) => {
  if (path === "stays") for (;;);
  if (typeBecause) return parentPort.postMessage({ content: { kind: "media", because: typeBecause } });
  if (path === "loops") for (;;);
  if (path === "eats") for (const all = []; ; ) all.push(new Array(1e5).fill(1.5));
  if (path === "throws") throw new Error("what now");
  if (path === "leaves") process.exit(3);
  if (path === "fails") return parentPort.postMessage({ message: "what now", code: null });
  if (path === "goes") setImmediate(() => process.exit());
  parentPort.postMessage({ content: { kind: "media", extension: "png", mime: "image/png", check: "type" } });
});`;

describe("a hostile file", () => {
  const unread = (because: string) => ({ kind: "media", because });
  const bad = (reason: string) => ({ kind: "bad", reason });
  const ends: readonly [string, object][] = [
    ["loops", unread("the check took longer than 31 s")],
    ["eats", unread("the check took too much memory")],
    ["throws", bad("the check failed: what now")],
    ["leaves", bad("the check ended its thread")],
  ];

  test.each(ends)(
    "P22: that %s holds up nothing: its type has to do, or it is refused",
    async (path, end) => {
      const file = join(folder, "fragile.mjs");
      await writeFile(file, fragile);
      await using({ worker: file }, async (inspector, clock) => {
        const looks = [path, "good", "good", "good"].map((each) => inspector.inspect(each, "video", 2 ** 22));
        await Promise.all(looks.slice(1));
        if (path === "loops") clock.advance(31_000);
        expect(await looks[0]).toEqual(end);
        expect(await inspector.inspect("good", "video", 1)).toMatchObject({ kind: "media" });
        expect(clock.asleep, "every watch is put away").toBe(0);
      });
    },
  );
});

test("P22: a file whose type cannot be looked at either is refused", async () => {
  const file = join(folder, "fragile.mjs");
  await writeFile(file, fragile);
  await using({ worker: file }, async (inspector, clock) => {
    const looking = inspector.inspect("stays", "video", 2 ** 22);
    clock.advance(31_000);
    await new Promise(setImmediate);
    clock.advance(31_000);
    expect(await looking).toEqual({ kind: "bad", reason: "the check took longer than 31 s" });
  });
});

test("a thread that ends while it has nothing to do gets no other file", async () => {
  const file = join(folder, "fragile.mjs");
  await writeFile(file, fragile);
  const threads = endsOfThreads();
  await using({ worker: file }, async (inspector) => {
    for (const path of ["goes", "good", "goes"]) {
      expect(await inspector.inspect(path, "video", 1)).toMatchObject({ kind: "media" });
      if (path === "goes") await threads.at(-1);
    }
    expect(threads).toHaveLength(2);
  });
});

test("an error of a thread without a code has none", async () => {
  const file = join(folder, "fragile.mjs");
  await writeFile(file, fragile);
  await using({ worker: file }, async (inspector) => {
    const error = await inspector.inspect("fails", "video", 1).catch((each: unknown) => each);
    expect(error).toEqual(new Error("what now"));
    expect(error).not.toHaveProperty("code");
  });
});

describe("a file that its library cannot get to the end of", () => {
  test.each([
    [
      "a WebM of unknown size that is cut at byte 255",
      async () => ofUnknownSize(await media.webm()).subarray(0, 255),
    ],
    ["an MP4 of a million boxes", async () => manyBoxes(1_000_000)],
  ])("%s is taken by its type, and says so; its thread ends", async (name, bytes) => {
    const path = join(folder, name);
    await writeFile(path, await bytes());
    // A file of its own: what starts from the built one may be a thread that commands of other tests share.
    const worker = join(folder, "worker.mjs");
    const built = pathToFileURL(packageFile("dist/archive/check/inspector-worker.js")).href;
    await writeFile(worker, `import ${JSON.stringify(built)};`);
    const threads = endsOfThreads();
    await using({ worker }, async (inspector, clock) => {
      const looking = inspector.inspect(path, "video", 1);
      clock.advance(31_000);
      expect(await looking).toMatchObject({
        kind: "media",
        check: "type",
        because: "the check took longer than 30 s",
      });
      await threads[0];
    });
  });
});

/** A real MP4, with that many empty boxes before what it consists of. */
function manyBoxes(count: number): Buffer {
  const box = (type: string, body = Buffer.alloc(0)) => {
    const head = Buffer.alloc(8);
    head.writeUInt32BE(8 + body.length);
    head.write(type, 4, "latin1");
    return Buffer.concat([head, body]);
  };
  const fileType = box("ftyp", Buffer.from("isom\0\0\0\0isomavc1", "latin1"));
  return Buffer.concat([fileType, Buffer.alloc(count * 8, box("free")), box("moov")]);
}

/** As a program writes it that streams: the size of the segment is left open. */
function ofUnknownSize(webm: Buffer): Buffer {
  const at = webm.indexOf(Buffer.from([0x18, 0x53, 0x80, 0x67])) + 4;
  const length = Math.clz32(webm[at] ?? 1) - 23;
  webm[at] = 0xff >> (length - 1);
  return webm.fill(0xff, at + 1, at + length);
}
