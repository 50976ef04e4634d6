import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  folderBelow,
  foldName,
  jobFolder,
  numberedName,
  outputName,
  safeName,
  segmentBytesMax,
  segmentsMax,
} from "../../../src/archive/disk/names.js";
import { nodeDisk } from "../../../src/archive/disk/node-disk.js";
import { anyCharacter } from "../../any-character.js";

test.each([
  ["hero", "hero"],
  ["Café/été.png", "Café/été"],
  ["Cafe\u0301", "Caf\u00e9"],
  ["poster 16:9.jpeg", "poster 16x9"],
  ["a:b", "a-b"],
  ["v1.2", "v1.2"],
  ["archive.tar", "archive.tar"],
  ["../../etc/passwd", "etc/passwd"],
  ["/etc/passwd", "etc/passwd"],
  ["C:\\Windows\\win.ini", "C-/Windows/win.ini"],
  ["a/../b", "a/b"],
  ["a//b/", "a/b"],
  [".hidden", "hidden"],
  ["con", "con-"],
  ["nul.txt.png", "nul-.txt"],
  ["dot. ", "dot"],
  ["line\nbreak\u0000", "line break-"],
  ["right\u202eto left", "right-to left"],
  ["half \ud83d pair", "half  pair"],
  ["_quarantine/x", "quarantine/x"],
  ["", "untitled"],
  ["...", "untitled"],
  [".png", "untitled"],
])("P23: %j is written as %j", (wanted, name) => {
  expect(safeName(wanted)).toBe(name);
});

/** Text that is out to break something. */
const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "/",
        "\\",
        "..",
        ".",
        " ",
        ":",
        "con",
        "NUL",
        "com1.",
        "\u0000",
        "\u202e",
        "\ud800",
        "%2e%2e",
        "~",
        "|",
        "?",
      ),
      fc.constantFrom(
        "_quarantine",
        "_Gallery",
        ".png",
        ".part",
        "index.jsonl",
        "𝒳",
        "e\u0301",
        "👩‍👩‍👧",
        "ﬁ",
        "İ",
        "ß",
      ),
      fc.string({ unit: anyCharacter }),
    ),
    { maxLength: 60 },
  )
  .map((pieces) => pieces.join(""));

const forbidden = /[<>:"\\|?*\p{Cc}\p{Cs}]|^[.\s]|[. ]$/u;
const reserved = /^(con|prn|aux|nul|com\d|lpt\d) *(\.|$)/i;

test("P23: no name leads out of the folder, is reserved, hidden, too long or not NFC", () => {
  fc.assert(
    fc.property(hostile, (wanted) => {
      const segments = safeName(wanted).split("/");
      expect(segments.length).toBeLessThanOrEqual(segmentsMax);
      for (const segment of segments) {
        expect(segment).not.toBe("");
        expect(segment).not.toMatch(forbidden);
        expect(segment).not.toMatch(reserved);
        expect(segment).toBe(segment.normalize("NFC"));
        // One byte more where a reserved name was made harmless.
        expect(Buffer.byteLength(segment)).toBeLessThanOrEqual(segmentBytesMax + 1);
        expect(Buffer.from(segment).toString()).toBe(segment);
      }
      expect(segments[0]).not.toMatch(/^_?_(quarantine|superseded|gallery)$/i);
    }),
    { numRuns: 2000 },
  );
});

test("P23: a safe name stays as it is", () => {
  fc.assert(
    fc.property(hostile, (wanted) => {
      const once = safeName(`${wanted}/x`);
      expect(safeName(once)).toBe(once);
    }),
    { numRuns: 1000 },
  );
});

test("P23: a long name is cut between characters, not within one", () => {
  expect(safeName("é".repeat(400))).toBe("é".repeat(segmentBytesMax / 2));
  expect(safeName(`a${"👍".repeat(400)}`)).toBe(`a${"👍".repeat(29)}`);
});

test("P23: names that some file system takes for one fold to one", () => {
  for (const [one, two] of [
    ["Hero.PNG", "hero.png"],
    ["CAFÉ", "cafe\u0301"],
    ["STRASSE", "straße"],
    ["ΣΊΣΥΦΟΣ", "σίσυφος"],
  ] as const)
    expect(foldName(one)).toBe(foldName(two));
  expect(foldName("a")).not.toBe(foldName("b"));
});

test("outputs are numbered only when there are several, further files from 2", () => {
  expect(outputName("a", 1, 1)).toBe("a");
  expect(outputName("a", 2, 3)).toBe("a-2");
  expect(numberedName("a", 1, "png")).toBe("a.png");
  expect(numberedName("a", 2, "png")).toBe("a-2.png");
});

test("P23: folders deeper than eight are joined into the last name", () => {
  const deep = Array.from({ length: 10 }, (_, index) => `f${index}`);
  expect(safeName(deep.join("/"))).toBe("f0/f1/f2/f3/f4/f5/f6/f7-f8-f9");
  expect(safeName(deep.slice(0, segmentsMax).join("//"))).toBe("f0/f1/f2/f3/f4/f5/f6/f7");
});

describe("a folder below the job's", () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "bulkgen-names-"));
  });
  afterEach(() => rmSync(root, { recursive: true }));

  test("is made level by level, and the job's own with it", async () => {
    const job = join(root, "job");
    expect(await folderBelow(nodeDisk, job, "."), "is left to whoever makes a file").toBe(job);
    expect(readdirSync(root)).toEqual([]);
    expect(await folderBelow(nodeDisk, job, "a/b")).toBe(join(job, "a/b"));
    expect(readdirSync(join(job, "a"))).toEqual(["b"]);
  });

  test("P23: is refused where a level of it is a symbolic link, and nothing is made behind that", async () => {
    symlinkSync(root, join(root, "job"));
    mkdirSync(join(root, "elsewhere"));
    symlinkSync(join(root, "elsewhere"), join(root, "a"));
    // The job's folder may be one.
    await expect(folderBelow(nodeDisk, join(root, "job"), "a/b")).rejects.toMatchObject({
      code: "ELOOP",
      message: `${join(root, "job", "a")} is a symbolic link; expected a folder`,
    });
    expect(readdirSync(join(root, "elsewhere"))).toEqual([]);
  });
});

test("P23: a run's folder is named after its job, as safely as a file", () => {
  expect(jobFolder({ outFolder: "/out", jobName: "../my: job" })).toBe(join("/out", safeName("../my: job")));
  expect(jobFolder({ outFolder: "/out", jobName: "cups" })).toBe(join("/out", "cups"));
});
