import { expect, test } from "vitest";
import { credits, noCredits } from "../../src/core/money.js";
import type { RunLine } from "../../src/job/workspace/status.js";
import { runsTable } from "../../src/report/status.js";

const line: RunLine = {
  run: 1,
  job: "autumn",
  state: "finished",
  alive: false,
  lockOwner: null,
  startedAt: Date.UTC(2026, 10, 21, 2, 42, 59),
  endedAt: Date.UTC(2026, 10, 21, 2, 50),
  exit: "failed",
  resume: null,
  spent: credits(12.5),
  pending: noCredits,
  lostCredits: noCredits,
  requests: 20,
  archived: 24,
  failed: 2,
  held: 0,
};

const cut: RunLine = {
  ...line,
  run: 2,
  state: "running",
  endedAt: null,
  exit: null,
  resume: "bulkgen resume",
  pending: credits(4),
};

test("every run is a line, and what is not finished says how to go on", () => {
  expect(runsTable([line, cut])).toMatchInlineSnapshot(`
    "run  job     state     started           ended             archived  failed  held  credits  exit
      1  autumn  finished  2026-11-21 02:42  2026-11-21 02:50        24       2     0     12.5  5 failed
      2  autumn  crashed   2026-11-21 02:42                          24       2     0  12.5 +4
    run 2: \`bulkgen resume\` continues it"
  `);
});

test("on 60 columns a run has a few short lines, and no word is broken", () => {
  const text = runsTable([line, cut], { width: 60, colour: false });
  for (const row of text.split("\n").filter((row) => !row.includes("`")))
    expect(row.length).toBeLessThanOrEqual(60);
  expect(text).toMatchInlineSnapshot(`
    "run 1  autumn: finished, exit 5 failed
           started 2026-11-21 02:42, ended 2026-11-21 02:50
           24 archived, 2 failed
           12.5 credits
    run 2  autumn: crashed
           started 2026-11-21 02:42
           24 archived, 2 failed
           12.5 credits, up to 4 more open
    run 2: \`bulkgen resume\` continues it"
  `);
});
