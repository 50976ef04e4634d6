import { describe, expect, test } from "vitest";
import type { FailureKind } from "../../src/core/failure.js";
import { credits, noCredits } from "../../src/core/money.js";
import { nextStep } from "../../src/report/next-step.js";
import { changedFlags } from "../../src/report/run-options.js";
import { statusJson, statusText } from "../../src/report/status.js";
import type { RunStatus } from "../../src/workspace/status.js";
import { runStart } from "../store/item-fixture.js";
import { endedRun, finishedRun, leftOf, noItems, spentNow } from "./run-fixture.js";

const facts: RunStatus = {
  ...spentNow,
  run: { ...finishedRun, exit: "held" },
  now: 0,
  alive: false,
  reason: null,
  resume: null,
  left: leftOf({ ...finishedRun, exit: "held" }, { planned: 0, held: 1 }),
  lockOwner: null,
  counts: { ...noItems, archived: 24, held: 1, failed: 1 },
  results: null,
  folder: "/somewhere/outputs/demo",
  endsAt: null,
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

/** Where the user is. */
const here = "/somewhere";
const begun = { ...endedRun, state: "running", endedAt: null, exit: null, ending: null } as const;
const wide = { width: 400, colour: false };

describe("status", () => {
  test("shows the status of a run", () => {
    expect(statusText(facts, here)).toMatchInlineSnapshot(`
      "run       3 of demo (jobs/demo.csv): finished
      started   2026-11-21 02:42 UTC by anna on studio-3
      options   --max-credits 140 --until 06:00
      ended     2026-11-21 02:50 UTC as held (exit 10)
      items     24 archived, 1 failed, 1 held
      credits   112 spent, up to 4 for 1 request in doubt
      requests  58
      forecast  53 requests, 6m 30s; it took 58 requests, 7m 2s
      files     outputs/demo
      held      row 9 (cover-9): the POST was cut off; POST 2026-11-21 02:43:00 UTC, no answer, body 3f2a91c40b7d
      next      find the tasks of the held items at the service, then \`bulkgen resolve ITEM --adopt TASK\`; or pay for all of them again with \`bulkgen resolve --all --resubmit\`, or drop them with --skip"
    `);
  });

  test("says what somebody else's run is, why it stopped, and the whole command that continues it", () => {
    const stopped = {
      ...facts,
      run: endedRun,
      resume: "bulkgen resume",
      left: leftOf(endedRun),
      trouble: [],
    };
    const text = statusText(stopped, here);
    expect(text).toMatch(/^run +3 of demo \(jobs\/demo\.csv\): interrupted$/m);
    expect(text).toMatch(/^started +2026-11-21 02:42 UTC by anna on studio-3$/m);
    expect(text).toMatch(/^options +--max-credits 140 --until 06:00$/m);
    expect(text).toMatch(/^why +the cap of 140 credits is reached$/m);
    expect(text).toMatch(/^next +5 items are left: `bulkgen resume 3 --max-credits 160`$/m);
    expect(statusJson(stopped)).toMatchObject({
      manifest: "/somewhere/jobs/demo.csv",
      beganBy: { user: "anna", host: "studio-3" },
      options: ["--max-credits 140", "--until 06:00"],
      stops: ["the cap of 140 credits is reached"],
      nextStep: "5 items are left: `bulkgen resume 3 --max-credits 160`",
    });
  });

  test("only options that are not the defaults are shown", () => {
    const { unsettledMax: _, ...usual } = runStart.options;
    expect(changedFlags(usual)).toEqual([]);
    const changed = {
      ...usual,
      modelCaps: { "film-8": credits(20) },
      maxFailures: { percent: 5 },
      maxDurationMs: 5_400_000,
      orphanCredits: credits(8),
      sandbox: true,
    };
    expect(changedFlags(changed)).toEqual([
      "--max-credits-per-model film-8=20",
      "--max-failures 5%",
      "--max-duration 90m",
      "--orphans resubmit",
      "--orphan-credits 8",
      "--sandbox",
    ]);
  });

  test("tells tasks at the service, which have a price, from requests that may have been charged", () => {
    const open = { ...facts, pending: credits(84), atService: credits(80), tasks: 20, inDoubt: 1 };
    expect(statusText(open, here)).toMatch(
      /^credits +112 spent, 80 for 20 tasks at the service, up to 4 for 1 request in doubt$/m,
    );
    expect(statusText({ ...open, inDoubt: 3, inFlight: 2 }, here)).toMatch(
      /, up to 4 for 2 requests in flight and 1 request in doubt$/m,
    );
    const merely = { ...open, pending: credits(80), inDoubt: 0 };
    expect(statusText(merely, here)).toMatch(/^credits +112 spent, 80 for 20 tasks at the service$/m);
  });

  test("P6: lists lost requests whose items continued separately from open requests", () => {
    const { evidence } = facts.trouble[0]!;
    const lost = [{ rowId: "cover-7", reason: "its item was submitted again", evidence }];
    const told = { ...facts, lost, lostCredits: credits(2.5) };
    const text = statusText(told, here, wide);
    expect(text).toContain("112 spent, up to 4 for 1 request in doubt, up to 2.5 lost");
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
    const running = {
      ...facts,
      run: begun,
      alive: true,
      left: null,
      trouble: [],
      endsAt: Date.UTC(2026, 10, 21, 2, 49),
    };
    const line = (forecast: typeof facts.forecast) =>
      statusText({ ...running, forecast }, here, wide)
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
    const late = {
      ...facts.trouble[0]!,
      rowId: "clip-3",
      state: "overdue" as const,
      reason: "still processing",
    };
    const trouble = [facts.trouble[0]!, { ...late, nextAt: Date.UTC(2026, 10, 21, 3, 0, 1) }];
    const text = statusText(
      { ...facts, trouble, run: endedRun, resume: "bulkgen resume", left: leftOf(endedRun) },
      here,
      { width: 60, colour: false },
    );
    expect(text.split("\n").filter((line) => [...line].length > 60)).toEqual([]);
    expect(text).toMatchInlineSnapshot(`
      "run       3 of demo (jobs/demo.csv): interrupted
      started   2026-11-21 02:42 UTC by anna on studio-3
      options   --max-credits 140 --until 06:00
      ended     2026-11-21 02:50 UTC as cap (exit 6)
      why       the cap of 140 credits is reached
      items     24 archived, 1 failed, 1 held
      credits   112 spent, up to 4 for 1 request in doubt
      requests  58
      forecast  53 requests, 6m 30s; it took 58 requests, 7m 2s
      files     outputs/demo
      held      row 9 (cover-9): the POST was cut off; POST
                2026-11-21 02:43:00 UTC, no answer, body
                3f2a91c40b7d
      overdue   row 9 (clip-3): still processing; POST 2026-11-21
                02:43:00 UTC, no answer, body 3f2a91c40b7d; polled
                again after 2026-11-21 03:01 UTC
      next      5 items are left: \`bulkgen resume 3 --max-credits
                160\`"
    `);
  });

  test("calls a run whose process is gone crashed, and says what to do", () => {
    const left = leftOf({ ...begun, options: { ...begun.options, sandbox: true } });
    const crashed = { ...facts, ...left, left, resume: "bulkgen resume --sandbox" };
    const text = statusText({ ...crashed, pending: noCredits, inDoubt: 0, counts: noItems }, here);
    expect(text).toMatch(/^run +3 of demo \(jobs\/demo\.csv\): crashed\nstarted +2026-11-21 02:42 UTC /);
    expect(text).toMatch(/^next +`bulkgen resume --sandbox` continues it$/m);
    expect(text).toMatch(/^items +none\ncredits +112 spent\n/m);
    expect(text).toMatch(/^forecast +about 53 requests.*$/m);
    expect(text).not.toContain("; until");
    expect(statusText({ ...facts, run: begun, alive: true }, here)).toMatch(/^run +3 of demo .*: running\n/);
  });

  test("of a run whose items a later run has says how it left them", () => {
    const over = { ...facts, counts: noItems, results: noItems, trouble: [], left: null };
    expect(statusText(over, here)).toMatch(/^items +a later run of demo followed$/m);
    const results = { ...noItems, archived: 24, failed: 1 };
    expect(statusText({ ...over, results }, here)).toMatch(
      /^items +a later run of demo followed; this one left 24 archived, 1 failed$/m,
    );
  });

  test("names the first items in trouble and counts the others", () => {
    const trouble = Array.from({ length: 23 }, (_, index) => ({
      ...facts.trouble[0]!,
      rowNumber: index + 2,
    }));
    const [last, rest] = statusText({ ...facts, trouble, left: null }, here)
      .split("\n")
      .slice(-2);
    expect(last).toMatch(/^held +row 21 \(cover-9\): the POST was cut off;/);
    expect(rest).toMatch(/^ +and 3 more: `bulkgen status 3 --json` has every one$/);
  });

  test("does not give Ctrl-C as the reason for a run that was interrupted", () => {
    const ending = { ...endedRun.ending!, reasons: ["interrupted", "the disk is full"] };
    const run = { ...endedRun, exit: "interrupted" as const, ending };
    const text = statusText({ ...facts, run, left: leftOf(run) }, here);
    expect(text.match(/^why .*$/gm)).toEqual(["why       the disk is full"]);
  });

  test("says that submitted tasks keep running only where there are any", () => {
    const run = { ...endedRun, exit: "interrupted" as const };
    expect(nextStep(leftOf(run, { planned: 5 }))).toBe("`bulkgen resume` continues");
    const running = "`bulkgen resume` continues; submitted tasks keep running at the service";
    expect(nextStep(leftOf(run, { processing: 2 }))).toBe(running);
    expect(nextStep(leftOf({ ...run, state: "paused" }, { overdue: 1 }))).toBe(running);
  });

  test("names all that waits, whatever the run ended with, the worst first", () => {
    const run = { ...endedRun, exit: "held" as const };
    const left = {
      ...leftOf(run, { planned: 0, held: 11, unknown: 32, failed: 2 }),
      decidesAt: Date.UTC(2026, 10, 21, 3, 5),
      awaiting: ["cup"],
      failureKinds: ["provider"] as const,
    };
    expect(nextStep(left)?.split("; also, ")).toEqual([
      expect.stringMatching(/^find the tasks of the held items at the service, then/),
      "`bulkgen resume` after 2026-11-21 03:05 UTC decides whether 32 lost requests were charged",
      "look at cup, then `bulkgen approve cup` or `bulkgen reject cup --again`",
      "`bulkgen retry 3` submits the failed items again",
    ]);
    const poor = { ...left, run: { ...run, exit: "credits" as const } };
    expect(nextStep(poor)?.split("; also, ").slice(0, 2)).toEqual([
      "top up, then `bulkgen resume`",
      "11 held items may have been paid for: `bulkgen status 3` says how to decide about them",
    ]);
  });

  test("names the flags that decide in advance where a service loses many answers", () => {
    const run = { ...finishedRun, exit: "held" as const };
    const advice = (held: number) => nextStep(leftOf(run, { planned: 0, held }));
    expect(advice(5)).toMatch(
      /\. Where a service loses many answers, `--orphans resubmit --orphan-credits N` on /,
    );
    expect(advice(4)).not.toContain("--orphan-credits");
  });

  test("takes answers from the receipts before anybody decides about held items", () => {
    const run = { ...finishedRun, exit: "held" as const };
    const left = { ...leftOf(run, { planned: 0, held: 2 }), heldAnswers: 2 };
    expect(nextStep(left)).toBe(
      "`bulkgen resume` takes the answers of 2 held items from the receipts of this folder, at no cost",
    );
    expect(nextStep({ ...left, heldAnswers: 1 })).toContain("; also, 2 held items may have been paid for");
  });

  test("names an item that waits for approval as it can be pasted", () => {
    const run = { ...finishedRun, exit: "held" as const };
    expect(nextStep({ ...leftOf(run, { planned: 0 }), awaiting: ["red cup"] })).toBe(
      "look at red cup, then `bulkgen approve 'red cup'` or `bulkgen reject 'red cup' --again`",
    );
  });

  test("says of blocked items which command shows what they wait for, with the run and --sandbox", () => {
    const { options } = finishedRun;
    const run = { ...finishedRun, exit: "held" as const, options: { ...options, sandbox: true } };
    expect(nextStep(leftOf(run, { planned: 0, blocked: 2 }))).toBe(
      "`bulkgen status 3 --sandbox` says what the blocked items wait for; `bulkgen resume --sandbox` tries them again",
    );
  });

  test("says how items are submitted again that failed at the provider, because run leaves unchanged rows", () => {
    const run = { ...finishedRun, exit: "failed" as const };
    const advice = (...failureKinds: FailureKind[]) =>
      nextStep({ ...leftOf(run, { planned: 0, failed: 2 }), failureKinds }, here);
    const unread = (unreadInputs: "files" | "addresses") =>
      nextStep({ ...leftOf(run, { failed: 2 }), failureKinds: ["input"], unreadInputs }, here);
    expect(unread("files")).toMatch(
      /^fix the failed rows, then .*\. If --publish was wrong, `bulkgen retry 3 --only input --publish WHERE` submits them again$/,
    );
    expect(unread("addresses")).toMatch(
      /\. If the rows are right and their addresses can be read now, `bulkgen retry 3 --only input` submits them again$/,
    );
    const fix = /^fix the failed rows, then `bulkgen run [^`]+`; archived items are never charged twice$/;
    expect(advice("moderation", "input")).toMatch(fix);
    const ended = (until: string) =>
      nextStep({
        ...leftOf({ ...run, options: { ...run.options, until } }, { planned: 0, failed: 1 }),
        failureKinds: ["input"],
      });
    expect(ended("06:00")).toContain(" --until 06:00");
    expect(ended("2026-11-26T06:00:00.000Z")).not.toContain("--until");
    expect(advice("provider", "unknown")).toBe("`bulkgen retry 3` submits the failed items again");
    const [retry, rest] = advice("provider", "moderation")?.split("; for the others, ") ?? [];
    expect(retry).toBe("`bulkgen retry 3 --only provider` submits again what may succeed as it is");
    expect(rest).toMatch(fix);
  });

  test("names the folder in which its advice is to be typed, where another workspace would be found", () => {
    expect(statusText(facts, here, wide, "/srv/ads")).toMatch(
      /^next +in \/srv\/ads: find the tasks of the held/m,
    );
    expect(statusText(facts, here, wide)).toMatch(/^next +find the tasks of the held/m);
  });

  test("names the process that holds the workspace, and whether it works on this run", () => {
    const lockOwner = { pid: 4711, host: "studio", since: Date.UTC(2026, 10, 21, 2, 42), run: 2 };
    const alive = statusText({ ...facts, run: begun, alive: true, lockOwner }, here);
    expect(alive).toMatch(/^locked by +process 4711 on studio, since 2026-11-21 02:42 UTC$/m);
    expect(statusText({ ...facts, lockOwner }, here)).toContain("02:42 UTC, for another run\n");
    // It may be about to continue this run, as a worker that stands by does.
    const unsaid = { ...lockOwner, run: null };
    expect(statusText({ ...facts, lockOwner: unsaid }, here)).toContain("02:42 UTC, preparing a run\n");
  });

  test("gives programs credits as numbers and times as text", () => {
    expect(
      statusJson({ ...facts, run: { ...facts.run, state: "running" }, spent: credits(1.25) }),
    ).toMatchObject({
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
