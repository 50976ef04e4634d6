import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { reportError, stackWithModules } from "../../src/cli/output/ending.js";
import { EarlyExit } from "../../src/core/exit.js";
import type { Machine } from "../../src/machine.js";
import { openSqlite } from "../../src/sqlite.js";

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "bulkgen stack-"));
  mkdirSync(join(root, "dist/bin"), { recursive: true });
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

test("positions in the bundle name their module, the others stay as they are", () => {
  const text = [
    `import { a } from "./a.js";`,
    "// store/runs.js",
    "function one() {}",
    "// ../../zod/v4/core.cjs",
    "function two() {}",
    "two();",
  ];
  writeFileSync(join(root, "dist/bin/part.cjs"), text.join("\n"));
  const part = "dist/bin/part.cjs";
  const ofThread = pathToFileURL(join(root, part)).href;
  const gone = "dist/bin/gone.cjs";
  const places = [
    [`at one (${part}:3:9)`, `at one (${part}:3:9, store/runs.js)`],
    [`at async ${part}:6:1`, `at async ${part}:6:1, zod/v4/core.cjs`],
    [`at async ${ofThread}:6:1`, `at async ${ofThread}:6:1, zod/v4/core.cjs`],
    [`at ${part}:1:1`, `at ${part}:1:1`],
    [`at three (${gone}:3:9)`, `at three (${gone}:3:9)`],
    ["at open (/somewhere/lib/wrappers.js:5:21)", "at open (/somewhere/lib/wrappers.js:5:21)"],
  ];
  const stack = (column: 0 | 1) => ["Error: no", ...places.map((place) => place[column])].join("\n    ");
  expect(stackWithModules(stack(0), (path) => join(root, path))).toBe(stack(1));
});

test("P24: a message shows names from outside without control characters, and keeps its own lines", async () => {
  const written: string[] = [];
  const stderr = { write: (text: string) => written.push(text) };
  const error = new EarlyExit("usage", "which?\n  a\u001b]0;owned\u0007\u001b[2J\u202e\n  b");
  expect(
    await reportError(error, { stderr, env: {}, clock: { now: () => 0 }, cwd: "/" } as unknown as Machine, {
      json: false,
      jsonLines: false,
    }),
  ).toBe(2);
  expect(written.join("")).toBe("bulkgen: which?\n  a\n  b\n");
});

test("P18: a database that another process has locked is no mistake of this command", async () => {
  const db = join(root, "state.db");
  const other = openSqlite(db);
  other.exec("create table items (id integer); begin immediate");
  const own = openSqlite(db, { timeout: 0 });
  const written: string[] = [];
  const stderr = { write: (text: string) => written.push(text) };
  const machine = { stderr, env: {}, clock: { now: () => 0 }, cwd: "/" } as unknown as Machine;
  let exit: number | null = null;
  try {
    own.exec("begin immediate");
  } catch (error) {
    exit = await reportError(error, machine, { json: false, jsonLines: false });
  }
  own.close();
  other.close();
  expect([exit, written.join("")]).toEqual([
    9,
    expect.stringContaining("try again when that process has ended"),
  ]);
});
