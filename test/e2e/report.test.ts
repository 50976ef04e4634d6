import { expect, test } from "vitest";
import { newPlace, run } from "./command.js";
import { endedScheduledRuns } from "./ended-scheduled-runs.js";

test("a night operator reads in the morning what ran, what failed and what to type", async () => {
  const place = await endedScheduledRuns();
  const { stdout, code } = await run(place, ["report"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^since +\S+ 00:00 \S+\ntotal +2 runs, 1 not begun, 2 archived, 2 failed\ncredits +4 spent$/m,
  );
  expect(stdout).toMatch(/^ +1 .* night +schedule night +2 +0 +0 +4 +cap \(exit 6\)$/m);
  expect(stdout).toMatch(/^ +2 .* day +\S+ +0 +2 +0 +0 +failed \(exit 5\)$/m);
  expect(stdout).toMatch(/^run 2 +2 × .*the seed must be a number \(a01, a02\)$/m);
  expect(stdout).toMatch(/^ +2 items are left: `bulkgen resume 1 --max-credits 8`$/m);
  expect(stdout).toMatch(/^run 2 +fix the failed rows, then `bulkgen run day\.csv`/m);
  expect(stdout).toMatch(/^noon +due .*: missed: the daemon was not running$/m);
});

test("the same is one JSON document", async () => {
  const place = await endedScheduledRuns();
  expect(JSON.parse((await run(place, ["report", "--json"])).stdout)).toMatchObject({
    workspace: place.folder,
    sandbox: false,
    totals: { runs: 2, notBegun: 1, archived: 2, failed: 2, undecided: 0, credits: { spent: 4, pending: 0 } },
    runs: [
      {
        run: 1,
        beganBy: { schedule: "night", due: "2026-11-23T01:00:00Z" },
        exit: 6,
        exitName: "cap",
        stops: ["the credit cap is reached"],
      },
      { run: 2, exitName: "failed", failures: [{ rowId: "a01" }, { rowId: "a02" }] },
    ],
    notBegun: [{ schedule: "noon", state: "missed" }],
  });
});

test("a report is readable on 60 columns", async () => {
  const place = await endedScheduledRuns();
  const { stdout } = await run(place, ["report"], { columns: 60, env: { NO_COLOR: "1" } });

  for (const line of stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(60);
  expect(stdout).toMatch(/^run 1 +night: cap \(exit 6\)$/m);
});

test("runs that ended before are left out, and a workspace without runs says so", async () => {
  const place = await endedScheduledRuns();
  expect((await run(place, ["report", "--since", "2999-01-01"])).stdout).toBe(
    "since  2999-01-01 00:00 UTC\ntotal  no runs\n",
  );
  expect((await run(newPlace(), ["report"])).stdout).toMatch(/^no runs in \S+: it is not a workspace yet\. /);
});
