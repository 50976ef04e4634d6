import type { Endpoint } from "../../src/api/endpoints.js";
import type { Chance } from "./chance.js";
import type { Crash, FaultKind, Look, PlannedFault, Scenario, WayFault } from "./scenario.js";

/**
 * Which faults a run has. Not all of them at once: a swarm of few kinds, each run another one, reaches states that a
 * mixture of everything never does, because some faults hide others.
 */
type Draw = (lot: Chance, scenario: Scenario) => PlannedFault[];

const requestFault =
  (endpoints: readonly Endpoint[], make: (lot: Chance) => WayFault): Draw =>
  (lot, { items }) => {
    const endpoint = lot.pick(endpoints);
    const fault = make(lot);
    if (endpoint === "task" && lot.is(0.4)) return rareLook(lot, items.length, fault);
    const most = endpoint === "generate" ? items.length * 1.3 : endpoint === "me" ? 4 : items.length * 3;
    return [{ at: "request", endpoint, nth: Math.round(lot.scale(1, most)), fault }];
  };

/** A fault of a look that few runs have by themselves, with what leads to such a look. */
function rareLook(lot: Chance, items: number, fault: WayFault): PlannedFault[] {
  const look = lot.pick<Look>(["late", "again"]);
  const cause: PlannedFault =
    look === "late"
      ? neverEnds(lot)
      : { at: "download", nth: lot.scale(1, items), fault: { kind: "download-expired" } };
  return [cause, { at: "request", endpoint: "task", look, nth: lot.scale(1, 4), fault }];
}

function neverEnds(lot: Chance): PlannedFault {
  return {
    at: "request",
    endpoint: "generate",
    nth: lot.whole(1, 4),
    fault: { kind: "task-never-finishes" },
  };
}

const moderated = "The prompt was rejected by content moderation.";

/** Something that hits whatever is going on finds now and then an item that has failed, or a task that is overdue. */
function company(lot: Chance): PlannedFault[] {
  if (lot.is(0.7)) return [];
  if (lot.is(0.5)) return [neverEnds(lot)];
  const nth = lot.whole(1, 4);
  return [{ at: "request", endpoint: "generate", nth, fault: { kind: "task-fails", error: moderated } }];
}

const anywhere = ["generate", "generate", "task", "me"] as const;
const either = ["generate", "task"] as const;

/** Effects next to which most can go wrong; a crash there is worth more than one anywhere. */
const critical = [
  "accounts.reserve",
  "store.intend",
  "receipts.append",
  "send.generate",
  "accounts.answered",
  "store.conclude",
  "send.task",
  "store.complete",
  "store.apply",
  "store.reschedule",
  "download",
  "disk.create",
  "disk.write",
  "disk.sync",
  "disk.link",
  "disk.unlink",
  "disk.syncFolder",
  "disk.append",
  "store.saved",
  "store.expire",
  "store.refreshOutputs",
  "store.enroll",
  "any",
];

const crash =
  (kind: "crash" | "power-cut"): Draw =>
  (lot, { items }) => {
    const effect = lot.pick(critical);
    const most = effect === "any" ? items.length * 30 : items.length;
    const fault: Crash = { kind, after: lot.is(0.5) };
    return [{ at: "effect", effect, nth: lot.scale(1, most), fault }, ...company(lot)];
  };

const spurious = (lot: Chance): WayFault =>
  lot.is(0.4)
    ? { kind: "spurious-429" }
    : {
        kind: "refused",
        status: 429,
        body: lot.pick(["json", "html"]),
        retryAfter: lot.pick([null, "1", "30", "120"]),
      };

const byTime =
  (make: (lot: Chance, scenario: Scenario) => Extract<PlannedFault, { at: "time" }>["fault"]): Draw =>
  (lot, scenario) => {
    const ms = lot.scale(500, lot.is(0.8) ? 900_000 : 7_200_000);
    return [{ at: "time", ms, fault: make(lot, scenario) }, ...company(lot)];
  };

const download =
  (make: (lot: Chance) => Extract<PlannedFault, { at: "download" }>["fault"]): Draw =>
  (lot, { items }) => [{ at: "download", nth: lot.scale(1, items.length * 1.3), fault: make(lot) }];

export const draws: Partial<Record<FaultKind, Draw>> = {
  "lost-request": requestFault(anywhere, () => ({ kind: "lost-request" })),
  "lost-reply": requestFault(anywhere, () => ({ kind: "lost-reply" })),
  "late-arrival": requestFault(anywhere, (lot) => ({
    kind: "late-arrival",
    delayMs: lot.scale(1_000, 399_000),
  })),
  "slow-answer": requestFault(anywhere, (lot) => ({
    kind: "slow-answer",
    delayMs: lot.scale(1_000, 300_000),
  })),
  "http-error": requestFault(anywhere, (lot) => ({
    kind: "http-error",
    status: lot.pick([500, 502, 503, 504]),
    body: lot.pick(["html", "empty"]),
    seen: lot.is(0.5),
  })),
  "truncated-json": requestFault(anywhere, () => ({ kind: "truncated-json" })),
  "malformed-json": requestFault(anywhere, () => ({ kind: "malformed-json" })),
  "cut-reply": requestFault(anywhere, () => ({ kind: "cut-reply" })),
  "no-connection": requestFault(anywhere, () => ({ kind: "no-connection" })),
  "spurious-429": requestFault(either, spurious),
  refused: requestFault(either, (lot) => ({
    kind: "refused",
    status: lot.pick([400, 401, 402, 403, 404, 409, 422]),
    body: lot.pick(["json", "html"]),
    retryAfter: null,
  })),
  "internal-error": requestFault(["task"], () => ({ kind: "internal-error" })),
  "generation-error": requestFault(["generate"], () => ({ kind: "generation-error" })),
  "task-fails": requestFault(["generate"], (lot) => ({
    kind: "task-fails",
    error: lot.pick(["The provider is overloaded.", moderated]),
  })),
  "task-never-finishes": requestFault(["generate"], () => ({ kind: "task-never-finishes" })),
  "task-vanishes": requestFault(["generate"], (lot) => ({
    kind: "task-vanishes",
    afterMs: lot.scale(1, 100_000),
  })),
  "download-truncated": download((lot) => ({
    kind: "download-truncated",
    keep: lot.next(),
    pretends: lot.is(0.5),
  })),
  "download-stalled": download((lot) => ({
    kind: "download-stalled",
    keep: lot.next(),
    forMs: lot.scale(1_000, 600_000),
  })),
  "download-corrupt": download((lot) => ({ kind: "download-corrupt", at: lot.next() })),
  "download-new-etag": download(() => ({ kind: "download-new-etag" })),
  "download-expired": download(() => ({ kind: "download-expired" })),
  crash: crash("crash"),
  "power-cut": crash("power-cut"),
  "clock-jump": byTime((lot) => ({
    kind: "clock-jump",
    byMs: lot.pick([-1, 1]) * lot.scale(1_000, 400_000_000),
  })),
  "foreign-writer": byTime((lot) => ({
    kind: "foreign-writer",
    posts: lot.scale(1, 12),
    sameKey: lot.is(0.5),
  })),
  "disk-full": byTime((lot) => ({ kind: "disk-full", forMs: lot.scale(1_000, 600_000) })),
  "stranger-file": byTime((lot, { items }) => ({
    kind: "stranger-file",
    item: lot.whole(0, items.length - 1),
  })),
};

export const swarmKinds = Object.keys(draws) as FaultKind[];

/** At least three kinds of fault, each a few times. */
export function swarm(lot: Chance, scenario: Scenario): PlannedFault[] {
  const kinds = lot.shuffle(swarmKinds).slice(0, lot.scale(3, 8));
  return kinds.flatMap((kind) =>
    Array.from({ length: lot.scale(1, 6) }, () => (draws[kind] as Draw)(lot, scenario)).flat(),
  );
}
