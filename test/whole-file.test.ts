import { spawnSync } from "node:child_process";
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { partName, wholeName, writeWhole, writeWholeNow } from "../src/whole-file.js";
import { afterThisFile } from "./after-file.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "bulkgen-whole-"));
  const made = folder;
  afterThisFile(() => rmSync(made, { recursive: true, force: true }));
});

const at = (name: string) => join(folder, name);

test.each([
  ["in pieces", (path: string) => writeWhole(path, ["a", "b"])],
  ["at once", async (path: string) => writeWholeNow(path, "ab")],
])("P26: a file written %s follows no link, under its own name or that of its part", async (_, write) => {
  writeFileSync(at("secret"), "secret");
  symlinkSync("secret", at("out"));
  symlinkSync("secret", partName(at("out"), process.pid));
  await write(at("out"));
  expect(readFileSync(at("secret"), "utf8")).toBe("secret");
  expect(readFileSync(at("out"), "utf8")).toBe("ab");
  const link = basename(partName(at("out"), process.pid));
  expect(readdirSync(folder).toSorted()).toEqual(["out", link, "secret"]);
});

test("a person's own file that is called like a part stays", async () => {
  writeFileSync(at("out.part"), "mine");
  await writeWhole(at("out"), "theirs");
  expect(readFileSync(at("out.part"), "utf8")).toBe("mine");
});

test.each([
  ["in pieces", (path: string) => writeWhole(path, ["new"])],
  ["at once", async (path: string) => writeWholeNow(path, "new")],
])(
  "a file written %s takes away what killed processes have left of it, and nothing else",
  async (_, write) => {
    const { pid: ended } = spawnSync(process.execPath, ["--version"]);
    const abandoned = [partName(at("out"), ended), partName(at("out"), ended, 2)];
    const kept = [
      partName(at("out"), process.ppid),
      partName(at("other"), ended),
      // Of another machine, and a person's own.
      at(`out.00000000-${ended}.part`),
      at("out.part"),
    ];
    for (const name of [...abandoned, ...kept]) writeFileSync(name, "old");
    await write(at("out"));
    expect(readdirSync(folder).toSorted()).toEqual(["out", ...kept.map((name) => basename(name))].toSorted());
    expect(wholeName(abandoned[1] ?? "")).toBe(at("out"));
  },
);

test("two writers of one file at once do not disturb each other: the last has the name", async () => {
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  async function* slow() {
    yield "slow";
    await ended;
  }
  const first = writeWhole(at("out"), slow());
  await writeWhole(at("out"), "quick");
  expect(readFileSync(at("out"), "utf8")).toBe("quick");
  end();
  await first;
  expect(readFileSync(at("out"), "utf8")).toBe("slow");
  expect(readdirSync(folder)).toEqual(["out"]);
});

test("what is interrupted, or fails, leaves the old file and nothing else", async () => {
  writeFileSync(at("out"), "old");
  const over = new AbortController();
  async function* interrupted() {
    yield "new";
    over.abort();
    yield "newer";
  }
  await expect(writeWhole(at("out"), interrupted(), over.signal)).rejects.toThrow();
  async function* failing() {
    yield "new";
    throw new Error("no more");
  }
  await expect(writeWhole(at("out"), failing())).rejects.toThrow("no more");
  expect(readFileSync(at("out"), "utf8")).toBe("old");
  expect(readdirSync(folder)).toEqual(["out"]);
});

test("a secret is readable for its owner alone from its first byte", () => {
  writeWholeNow(at("secret"), "x", 0o600);
  expect(statSync(at("secret")).mode & 0o777).toBe(0o600);
});
