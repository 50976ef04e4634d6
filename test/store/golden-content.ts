import { dirname } from "node:path";
import type { ItemState } from "../../src/core/item.js";
import { credits } from "../../src/core/money.js";
import { openAccounts } from "../../src/store/accounts/accounts.js";
import { openSchedules } from "../../src/store/schedules.js";
import { openWorkspace } from "../../src/store/workspace/workspace.js";
import { ManualClock } from "../manual-clock.js";
import { newItem, runStart } from "./item-fixture.js";

/**
 * What the golden databases hold: something of everything that a released program can have left behind. It is written
 * through the ports, by the program of the version that the file is named after, and is then never changed.
 */

/** The row ids of the golden workspace's open run, and the states in which they were left. */
export const goldenStates: Readonly<Record<string, ItemState>> = {
  planned: "planned",
  submitting: "submitting",
  unknown: "unknown",
  held: "held",
  processing: "processing",
  overdue: "overdue",
  ready: "ready",
  expired: "ready",
  failed: "failed",
  archived: "archived",
};

export const golden = {
  /** When a scheduled run was due. */
  scheduledRun: Date.UTC(2026, 10, 21, 1),
  origin: "https://service.example",
  user: "user-1",
  fingerprint: "fingerprint-1",
  charged: { group: "picture {}", credits: 4.5 },
  /** In the ledger: answered, and never answered. */
  requests: 3,
};

export async function writeGoldenWorkspace(path: string): Promise<void> {
  const clock = new ManualClock();
  const store = openWorkspace({ stateFile: path, root: dirname(path) }, clock);
  const earlier = await store.startRun((await store.job("earlier")).id, runStart);
  await store.setRun(earlier.id, { state: "finished", exit: "done", endedAt: clock.now(), requests: 7 });
  const job = await store.job("demo");
  const run = await store.startRun(job.id, runStart);
  const names = [...Object.keys(goldenStates), "vanished"];
  const items = names.map((id, index) => newItem(id, { position: index }));
  await store.enroll(run.id, items);
  await store.enroll(run.id, items.slice(0, -1));
  const idOf = new Map((await store.items(run.id)).map((item) => [item.rowId, item.id]));
  const item = (name: string) => idOf.get(name) ?? 0;
  const intend = (name: string) =>
    store.intend(item(name), {
      runId: run.id,
      sentAt: clock.now(),
      bodySha256: `body of ${name}`,
      spendLogId: null,
    });
  const accept = async (name: string) => {
    const { id } = await intend(name);
    const outcome = { status: 200, taskId: `task-${name}`, externalTaskId: `x-${name}` };
    await store.conclude(id, "accepted", { ...outcome, charged: credits(4), remaining: credits(96) });
  };
  const complete = async (name: string) => {
    await accept(name);
    const urls = [1, 2].map((number) => `https://files.example/${name}/${number}`);
    const facts = { fetchBy: 0, charged: credits(4), createdAt: "2026-01-01T00:00:00Z", completedAt: null };
    await store.complete(item(name), { ...facts, urls });
  };
  await intend("submitting");
  for (const name of ["unknown", "held"]) {
    await store.conclude((await intend(name)).id, "unanswered", { message: "the connection was lost" });
  }
  await store.apply(item("held"), "undecided", { note: "outcome unknown" });
  await accept("processing");
  await accept("overdue");
  await store.apply(item("overdue"), "window_passed", { nextAt: clock.now() + 1, note: "not finished" });
  await complete("ready");
  await complete("expired");
  await store.expire(item("expired"), "its address answered 403");
  await accept("failed");
  await store.apply(item("failed"), "task_failed", { failureKind: "provider", note: "overloaded" });
  await complete("archived");
  for (const number of [1, 2]) {
    const file = { bytes: 3, sha256: "ab", mime: "image/png", check: "decoded" };
    await store.saved(item("archived"), number, { ...file, file: `archived-${number}.png` });
  }
  await store.setRun(run.id, { state: "interrupted", exit: "interrupted", endedAt: clock.now() });
  await store.close();
}

export async function writeGoldenAccounts(path: string): Promise<void> {
  const clock = new ManualClock();
  const accounts = openAccounts(path, clock);
  const { id } = await accounts.accountOf(golden.origin, golden.fingerprint);
  await accounts.name(id, golden.user);
  await accounts.setLimits(id, { perMinute: 60, perDay: 10_000 });
  for (const endpoint of ["me", "generate", "task"] as const) {
    const caller = { accountId: id, fingerprint: golden.fingerprint };
    const { ticket } = await accounts.reserve(caller, endpoint);
    if (ticket && endpoint !== "task") await accounts.answered(ticket);
  }
  await accounts.listed(id, new Map([["aurora-image", credits(4)]]));
  await accounts.leftOut(id, { "aurora-image": ["style"] });
  await accounts.charged(id, golden.charged.group, credits(golden.charged.credits));
  await accounts.close();
}

export async function writeGoldenSchedules(path: string): Promise<void> {
  const schedules = openSchedules(path, new ManualClock());
  await schedules.add({
    name: "nightly",
    manifest: "jobs/nightly.json",
    cron: "0 2 * * *",
    zone: "Europe/Berlin",
    flags: [["--sandbox"], ["--until", "06:00"]],
    missed: "once",
    seenUntil: 0,
    pausedAt: null,
  });
  await schedules.claim("nightly", golden.scheduledRun, {
    state: "ended",
    startedAt: golden.scheduledRun,
    endedAt: golden.scheduledRun + 1,
    exit: 0,
    run: 1,
    credits: credits(4),
    archived: 1,
    failed: 0,
    held: 0,
    note: "1 of 1 archived",
  });
  schedules.close();
}
