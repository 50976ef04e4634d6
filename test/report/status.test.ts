import { describe, expect, test } from "vitest";
import { itemStates } from "../../src/core/item.js";
import { credits, noCredits } from "../../src/core/money.js";
import { runJson, type StatusFacts, statusText } from "../../src/report/status.js";

const none = Object.fromEntries(itemStates.map((state) => [state, 0])) as StatusFacts["counts"];
const facts: StatusFacts = {
  run: 3,
  job: "demo",
  state: "finished",
  alive: false,
  startedAt: Date.UTC(2026, 10, 21, 2, 42, 59),
  endedAt: Date.UTC(2026, 10, 21, 2, 50, 1),
  exit: "held",
  resume: null,
  holder: null,
  counts: { ...none, archived: 24, held: 1, failed: 1 },
  spent: credits(112),
  pending: credits(4),
  requests: 58,
  folder: "outputs/demo",
  trouble: [{ rowNumber: 9, rowId: "cover-9", state: "held", reason: "the POST\nwas cut off" }],
};

describe("status", () => {
  test("tells where a run stands", () => {
    expect(statusText(facts)).toMatchInlineSnapshot(`
      "run 3 of demo: finished, begun 2026-11-21 02:42 UTC, ended as held
        items     1 held, 1 failed, 24 archived
        credits   112 spent, up to 4 more open
        requests  58
        files     outputs/demo
        held: row 9 (cover-9): the POST was cut off"
    `);
  });

  test("calls a run whose process is gone cut off, and says what to do", () => {
    const resume = "bulkgen resume --sandbox";
    const text = statusText({
      ...facts,
      ...{ state: "running", exit: null, pending: noCredits, counts: none, resume },
    });
    expect(text).toContain(
      "run 3 of demo: cut off (`bulkgen resume --sandbox` goes on), begun 2026-11-21 02:42 UTC\n",
    );
    expect(text).toContain("  items     none\n  credits   112 spent\n");
    expect(statusText({ ...facts, state: "running", alive: true })).toContain("run 3 of demo: running,");
  });

  test("names the first items in trouble and counts the others", () => {
    const trouble = Array.from({ length: 23 }, (_, index) => ({
      ...facts.trouble[0]!,
      rowNumber: index + 2,
    }));
    expect(
      statusText({ ...facts, trouble })
        .split("\n")
        .slice(-2),
    ).toEqual(["  held: row 21 (cover-9): the POST was cut off", "  and 3 more"]);
  });

  test("names the process that holds the workspace, and whether it works on this run", () => {
    const holder = { pid: 4711, host: "studio", since: Date.UTC(2026, 10, 21, 2, 42) };
    const alive = statusText({ ...facts, state: "running", alive: true, holder });
    expect(alive).toContain("  held by   process 4711 on studio, since 2026-11-21 02:42 UTC\n");
    expect(statusText({ ...facts, holder })).toContain("02:42 UTC, for another run\n");
  });

  test("gives programs credits as numbers and times as text", () => {
    expect(runJson({ ...facts, state: "running", spent: credits(1.25) })).toMatchObject({
      run: 3,
      counts: { archived: 24 },
      startedAt: "2026-11-21T02:42:59.000Z",
      endedAt: "2026-11-21T02:50:01.000Z",
      cutOff: true,
      holder: null,
      credits: { spent: 1.25, pending: 4 },
    });
  });
});
