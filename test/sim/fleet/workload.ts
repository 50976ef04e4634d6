import { type Chance, chance } from "../chance.js";
import type { Crash, FaultKind, PlannedFault, Scenario } from "../scenario.js";
import { draws } from "../swarm.js";
import { itemsOf, switchesOf } from "../workload.js";

/** Hosts with workers, beside the one with the run. */
const workers = 2;

/** The scenario of a seed in which several hosts share a workspace. */
export function fleetScenarioOf(seed: number): Scenario {
  const lot = chance(seed, "fleet");
  const items = itemsOf(lot, Math.min(lot.scale(4, 40), lot.scale(4, 40)), 1);
  const scenario: Scenario = {
    seed,
    items,
    workspaces: 1,
    // What limits an account is for the other runs to show.
    plan: "Enterprise",
    rpm: null,
    rpd: null,
    lanes: lot.whole(1, 6),
    downloads: lot.whole(1, 4),
    maxCredits: null,
    balance: 10_000,
    retries: lot.whole(0, 2),
    onDailyLimit: "stop",
    onInsufficient: "stop",
    settle: "stop",
    again: lot.pick(["run", "resume"]),
    taskMs: { min: 500, max: lot.scale(1_000, 60_000) },
    switches: switchesOf(lot),
    tellsTime: true,
    faults: [],
    daysMax: 40,
    fleet: {
      workers,
      downloads: lot.whole(1, 3),
      works: lot.is(0.5),
      pieceMs: lot.pick([40, 40, 3_000, 9_000]),
    },
  };
  const faults = [
    ...usual(chance(seed, "swarm"), scenario),
    ...ofFleet(chance(seed, "fleet faults"), scenario),
  ];
  return { ...scenario, faults };
}

/** Faults that a single machine meets too; its power cuts and clocks are left to it. */
const usualKinds = (Object.keys(draws) as FaultKind[]).filter(
  (kind) => !["crash", "power-cut", "clock-jump", "foreign-writer"].includes(kind),
);

function usual(lot: Chance, scenario: Scenario): PlannedFault[] {
  const kinds = lot.shuffle(usualKinds).slice(0, lot.whole(0, 4));
  return kinds.flatMap((kind) => draws[kind]?.(lot, scenario) ?? []);
}

/** Effects of the run, and of workers, next to which most can go wrong. */
const critical = {
  run: [
    "accounts.reserve",
    "store.intend",
    "receipts.append",
    "send.generate",
    "accounts.answered",
    "store.conclude",
    "send.task",
    "store.complete",
    "store.saved",
    "store.reschedule",
    "disk.link",
    "disk.append",
    "queue.put",
    "queue.collect",
    "queue.clear",
    "lock.take",
    "store.setRun",
  ],
  worker: [
    "queue.take",
    "queue.complete",
    "queue.renew",
    "queue.beat",
    "queue.tidy",
    "download",
    "disk.create",
    "disk.write",
    "disk.sync",
    "disk.syncFolder",
    "disk.unlink",
  ],
};
/** Those that ask the database. */
const questions = [...critical.run, ...critical.worker].filter((name) =>
  /^(accounts|store|queue|lock)\./.test(name),
);

type Draw = (lot: Chance, scenario: Scenario) => PlannedFault[];

const crash =
  (effects: readonly string[]): Draw =>
  (lot, { items }) => {
    const effect = lot.pick(effects);
    const fault: Crash = { kind: "crash", after: lot.is(0.5) };
    return [{ at: "effect", effect, nth: lot.scale(1, items.length * 1.5), fault }];
  };

const fleetDraws: readonly Draw[] = [
  crash(critical.run),
  crash(critical.run),
  crash(critical.worker),
  crash(critical.worker),
  (lot, { items }) => {
    const ms = lot.scale(2_000, 60_000);
    const nth = lot.scale(1, items.length * 1.5);
    return [{ at: "call", call: lot.pick(critical.worker), nth, fault: { kind: "stands-still", ms } }];
  },
  (lot, { items }) => {
    const ms = lot.scale(2_000, 60_000);
    const nth = lot.scale(1, items.length * 1.5);
    return [{ at: "call", call: lot.pick(critical.run), nth, fault: { kind: "stands-still", ms } }];
  },
  (lot, { items }) => {
    const nth = lot.scale(1, items.length * 1.5);
    return [
      { at: "call", call: lot.pick(questions), nth, fault: { kind: "lost-answer", done: lot.is(0.5) } },
    ];
  },
  (lot) => [{ at: "moment", ms: lot.scale(500, 300_000), fault: { kind: "queue-dropped" } }],
  (lot) => {
    const fault = {
      kind: "database-cut",
      host: lot.whole(0, workers),
      forMs: lot.scale(2_000, 120_000),
    } as const;
    return [{ at: "moment", ms: lot.scale(500, 300_000), fault }];
  },
  (lot) => {
    const fault = { kind: "worker-stopped", host: lot.whole(1, workers) } as const;
    return [{ at: "moment", ms: lot.scale(500, 300_000), fault }];
  },
];

function ofFleet(lot: Chance, scenario: Scenario): PlannedFault[] {
  const kinds = lot.shuffle(fleetDraws).slice(0, lot.whole(2, 5));
  return kinds.flatMap((draw) => Array.from({ length: lot.scale(1, 6) }, () => draw(lot, scenario)).flat());
}
