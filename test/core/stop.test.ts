import { expect, test } from "vitest";
import { exitCode } from "../../src/core/exit.js";
import { isOpen, type StepKind, type StopKind, stopTable } from "../../src/core/stop.js";

const kinds = Object.keys(stopTable) as StopKind[];
const steps: readonly StepKind[] = ["submit", "poll", "download"];
const stillOpen = (...stops: StopKind[]) =>
  steps.filter((step) =>
    isOpen(
      step,
      stops.map((kind) => ({ kind, message: "" })),
    ),
  );

test("P7: whatever stops a run, nothing more is bought", () => {
  expect(kinds.filter((kind) => stillOpen(kind).includes("submit"))).toEqual([]);
  expect(stillOpen()).toEqual(steps);
});

test("P15: what was paid for is still downloaded, unless a person or a signal ends the run", () => {
  expect(kinds.filter((kind) => !stillOpen(kind).includes("download"))).toEqual(["interrupted", "paused"]);
});

test("P15: tasks are still polled, unless the service takes no requests of this key now", () => {
  expect(kinds.filter((kind) => !stillOpen(kind).includes("poll"))).toEqual([
    "interrupted",
    "paused",
    "key",
    "subscription",
    "unreachable",
    "day",
    "silence",
  ]);
});

test("several stops close what any of them closes", () => {
  expect(stillOpen("cap", "key")).toEqual(["download"]);
  expect(stillOpen("cap", "credits")).toEqual(["poll", "download"]);
});

test("each stop has the exit code of its reason", () => {
  const codes = Object.fromEntries(kinds.map((kind) => [kind, exitCode(stopTable[kind].exit)]));
  expect(codes).toEqual({
    interrupted: 130,
    paused: 8,
    cancelled: 130,
    key: 3,
    subscription: 3,
    unreachable: 4,
    unread: 4,
    collect: 0,
    agreement: 10,
    credits: 7,
    cap: 6,
    price: 6,
    keep: 6,
    daily: 6,
    failures: 6,
    time: 8,
    day: 8,
    reserve: 8,
    silence: 8,
  });
});
