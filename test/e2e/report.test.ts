import { expect, test } from "vitest";
import { newPlace, run } from "./command.js";
import { endedScheduledRuns } from "./ended-scheduled-runs.js";
import { startService } from "./service.js";

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

test("what was spent is told by a column of the sheets", async () => {
  const service = await startService({ balance: 100 });
  const place = newPlace();
  const rows =
    "id,model,prompt,Client\na,plain-image,a cup,Kiln & Co\nb,plain-image,a jar,Kiln & Co\nc,plain-image,a pot,\n";
  place.write("set.csv", rows);
  expect((await run(place, ["run", "set.csv", "--yes"], service)).code).toBe(0);
  const by = JSON.parse(
    (await run(place, ["report", "--since", "2000-01-01", "--by", "client", "--json"])).stdout,
  );
  expect(by.by).toEqual({
    column: "client",
    groups: [
      { value: "Kiln & Co", tasks: 2, credits: 4 },
      { value: "", tasks: 1, credits: 2 },
    ],
  });
  expect(by.totals.credits.spent).toBe(6);
  const told = await run(place, ["report", "--since", "2000-01-01", "--by", "client"]);
  expect(told.stdout).toMatch(/^client +tasks +credits\nKiln & Co +2 +4\n\(empty\) +1 +2$/m);
  const since = ["report", "--since", "2000-01-01", "--by"];
  expect(await run(place, [...since, "Clinet"])).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining(
      '--by names "Clinet", which no row of these runs has; did you mean "Client"?',
    ),
  });
  expect((await run(place, [...since, "model"])).stdout).toMatch(/^plain-image +3 +6$/m);
});
