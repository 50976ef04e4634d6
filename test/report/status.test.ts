import { describe, expect, test } from "vitest";
import { itemStates } from "../../src/core/item.js";
import { credits, noCredits } from "../../src/core/money.js";
import { type StatusFacts, statusText } from "../../src/report/status.js";

const none = Object.fromEntries(itemStates.map((state) => [state, 0])) as StatusFacts["counts"];
const facts: StatusFacts = {
  run: 3,
  job: "demo",
  state: "finished",
  alive: false,
  startedAt: Date.UTC(2026, 10, 21, 2, 42, 59),
  exit: "held",
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
    const text = statusText({ ...facts, state: "running", exit: null, pending: noCredits, counts: none });
    expect(text).toContain("run 3 of demo: cut off (run `bulkgen resume`), begun 2026-11-21 02:42 UTC\n");
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
});
