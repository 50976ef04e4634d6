import { appendFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { nodeDisk } from "../../../src/archive/disk/node-disk.js";
import { examine, type FileFinding } from "../../../src/archive/examine.js";
import { takeLock } from "../../../src/store/lock.js";
import { repair } from "../../../src/upkeep/archive/repair.js";
import { type Depth, removeStrays, verifyWorkspace } from "../../../src/upkeep/archive/verify.js";
import { media } from "../../archive/media.js";
import { amount } from "../../fuzz/amount.js";
import { type ArchivedPlace, archivedPlace, quietJob } from "../archived-place.js";

let place: ArchivedPlace;
let png: Buffer;
let jpeg: Buffer;
let gif: Buffer;
beforeEach(async () => {
  place = await archivedPlace();
  [png, jpeg, gif] = await Promise.all([media.png(), media.jpeg(), media.gif()]);
  await place.archive("cup", [png]);
  await place.archive("leaf", [jpeg, gif], { name: "autumn/leaf" });
});
afterEach(() => place.close());

function look(depth: Depth, lot = 0.5) {
  return verifyWorkspace({
    workspace: place.workspace,
    depth,
    clock: place.clock,
    environment: {},
    onProgress: () => {},
    random: { next: () => lot, uuid: () => "" },
    signal: new AbortController().signal,
  });
}

async function findings(depth: Depth = "all"): Promise<FileFinding[]> {
  return (await look(depth)).flatMap(({ examination }) => examination.findings);
}

const path = (file: string) => join(place.folder, file);

/** A bit of a file turned over. */
function flip(file: string, bit: number): void {
  const bytes = readFileSync(path(file));
  bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
  writeFileSync(path(file), bytes);
}

test("P16: a sound archive has no findings, and each file is read once", async () => {
  const [report] = await look("all");
  const bytes = png.length + jpeg.length + gif.length;
  expect(report?.examination).toEqual({ files: 3, read: 3, bytesRead: bytes, findings: [] });
});

describe("what is found", () => {
  test("P16: every single flipped bit that is tried", { tags: ["fuzz"] }, async () => {
    const trials = amount(1_000, 10_000);
    const bits = png.length * 8;
    const missed: number[] = [];
    const files = (await look("all"))[0]?.known.filter(({ file }) => file === "cup.png") ?? [];
    expect(files).toHaveLength(1);
    // The file as the disk would hand it out, with that bit turned over.
    for (let trial = 0; trial < trials; trial++) {
      const bit = Math.floor((trial * bits) / trials);
      const flipped = Buffer.from(png);
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const disk = {
        ...nodeDisk,
        size: async () => flipped.length,
        list: async () => [],
        async *read(of: string) {
          yield of.endsWith("index.jsonl") ? Buffer.alloc(0) : flipped;
        },
      };
      const found = await examine(disk, place.folder, files, { reads: () => true });
      if (!found.findings.some(({ kind }) => kind === "damaged")) missed.push(bit);
    }
    expect(missed).toEqual([]);
  });

  test("P16: a flipped bit on the disk is found when the data is read, and a share reads a share", async () => {
    flip("cup.png", 4_000);
    expect(await findings("sizes")).toEqual([]);
    expect(await findings("all")).toMatchObject([
      { kind: "damaged", file: "cup.png", reason: expect.stringMatching(/^expected sha256 \w{12}…, got/) },
    ]);
    const [share] = await look({ percent: 40 });
    expect(share?.examination.read).toBe(2);
  });

  test("P16: a missing file, one of another length, and one that the index lost", async () => {
    rmSync(path("autumn/leaf-1.jpg"));
    appendFileSync(path("cup.png"), "x");
    const lines = readFileSync(path("index.jsonl"), "utf8").split("\n");
    writeFileSync(path("index.jsonl"), lines.filter((line) => !line.includes("leaf-2")).join("\n"));
    expect(await findings("sizes")).toMatchObject([
      { kind: "damaged", file: "cup.png", reason: `expected ${png.length} bytes, got ${png.length + 1}` },
      { kind: "missing", file: "autumn/leaf-1.jpg" },
      { kind: "unindexed", file: "autumn/leaf-2.gif" },
    ]);
  });

  test("P13: a file whose length the server did not state, and whose end nothing else proves", async () => {
    const lines = readFileSync(path("index.jsonl"), "utf8");
    writeFileSync(
      path("index.jsonl"),
      lines.replace('"check":"decoded"', '"check":"packets, length unknown"'),
    );
    expect(await findings()).toMatchObject([{ kind: "unproven", file: "cup.png" }]);
  });

  test("P16: a file that only the index knows counts as well", async () => {
    const [line = ""] = readFileSync(path("index.jsonl"), "utf8").split("\n");
    appendFileSync(path("index.jsonl"), `${line.replaceAll("cup", "gone")}\n`);
    expect(await findings("sizes")).toMatchObject([{ kind: "missing", file: "gone.png" }]);
  });

  test("P16: a file below what is no folder, or of a name that no file can have, is missing", async () => {
    const [line = ""] = readFileSync(path("index.jsonl"), "utf8").split("\n");
    const named = (file: string) => line.replaceAll("k1:cup", `k1:${file}`).replace('"cup.png"', `"${file}"`);
    const long = `${"x".repeat(300)}.png`;
    appendFileSync(path("index.jsonl"), `${named("cup.png/in.png")}\n${named(long)}\n`);
    expect(await findings("all")).toMatchObject([
      { kind: "missing", file: "cup.png/in.png" },
      { kind: "missing", file: long },
    ]);
  });

  test("P16: what bulkgen did not put there, and what it left; its own files and sidecars are neither", async () => {
    place.sidecars = true;
    await place.archive("twig", [await media.webp()]);
    for (const file of ["problems.csv", "gallery.html", "notes.txt"]) writeFileSync(path(file), "mine");
    mkdirSync(path("_quarantine"));
    writeFileSync(path("_quarantine/a.bad"), "<html>");
    writeFileSync(path("autumn/.bulkgen-0123456789abcdef-1.part"), "half");
    expect(await findings("sizes")).toMatchObject([
      { kind: "leftover", file: "_quarantine/a.bad", bytes: 6 },
      { kind: "leftover", file: "autumn/.bulkgen-0123456789abcdef-1.part", bytes: 4 },
      { kind: "unknown", file: "notes.txt", bytes: 4 },
    ]);
  });
});

describe("a repair", () => {
  const options = () => quietJob(place);

  test("P16: leaves a file alone that is there again, or whole again", async () => {
    flip("cup.png", 4_000);
    rmSync(path("autumn/leaf-1.jpg"));
    const reports = await look("all");
    writeFileSync(path("cup.png"), png);
    writeFileSync(path("autumn/leaf-1.jpg"), jpeg);
    await repair(reports, options());
    expect(await findings()).toEqual([]);
    expect(await place.store.counts(place.run.id)).toMatchObject({ archived: 2 });
  });

  test("P16: leaves an item alone whose file has another name since, or that was made again", async () => {
    rmSync(path("cup.png"));
    const reports = await look("all");
    const [cup] = await place.store.items(place.run.id);
    await place.store.moved(cup?.id ?? 0, 1, "mug.png");
    writeFileSync(path("mug.png"), png);
    await repair(reports, options());
    expect(await place.store.counts(place.run.id)).toMatchObject({ archived: 2 });
    expect(await place.store.outputs(cup?.id ?? 0)).toMatchObject([{ file: "mug.png" }]);
  });

  test("P16: adds no line to the index for a file that has another name since", async () => {
    const lines = readFileSync(path("index.jsonl"), "utf8");
    writeFileSync(path("index.jsonl"), lines.replace(/.*leaf-2.*\n/, ""));
    const reports = await look("all");
    const [, leaf] = await place.store.items(place.run.id);
    await place.store.moved(leaf?.id ?? 0, 2, "autumn/last.gif");
    await repair(reports, options());
    expect(readFileSync(path("index.jsonl"), "utf8")).not.toContain("leaf-2.gif");
  });

  test("P18: changes nothing while another process has the workspace", async () => {
    const lines = readFileSync(path("index.jsonl"), "utf8").replace(/.*leaf-2.*\n/, "");
    writeFileSync(path("index.jsonl"), lines);
    const reports = await look("all");
    const lock = takeLock(place.workspace.lockFile);
    await expect(repair(reports, options())).rejects.toMatchObject({ exit: "locked" });
    lock?.release();
    expect(readFileSync(path("index.jsonl"), "utf8")).toBe(lines);
    await repair(reports, options());
    expect(await findings()).toEqual([]);
  });
});

describe("leftovers", () => {
  const options = () => ({
    workspace: place.workspace,
    clock: place.clock,
    signal: new AbortController().signal,
  });

  test("are removed, and nothing else is", async () => {
    writeFileSync(path(".bulkgen-0123456789abcdef-1.part"), "half");
    writeFileSync(path("notes.txt"), "mine");
    expect(await removeStrays(options(), await look("sizes"))).toBe(1);
    expect(await findings()).toMatchObject([{ kind: "unknown", file: "notes.txt" }]);
  });

  test("may be gone by then", async () => {
    writeFileSync(path(".bulkgen-0123456789abcdef-1.part"), "half");
    writeFileSync(path(".bulkgen-0123456789abcdef-2.part"), "half");
    const reports = await look("sizes");
    rmSync(path(".bulkgen-0123456789abcdef-1.part"));
    expect(await removeStrays(options(), reports)).toBe(1);
    expect(await findings()).toEqual([]);
  });

  test("stay where they are while a run is in progress: it may be writing them", async () => {
    writeFileSync(path(".bulkgen-0123456789abcdef-1.part"), "half");
    const reports = await look("sizes");
    const lock = takeLock(place.workspace.lockFile);
    await expect(removeStrays(options(), reports)).rejects.toMatchObject({ exit: "locked" });
    lock?.release();
    expect(await findings()).toHaveLength(1);
  });
});
