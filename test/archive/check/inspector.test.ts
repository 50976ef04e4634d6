import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type Inspector,
  type InspectorSettings,
  openInspector,
} from "../../../src/archive/check/inspector.js";
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
      expect(first).toEqual({ kind: "media", extension: "png", mime: "image/png", check: "decoded" });
      expect(second).toMatchObject({ kind: "bad", reason: "expected image, got an HTML page" });
    });
  });

  test("P17: an unreadable disk is reported with its code, and is no verdict about the file", async () => {
    await using({}, async (inspector) => {
      await expect(inspector.inspect(folder, "image", 1)).rejects.toMatchObject({ code: "EISDIR" });
    });
  });
});

/** A worker that meets its end by some files, and takes the others for pictures. */
const fragile = `
import { parentPort } from "node:worker_threads";
parentPort.on("message", ({ path }) => {
  if (path === "loops") for (;;);
  if (path === "eats") for (const all = []; ; ) all.push(new Array(1e5).fill(1.5));
  if (path === "throws") throw new Error("what now");
  if (path === "leaves") process.exit(3);
  parentPort.postMessage({ content: { kind: "media", extension: "png", mime: "image/png", check: "type" } });
});`;

describe("a hostile file", () => {
  const ends: readonly [string, string][] = [
    ["loops", "the check took longer than 61 s"],
    ["eats", "the check failed: Worker terminated due to reaching memory limit"],
    ["throws", "the check failed: what now"],
    ["leaves", "the check ended its thread"],
  ];

  test.each(ends)("P22: that %s is no output, and the next files are checked", async (path, reason) => {
    const file = join(folder, "fragile.mjs");
    await writeFile(file, fragile);
    await using({ worker: file }, async (inspector, clock) => {
      const looks = [path, "good", "good", "good"].map((each) => inspector.inspect(each, "image", 2 ** 22));
      await Promise.all(looks.slice(1));
      if (path === "loops") clock.advance(61_000);
      expect(await looks[0]).toEqual({ kind: "bad", reason: expect.stringContaining(reason) });
      expect(await inspector.inspect("good", "image", 1)).toMatchObject({ kind: "media" });
      expect(clock.asleep, "every watch is put away").toBe(0);
    });
  });
});
