import { createHash } from "node:crypto";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { nodeDisk } from "../../src/archive/disk/node-disk.js";
import { findLeftovers, removeLeftovers } from "../../src/archive/disk/temporary.js";
import { examine, type KnownFile } from "../../src/archive/examine.js";
import { Indexes, type IndexLine, identityOf } from "../../src/archive/index-file.js";
import { setAside } from "../../src/archive/quarantine.js";
import { indexLine } from "./index-line.js";
import { systemError, watchedDisk } from "./watched-disk.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "bulkgen-examine-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

function put(file: string, content: string): void {
  mkdirSync(join(folder, file, ".."), { recursive: true });
  writeFileSync(join(folder, file), content);
}

function lineOf(file: string, content: string, change: Partial<IndexLine> = {}): IndexLine {
  const facts = { item: file, task: `t-${file}`, bytes: content.length, sha256: sha256(content) };
  return indexLine(file, { ...facts, ...change });
}

/** Saves a file with a line in the index; returns what the workspace knows of it. */
async function archived(file: string, content: string, change: Partial<IndexLine> = {}): Promise<KnownFile> {
  put(file, content);
  const line = lineOf(file, content, change);
  await (await new Indexes(nodeDisk).of(folder)).add(line);
  return { identity: identityOf(line), file, bytes: line.bytes, sha256: line.sha256 };
}

const look = (known: KnownFile[], change: Partial<Parameters<typeof examine>[3]> = {}, disk = nodeDisk) =>
  examine(disk, folder, known, { reads: () => true, ...change });

describe("an examination", () => {
  test("P16: of a sound folder finds nothing, and counts what it read", async () => {
    const known = [await archived("a.png", "one"), await archived("sub/b.png", "three")];
    const seen: number[] = [];
    expect(await look(known, { onFile: () => seen.push(1) })).toEqual({
      files: 2,
      read: 2,
      bytesRead: 8,
      findings: [],
    });
    expect(seen).toHaveLength(2);
    const some = await look(known, { reads: ({ file }) => file === "a.png" });
    expect(some).toMatchObject({ files: 2, read: 1, bytesRead: 3 });
  });

  test("asks about several files at once where a bucket has some, and begins no more once one has failed", async () => {
    const known = await Promise.all(
      Array.from({ length: 30 }, (_, at) => archived(`${at}.png`, `file ${at}`)),
    );
    let [begun, going, most] = [0, 0, 0];
    const counting = {
      ...nodeDisk,
      size: async (path: string) => {
        begun++;
        most = Math.max(most, ++going);
        return nodeDisk.size(path).finally(() => going--);
      },
    };
    expect(await look(known, {}, counting)).toMatchObject({ files: 30, findings: [] });
    expect(most).toBe(1);
    rmSync(join(folder, "17.png"));
    const inBucket = async () => null;
    const { findings } = await look(known, {}, { ...counting, inBucket });
    expect(findings).toMatchObject([{ kind: "missing", file: "17.png" }]);
    expect(most).toBe(8);
    begun = 0;
    const failing = async () => Promise.reject(systemError("EIO"));
    await expect(look(known, {}, { ...counting, inBucket: failing })).rejects.toThrow("EIO");
    expect(begun).toBeLessThan(30);
  });

  test("P16: tells what is wrong with a file, and with its line in the index", async () => {
    const known = [
      await archived("missing.png", "x"),
      await archived("longer.png", "x"),
      await archived("changed.png", "good"),
      await archived("renamed.png", "x"),
      await archived("unproven.png", "x", { check: "packets, length unknown" }),
    ];
    const [missing, longer, changed, renamed, unproven] = known.map(({ identity }) => identity);
    rmSync(join(folder, "missing.png"));
    put("longer.png", "xx");
    put("changed.png", "evil");
    put("other.png", "x");
    const other = { ...(known[3] as KnownFile), file: "other.png" };
    const { findings } = await look(known.map((file) => (file.file === "renamed.png" ? other : file)));
    const reason = `expected sha256 ${sha256("good").slice(0, 12)}…, got ${sha256("evil").slice(0, 12)}…`;
    expect(findings).toEqual([
      { kind: "missing", file: "missing.png", identity: missing },
      { kind: "damaged", file: "longer.png", identity: longer, reason: "expected 1 bytes, got 2" },
      { kind: "damaged", file: "changed.png", identity: changed, reason },
      { kind: "unindexed", file: "other.png", identity: renamed },
      { kind: "unproven", file: "unproven.png", identity: unproven },
      { kind: "unknown", file: "renamed.png", bytes: 1 },
    ]);
  });

  test("P16: tells that a line of the index is of other content", async () => {
    const known = await archived("a.png", "old");
    put("a.png", "new");
    const now = { ...known, sha256: sha256("new") };
    expect((await look([now])).findings).toMatchObject([{ kind: "unindexed", file: "a.png" }]);
  });

  test("P16: tells that a file cannot be read, and goes on", async () => {
    const known = [await archived("a.png", "one"), await archived("b.png", "two")];
    const disk = watchedDisk(nodeDisk, (step, path) => {
      if (step === "read" && path.endsWith("a.png")) throw systemError("EIO");
    });
    expect((await look(known, {}, disk)).findings).toMatchObject([
      { kind: "damaged", file: "a.png", reason: "cannot be read: EIO: as the test wants it" },
    ]);
  });

  test("P16: examines what only the index knows, but expects no line of the workspace for it", async () => {
    await archived("a.png", "one");
    await archived("b.png", "two", { check: "type, length unknown" });
    expect(await look([])).toMatchObject({ files: 2, findings: [{ kind: "unproven", file: "b.png" }] });
    rmSync(join(folder, "a.png"));
    expect((await look([])).findings).toMatchObject([{ kind: "missing" }, { kind: "unproven" }]);
  });

  test("ends where it is interrupted, and still tells of strange files", async () => {
    const known = [await archived("a.png", "one"), await archived("b.png", "two")];
    put("notes.txt", "mine");
    const interrupt = new AbortController();
    const onFile = () => interrupt.abort();
    expect(await look(known, { signal: interrupt.signal, onFile })).toMatchObject({
      files: 2,
      read: 1,
      findings: [{ kind: "unknown", file: "notes.txt", bytes: 4 }],
    });
  });

  test("P16: knows its own files from strange ones, and leftovers from both", async () => {
    const known = [await archived("Cup.png", "one"), await archived("sub/b.png", "two")];
    for (const own of ["problems.csv", "gallery.html", "picked.html", "_gallery/a.webp", "cup.json"])
      put(own, "own");
    put("sub/b.json", "own");
    for (const strange of ["notes.txt", "sub/problems.csv", "sub/_gallery/a.webp", "c.json"])
      put(strange, "?");
    for (const left of ["_quarantine/a.bad", "sub/.bulkgen-0123456789abcdef-1.part"]) put(left, "left");
    put("quarantine/a.bad", "?");
    symlinkSync(folder, join(folder, "loop"));
    const { findings } = await look(known);
    expect(findings.map((found) => `${found.kind} ${found.file}`)).toEqual([
      "leftover _quarantine/a.bad",
      "unknown c.json",
      "unknown loop",
      "unknown notes.txt",
      "unknown quarantine/a.bad",
      "leftover sub/.bulkgen-0123456789abcdef-1.part",
      "unknown sub/_gallery/a.webp",
      "unknown sub/problems.csv",
    ]);
  });
});

describe("a damaged file is set aside", () => {
  const facts = (known: KnownFile) => ({ ...known, item: "cup", task: "t-1", output: 2 });

  test("P16: under another name in the quarantine, with the reason, so that its own name is free", async () => {
    const known = await archived("sub/a.png", "good");
    put("sub/a.png", "evil!");
    const steps: string[] = [];
    const disk = watchedDisk(nodeDisk, (step, path) => {
      if (step === "unlink" || step === "syncFolder") steps.push(`${step} ${path.slice(folder.length + 1)}`);
    });
    await setAside(disk, folder, facts(known), "expected 4 bytes, got 5");
    const file = `damaged-sub-a.png-${sha256("evil!").slice(0, 12)}.bad`;
    expect(readdirSync(join(folder, "sub"))).toEqual([]);
    expect(readFileSync(join(folder, "_quarantine", file), "utf8")).toBe("evil!");
    expect(JSON.parse(readFileSync(join(folder, "_quarantine/index.jsonl"), "utf8"))).toEqual({
      file,
      item: "cup",
      task: "t-1",
      output: 2,
      bytes: 5,
      sha256: sha256("evil!"),
      reason: "damaged on the disk: expected 4 bytes, got 5",
    });
    expect(steps).toEqual(["syncFolder _quarantine", "unlink sub/a.png", "syncFolder sub"]);
  });

  test("P16: also where the rest of it cannot be read, and where moving it took its name", async () => {
    const known = await archived("a.png", "good");
    const disk = {
      ...nodeDisk,
      async *read() {
        yield Buffer.from("go");
        throw systemError("EIO");
      },
      async link(from: string, to: string) {
        await nodeDisk.link(from, to);
        await nodeDisk.unlink(from);
      },
    };
    await setAside(disk, folder, facts(known), "cannot be read");
    const [line] = readFileSync(join(folder, "_quarantine/index.jsonl"), "utf8").split("\n");
    expect(JSON.parse(line ?? "")).toMatchObject({ bytes: 2, sha256: sha256("go") });
  });

  test("under a name of at most sixty characters of its own", async () => {
    const known = await archived(`${"long/".repeat(20)}a.png`, "evil");
    await setAside(nodeDisk, folder, facts(known), "x");
    const name = `damaged-${"long-".repeat(20)}`.slice(0, 60);
    expect(readdirSync(join(folder, "_quarantine"))).toContain(`${name}-${sha256("evil").slice(0, 12)}.bad`);
    const disk = watchedDisk(nodeDisk, (step) => {
      if (step === "link") throw systemError("ENOSPC");
    });
    const other = await archived("b.png", "evil too");
    await expect(setAside(disk, folder, facts(other), "x")).rejects.toThrow("ENOSPC");
    expect(await nodeDisk.size(join(folder, "b.png"))).toBe(8);
  });

  test("but not where the disk refuses it", async () => {
    const known = await archived("a.png", "good");
    const disk = watchedDisk(nodeDisk, (step) => {
      if (step === "unlink") throw systemError("EACCES");
    });
    await expect(setAside(disk, folder, facts(known), "x")).rejects.toThrow("EACCES");
  });

  test("twice with the same content, it is kept once", async () => {
    for (const file of ["a.png", "a.png"]) {
      const known = await archived(file, "evil");
      await setAside(nodeDisk, folder, facts(known), "x");
    }
    expect(readdirSync(join(folder, "_quarantine"))).toHaveLength(2);
    expect(readFileSync(join(folder, "_quarantine/index.jsonl"), "utf8").match(/\n/g)).toHaveLength(1);
  });
});

describe("leftovers of crashed runs", () => {
  const part = ".bulkgen-0123456789abcdef-1.part";

  test("are the temporary files of all folders, and nothing that only looks like one", async () => {
    for (const file of [
      part,
      `sub/deep/${part}`,
      "sub/a.png",
      ".bulkgen-0123456789abcdef.part",
      `${part}.png`,
    ])
      put(file, "x");
    mkdirSync(join(folder, `x${part}`));
    expect(await findLeftovers(nodeDisk, folder)).toEqual([
      join(folder, part),
      join(folder, "sub/deep", part),
    ]);
    expect(await findLeftovers(nodeDisk, join(folder, "nowhere"))).toEqual([]);
  });

  test("are removed for good, also where one is gone by then", async () => {
    put(part, "x");
    put(`sub/${part}`, "x");
    const steps: string[] = [];
    const disk = watchedDisk(nodeDisk, (step, path) => {
      if (step === "syncFolder") steps.push(path);
      if (step === "unlink" && path === join(folder, part)) rmSync(path);
    });
    expect(await removeLeftovers(disk, folder)).toHaveLength(2);
    expect(await findLeftovers(nodeDisk, folder)).toEqual([]);
    expect(steps).toEqual([folder, join(folder, "sub")]);
  });
});
