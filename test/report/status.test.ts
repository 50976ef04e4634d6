import { describe, expect, test } from "vitest";
import { itemStates } from "../../src/core/item.js";
import { credits, noCredits } from "../../src/core/money.js";
import type { RunStatus } from "../../src/job/workspace/status.js";
import { statusJson, statusText } from "../../src/report/status.js";

const none = Object.fromEntries(itemStates.map((state) => [state, 0])) as RunStatus["counts"];
const facts: RunStatus = {
  run: 3,
  job: "demo",
  state: "finished",
  alive: false,
  startedAt: Date.UTC(2026, 10, 21, 2, 42, 59),
  endedAt: Date.UTC(2026, 10, 21, 2, 50, 1),
  exit: "held",
  resume: null,
  lockOwner: null,
  counts: { ...none, archived: 24, held: 1, failed: 1 },
  spent: credits(112),
  pending: credits(4),
  lost: [],
  lostCredits: noCredits,
  requests: 58,
  folder: "outputs/demo",
  forecast: { requests: 53, ms: 400_000, binds: "minute", larger: { plan: "Pro", ms: 200_000 } },
  trouble: [
    {
      rowNumber: 9,
      rowId: "cover-9",
      state: "held",
      reason: "the POST\nwas cut off",
      evidence: {
        sentAt: Date.UTC(2026, 10, 21, 2, 43),
        status: null,
        bodySha256: "3f2a91c40b7d".padEnd(64, "0"),
        taskId: null,
        externalTaskId: null,
      },
      nextAt: null,
    },
  ],
};

describe("status", () => {
  test("shows the status of a run", () => {
    expect(statusText(facts)).toMatchInlineSnapshot(`
      "run       3 of demo: finished
      started   2026-11-21 02:42 UTC
      ended     2026-11-21 02:50 UTC as held (exit 10)
      items     1 held, 1 failed, 24 archived
      credits   112 spent, up to 4 more open
      requests  58
      forecast  53 requests, 6m 30s; it took 58 requests, 7m 2s
      files     outputs/demo
      held      row 9 (cover-9): the POST was cut off; POST 2026-11-21 02:43:00 UTC, no answer, body 3f2a91c40b7d"
    `);
  });

  test("P6: lists lost requests whose items continued separately from open requests", () => {
    const { evidence } = facts.trouble[0]!;
    const lost = [{ rowId: "cover-7", reason: "its item was submitted again", evidence }];
    const told = { ...facts, lost, lostCredits: credits(2.5) };
    const text = statusText(told, { width: 400, colour: false });
    expect(text).toContain("112 spent, up to 4 more open, up to 2.5 lost");
    expect(text).toMatch(
      /^lost +cover-7: its item was submitted again; POST 2026-11-21 02:43:00 UTC, no answer/m,
    );
    expect(statusJson(told)).toMatchObject({
      credits: { spent: 112, pending: 4, lost: 2.5 },
      lost: [{ rowId: "cover-7", status: null, sentAt: "2026-11-21T02:43:00.000Z" }],
    });
  });

  test("shows when a run in progress should end, and where that is an estimate", () => {
    const guessed = { models: ["voice"], areAll: false, sandbox: false };
    const running = { ...facts, state: "running", endedAt: null, exit: null, trouble: [] } as const;
    const line = (forecast: typeof facts.forecast) =>
      statusText({ ...running, forecast }, { width: 400, colour: false })
        .split("\n")
        .find((text) => text.startsWith("forecast"));
    const known = { requests: 53, ms: 400_000, larger: null, binds: "generation" } as const;
    expect(line(known)).toBe(
      "forecast  about 53 requests, 6m 30s, limited by generation time; until 2026-11-21 02:49 UTC",
    );
    expect(line({ ...known, guessed })).toBe(
      "forecast  about 53 requests, 6m 30s, limited by generation time; rough estimate for voice (no history yet); until 2026-11-21 02:49 UTC",
    );
  });

  test("fits into 60 columns, with the evidence of what is held and the next poll of what is overdue", () => {
    const late = { ...facts.trouble[0]!, rowId: "clip-3", state: "overdue", reason: "still processing" };
    const trouble = [facts.trouble[0]!, { ...late, nextAt: Date.UTC(2026, 10, 21, 3, 0, 1) }];
    const text = statusText(
      { ...facts, trouble, state: "interrupted", resume: "bulkgen resume" },
      { width: 60, colour: false },
    );
    expect(text.split("\n").filter((line) => [...line].length > 60)).toEqual([]);
    expect(text).toMatchInlineSnapshot(`
      "run       3 of demo: interrupted
      started   2026-11-21 02:42 UTC
      ended     2026-11-21 02:50 UTC as held (exit 10)
      items     1 held, 1 failed, 24 archived
      credits   112 spent, up to 4 more open
      requests  58
      forecast  53 requests, 6m 30s; it took 58 requests, 7m 2s
      files     outputs/demo
      held      row 9 (cover-9): the POST was cut off; POST
                2026-11-21 02:43:00 UTC, no answer, body
                3f2a91c40b7d
      overdue   row 9 (clip-3): still processing; POST 2026-11-21
                02:43:00 UTC, no answer, body 3f2a91c40b7d; polled
                again after 2026-11-21 03:01 UTC
      next      \`bulkgen resume\` continues it"
    `);
  });

  test("calls a run whose process is gone crashed, and says what to do", () => {
    const resume = "bulkgen resume --sandbox";
    const text = statusText({
      ...facts,
      state: "running",
      exit: null,
      pending: noCredits,
      counts: none,
      resume,
    });
    expect(text).toMatch(/^run +3 of demo: crashed\nstarted +2026-11-21 02:42 UTC\n/);
    expect(text).toMatch(/^next +`bulkgen resume --sandbox` continues it$/m);
    expect(text).toMatch(/^items +none\ncredits +112 spent\n/m);
    expect(statusText({ ...facts, state: "running", alive: true })).toMatch(/^run +3 of demo: running\n/);
  });

  test("names the first items in trouble and counts the others", () => {
    const trouble = Array.from({ length: 23 }, (_, index) => ({
      ...facts.trouble[0]!,
      rowNumber: index + 2,
    }));
    const [last, rest] = statusText({ ...facts, trouble })
      .split("\n")
      .slice(-2);
    expect(last).toMatch(/^held +row 21 \(cover-9\): the POST was cut off;/);
    expect(rest).toMatch(/^ +and 3 more: `bulkgen status --json` has every one$/);
  });

  test("names the process that holds the workspace, and whether it works on this run", () => {
    const lockOwner = { pid: 4711, host: "studio", since: Date.UTC(2026, 10, 21, 2, 42) };
    const alive = statusText({ ...facts, state: "running", alive: true, lockOwner });
    expect(alive).toMatch(/^locked by +process 4711 on studio, since 2026-11-21 02:42 UTC$/m);
    expect(statusText({ ...facts, lockOwner })).toContain("02:42 UTC, for another run\n");
  });

  test("gives programs credits as numbers and times as text", () => {
    expect(statusJson({ ...facts, state: "running", spent: credits(1.25) })).toMatchObject({
      run: 3,
      counts: { archived: 24 },
      startedAt: "2026-11-21T02:42:59.000Z",
      endedAt: "2026-11-21T02:50:01.000Z",
      crashed: true,
      lockOwner: null,
      credits: { spent: 1.25, pending: 4 },
      trouble: [{ rowId: "cover-9", sentAt: "2026-11-21T02:43:00.000Z", status: null, nextAt: null }],
    });
  });
});
