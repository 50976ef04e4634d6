import { expect, test } from "vitest";
import { runsTable } from "../../src/report/status.js";
import { endedRun, finishedRun, leftOf, lineFacts } from "./run-fixture.js";

const finished = { ...lineFacts, run: { ...finishedRun, id: 1 }, resume: null, left: null };
const crashedRun = { ...endedRun, id: 2, state: "running", endedAt: null, exit: null, ending: null } as const;
const crashed = { ...lineFacts, run: crashedRun, left: leftOf(crashedRun) };
const runs = [finished, crashed, lineFacts];

test("every run is a line with its manifest, and what is not done says why it stopped and what to type", () => {
  expect(runsTable(runs, "/somewhere")).toMatchInlineSnapshot(`
    "run  job   manifest       state        started           ended             archived  failed  held  credits  exit
      1  demo  jobs/demo.csv  finished     2026-11-21 02:42  2026-11-21 02:50        24       2     0   112 +4  0 done
      2  demo  jobs/demo.csv  crashed      2026-11-21 02:42                          24       2     0   112 +4
      3  demo  jobs/demo.csv  interrupted  2026-11-21 02:42  2026-11-21 02:50        24       2     0   112 +4  6 cap
    run 2: \`bulkgen resume\` continues it
    run 3: ended early: the cap of 140 credits is reached
    run 3: 5 items are left: \`bulkgen resume 3 --max-credits 160\`"
  `);
});

test("on 60 columns a run has a few short lines, and no word is broken", () => {
  const text = runsTable(runs, "/somewhere", { width: 60, colour: false });
  for (const row of text.split("\n")) expect(row.length).toBeLessThanOrEqual(60);
  expect(text).toMatchInlineSnapshot(`
    "run 1  demo: finished, exit 0 done
           jobs/demo.csv
           started 2026-11-21 02:42, ended 2026-11-21 02:50
           24 archived, 2 failed
           112 spent, up to 4 for 1 request in doubt
    run 2  demo: crashed
           jobs/demo.csv
           started 2026-11-21 02:42
           24 archived, 2 failed
           112 spent, up to 4 for 1 request in doubt
           \`bulkgen resume\` continues it
    run 3  demo: interrupted, exit 6 cap
           jobs/demo.csv
           started 2026-11-21 02:42, ended 2026-11-21 02:50
           24 archived, 2 failed
           112 spent, up to 4 for 1 request in doubt
           ended early: the cap of 140 credits is reached
           5 items are left: \`bulkgen resume 3 --max-credits
           160\`"
  `);
});
