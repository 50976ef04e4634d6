import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "bulkgen-count-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const passing = { status: "passed" };
const failing = { status: "failed" };

test.each([
  ["counts what passed", [file("passed", [passing, passing])], true, "2 passed, 0 failed\n", 0],
  ["counts what failed", [file("failed", [passing, failing])], false, "1 passed, 1 failed\n", 1],
  [
    "counts what was skipped as failed",
    [file("passed", [passing, { status: "pending" }])],
    true,
    "1 passed, 1 failed\n",
    1,
  ],
  [
    "counts a file that cannot be loaded",
    [file("failed", []), file("passed", [passing])],
    false,
    "could not run a.test.ts: no such module\n1 passed, 1 failed\n",
    1,
  ],
  [
    "fails when vitest says so for a reason of its own",
    [file("passed", [passing])],
    false,
    "1 passed, 0 failed\n",
    1,
  ],
  ["fails when no test ran", [], true, "no test ran\n0 passed, 1 failed\n", 1],
])("%s", (_, testResults, success, stdout, status) => {
  expect(count(JSON.stringify({ success, testResults }))).toEqual({ stdout, status });
});

test.each(["", "not json"])("fails on a report that is %j", (text) => {
  expect(count(text)).toEqual({ stdout: "no test ran\n0 passed, 1 failed\n", status: 1 });
});

test("fails when there is no report", () => {
  expect(run(join(folder, "missing.json"))).toEqual({
    stdout: "no test ran\n0 passed, 1 failed\n",
    status: 1,
  });
});

function file(status: string, assertionResults: object[]) {
  return { name: "a.test.ts", status, message: "no such module\nat line 1", assertionResults };
}

function count(text: string) {
  const path = join(folder, "report.json");
  writeFileSync(path, text);
  return run(path);
}

function run(path: string) {
  const { stdout, status } = spawnSync(process.execPath, [".ci/test-count.mjs", path], {
    encoding: "utf8",
  });
  return { stdout, status };
}
