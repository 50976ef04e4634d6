import { describe, expect, test } from "vitest";
import { credits, noCredits } from "../../src/core/money.js";
import { summarise, summaryJson } from "../../src/report/summary.js";
import { countsOf, runFacts } from "./facts.js";

describe("the closing summary", () => {
  test("shows the outcome of a run in 100 columns", () => {
    expect(summarise(runFacts, { width: 100, colour: false })).toMatchInlineSnapshot(`
      "demo, run 3
      archived  20 of 26 items
      failed    4
                3 × moderation: the prompt was refused (cover-1, cover-2, cover-4)
                1 × provider: no capacity (cover-3)
      held      1, paid for, waiting for your decision
                1 × the POST was cut off (clip-9)
                clip-9: POST 2026-11-21 02:42:59 UTC, answer 502, body 3f2a91c40b7d, task t_1, provider's
                task ext-7
      overdue   1, still at the service after 10 minutes; never submitted again
                1 × still processing (clip-3)
      dropped   2, not in the manifest, skipped, or cancelled
      credits   112.5 spent, 4 for 1 task at the service, up to 4 for 1 request in doubt, 0.25 left
      requests  58, 2.9 for each archived item
      time      37.2s
      files     20 files, 41.2 MB
      folder    outputs/demo
      Ended early: out of credits (balance 0); top up and run \`bulkgen resume\`
      Next: bulkgen resolve clip-9 --adopt ID"
    `);
  });

  test("fits into 60 columns", () => {
    expect(summarise(runFacts, { width: 60, colour: false })).toMatchInlineSnapshot(`
      "demo, run 3
      archived  20 of 26 items
      failed    4
                3 × moderation: the prompt was refused (cover-1,
                cover-2, cover-4)
                1 × provider: no capacity (cover-3)
      held      1, paid for, waiting for your decision
                1 × the POST was cut off (clip-9)
                clip-9: POST 2026-11-21 02:42:59 UTC, answer 502,
                body 3f2a91c40b7d, task t_1, provider's task ext-7
      overdue   1, still at the service after 10 minutes; never
                submitted again
                1 × still processing (clip-3)
      dropped   2, not in the manifest, skipped, or cancelled
      credits   112.5 spent, 4 for 1 task at the service, up to 4
                for 1 request in doubt, 0.25 left
      requests  58, 2.9 for each archived item
      time      37.2s
      files     20 files, 41.2 MB
      folder    outputs/demo
      Ended early: out of credits (balance 0); top up and run
      \`bulkgen resume\`
      Next: bulkgen resolve clip-9 --adopt ID"
    `);
  });

  test("of a run in which all went well is short", () => {
    const facts = {
      ...runFacts,
      counts: countsOf({ archived: 1 }),
      failures: [],
      held: [],
      stops: [],
      pending: noCredits,
      atService: noCredits,
      tasks: 0,
      inDoubt: 0,
      nextStep: null,
      made: 1,
      files: 1,
    };
    expect(summarise(facts)).toMatchInlineSnapshot(`
      "demo, run 3
      archived  1 of 1 item
      credits   112.5 spent, 0.25 left
      requests  58, 58 for each archived item
      time      37.2s
      files     1 file, 41.2 MB
      folder    outputs/demo"
    `);
  });

  test("groups reasons, the most frequent first, and counts what it does not name", () => {
    const failures = Array.from({ length: 30 }, (_, index) => ({
      rowId: `row-${index}`,
      kind: "provider" as const,
      reason: index < 10 ? "busy" : `reason ${index}`,
    }));
    const lines = summarise({ ...runFacts, counts: countsOf({ failed: 30 }), failures, held: [] }).split(
      "\n",
    );
    expect(lines[3]).toBe("          10 × provider: busy (row-0, row-1, row-2, row-3, row-4 and 5 more)");
    expect(lines[11]).toBe("          13 × other reasons");
  });

  test("of a run without files or a balance says so", () => {
    const text = summarise({
      ...runFacts,
      counts: countsOf({ planned: 2 }),
      made: 0,
      files: 0,
      bytes: 0,
      left: null,
      lastLeft: null,
      requests: 1,
    });
    expect(text).toContain("archived   0 of 2 items\nto submit  2\n");
    expect(text).toContain(
      "credits    112.5 spent, 4 for 1 task at the service, up to 4 for 1 request in doubt\nrequests   1\n",
    );
    expect(text).toContain("files      none\n");
  });

  test("says about how much is left when the balance could not be read at the end", () => {
    const text = summarise({ ...runFacts, left: null });
    expect(text).toContain(
      "credits   112.5 spent, 4 for 1 task at the service, up to 4 for 1 request in doubt, about 0.25 left\n",
    );
    expect(summaryJson({ ...runFacts, left: null }).credits).toMatchObject({ left: null });
  });

  test("P6: lists lost requests whose items continued separately from open requests", () => {
    const { evidence } = runFacts.held[0]!;
    const lost = [{ rowId: "cover-7", reason: "its item was skipped or cancelled", evidence }];
    const facts = { ...runFacts, lost, lostCredits: credits(2.5) };
    const text = summarise(facts, { width: 400, colour: false });
    expect(text).toContain(
      "112.5 spent, 4 for 1 task at the service, up to 4 for 1 request in doubt, up to 2.5 lost, 0.25 left",
    );
    expect(text).toMatch(/^lost +1 request, possibly charged, task id never received$/m);
    expect(text).toMatch(/^ +1 × its item was skipped or cancelled \(cover-7\)$/m);
    expect(text).toMatch(/^ +cover-7: POST 2026-11-21 02:42:59 UTC, answer 502/m);
    expect(summaryJson(facts)).toMatchObject({
      credits: { pending: 8, lost: 2.5 },
      lost: [{ rowId: "cover-7" }],
    });
  });

  test("compares the forecast with the run alone, not with the time that the user took to agree", () => {
    const forecast = { requests: 49, ms: 31_000, binds: "generation", larger: null } as const;
    const text = summarise({ ...runFacts, forecast });
    expect(text).toMatch(/^time +37\.2s$/m);
    expect(text).toMatch(/^forecast +49 requests, 30s; it took 58 requests, 30s$/m);
  });

  test("for programs has credits as numbers", () => {
    expect(summaryJson(runFacts)).toMatchObject({
      job: "demo",
      run: 3,
      exit: 7,
      exitName: "credits",
      elapsedMs: 37_240,
      bytes: 41_200_000,
      requestsPerItem: 2.9,
      credits: { spent: 112.5, pending: 8, left: 0.25 },
      nextStep: "bulkgen resolve clip-9 --adopt ID",
      held: [{ rowId: "clip-9", sentAt: "2026-11-21T02:42:59.000Z", status: 502, taskId: "t_1" }],
      overdue: [{ rowId: "clip-3", reason: "still processing" }],
      nextPollAt: "2026-11-21T03:00:01.000Z",
    });
    expect(summaryJson({ ...runFacts, made: 0, left: null })).toMatchObject({
      credits: { left: null },
      requestsPerItem: null,
    });
  });
});

test("what was archived before is said not to be paid again", () => {
  const counts = countsOf({ archived: 3 });
  expect(summarise({ ...runFacts, counts, before: 2 })).toContain(
    "3 of 3 items, 2 of them before, not paid again",
  );
  expect(summarise({ ...runFacts, counts, before: 3 })).toContain(
    "3 of 3 items, all of them before, not paid again",
  );
  const text = summarise({ ...runFacts, counts, before: 3, made: 0, files: 0, requests: 3 });
  expect(text).toMatch(/^requests +3$/m);
  expect(text).toMatch(/^files +none new$/m);
});

test("P8: a difference between the counter and the spend log is shown, agreement is not", () => {
  const closed = { counted: credits(112.5), known: credits(112.5) };
  expect(summarise({ ...runFacts, creditCheck: closed })).toBe(summarise(runFacts));
  const open = { counted: credits(116.5), known: credits(112.5) };
  expect(summarise({ ...runFacts, creditCheck: open })).toContain(
    "the service counts 116.5 used, bulkgen counts 112.5",
  );
});
