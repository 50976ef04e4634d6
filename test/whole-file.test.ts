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
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { writeWhole, writeWholeNow } from "../src/whole-file.js";
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
  symlinkSync("secret", at("out.part"));
  await write(at("out"));
  expect(readFileSync(at("secret"), "utf8")).toBe("secret");
  expect(readFileSync(at("out"), "utf8")).toBe("ab");
  expect(readdirSync(folder).toSorted()).toEqual(["out", "out.part", "secret"]);
});

test("a person's own file that is called like a part stays", async () => {
  writeFileSync(at("out.part"), "mine");
  await writeWhole(at("out"), "theirs");
  expect(readFileSync(at("out.part"), "utf8")).toBe("mine");
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
