import { type Chance, chance } from "../chance.js";
import type { Crash, PlannedFault, Scenario, UpstreamFault, UpstreamStep, WayFault } from "../scenario.js";
import { servedModels } from "./models.js";

/** The whole scenario of a seed: a command, a served models file, and what goes wrong with either and with the providers. */
export function servedScenarioOf(seed: number): Scenario {
  const lot = chance(seed, "served");
  const count = lot.scale(3, 20);
  const scenario = servedCalm(seed, count);
  const worth = lot.whole(1, 3);
  return {
    ...scenario,
    plan: lot.pick(["Starter", "Pro", "Enterprise"]),
    lanes: lot.whole(1, 4),
    downloads: lot.whole(1, 3),
    retries: lot.whole(0, 2),
    settle: lot.is(0.6) ? "stop" : "wait",
    again: lot.pick(["run", "resume"]),
    served: {
      restartMs: lot.scale(2_000, 600_000),
      jobMs: { min: 500, max: lot.scale(1_000, lot.is(0.2) ? 400_000 : 60_000) },
    },
    faults: [
      ...onTheWire(chance(seed, "wire"), count),
      ...ofProviders(chance(seed, "providers"), count),
      ...crashes(chance(seed, "crashes"), count * worth),
    ],
  };
}

/** A run in which nothing goes wrong, with so many items over all the providers. */
export function servedCalm(seed = 1, count = 4): Scenario {
  const lot = chance(seed, "served items");
  return {
    seed,
    items: Array.from({ length: count }, (_, index) => ({
      workspace: 0,
      id: `item-${index}`,
      name: `file-${index}`,
      model: count <= 4 ? (servedModels[index] as string) : lot.pick(servedModels),
      priority: 0,
    })),
    workspaces: 1,
    plan: "Pro",
    rpm: null,
    rpd: null,
    lanes: 2,
    downloads: 2,
    maxCredits: null,
    balance: 10_000,
    retries: 1,
    onDailyLimit: "wait",
    onInsufficient: "stop",
    settle: "stop",
    again: "run",
    taskMs: { min: 1_000, max: 1_000 },
    tellsTime: true,
    switches: {},
    served: { restartMs: 5_000, jobMs: { min: 1_000, max: 9_000 } },
    faults: [],
    daysMax: 30,
  };
}

/** How many of the answers between the command and its service are lost; a tenth in most runs. */
const lossRates = [0, 0.1, 0.1, 0.1, 0.3];

function onTheWire(lot: Chance, items: number): PlannedFault[] {
  const rate = lot.pick(lossRates);
  const faults = (endpoint: "generate" | "task" | "me", most: number, share: number) =>
    Array.from({ length: most }, (_, index) => index + 1).flatMap((nth) =>
      lot.is(share) ? [{ at: "request" as const, endpoint, nth, fault: lostOnTheWire(lot) }] : [],
    );
  return [
    ...faults("generate", items * 3, rate),
    ...faults("task", items * 6, rate / 2),
    ...faults("me", 6, rate / 3),
  ];
}

function lostOnTheWire(lot: Chance): WayFault {
  return lot.pick<WayFault>([
    { kind: "lost-reply" },
    { kind: "lost-reply" },
    { kind: "lost-request" },
    { kind: "cut-reply" },
    { kind: "late-arrival", delayMs: lot.scale(1_000, 300_000) },
    { kind: "slow-answer", delayMs: lot.scale(1_000, 300_000) },
    { kind: "http-error", status: 502, body: "html", seen: true },
  ]);
}

function ofProviders(lot: Chance, items: number): PlannedFault[] {
  const rate = lot.pick([0, 0.1, 0.25, 0.5]);
  const faults = (step: UpstreamStep, most: number, share: number) =>
    Array.from({ length: most }, (_, index) => index + 1).flatMap((nth) =>
      lot.is(share) ? [{ at: "upstream" as const, step, nth, fault: atProvider(lot, step) }] : [],
    );
  return [
    ...faults("submit", items * 3, rate),
    ...faults("poll", items * 10, rate / 2),
    ...faults("find", items, rate),
  ];
}

function atProvider(lot: Chance, step: UpstreamStep): UpstreamFault {
  const way = lot.pick<UpstreamFault>([
    { kind: "upstream-lost" },
    { kind: "upstream-no-answer", isSilent: lot.is(0.5) },
    { kind: "upstream-no-answer", isSilent: lot.is(0.5) },
    { kind: "upstream-later", afterMs: lot.scale(500, 300_000), scope: lot.pick(["job", "provider"]) },
  ]);
  if (step !== "submit" || lot.is(0.55)) return way;
  return lot.pick<UpstreamFault>([
    { kind: "upstream-refuses", billed: lot.pick([true, false, null]) },
    { kind: "upstream-slow", byMs: lot.scale(10_000, 900_000) },
    { kind: "upstream-fails" },
    { kind: "upstream-spoils", as: lot.pick(["nothing", "empty", "other"]) },
  ]);
}

/** Effects of the service, and of the command. */
const ofService = ["served.journal", "served.journal", "served.commit"];
const ofProvider = ["upstream.submit", "upstream.answer", "upstream.poll", "upstream.find"];
const ofCommand = ["send.generate", "store.conclude", "receipts.append", "store.saved", "any"];

function crashes(lot: Chance, most: number): PlannedFault[] {
  const crash = (effect: string, nth: number): PlannedFault => {
    const fault: Crash = { kind: lot.is(0.7) ? "crash" : "power-cut", after: lot.is(0.5) };
    return { at: "effect", effect, nth, fault };
  };
  return [
    ...Array.from({ length: lot.whole(0, 5) }, () =>
      crash(lot.pick(lot.is(0.6) ? ofService : ofProvider), lot.scale(1, 4 * most)),
    ),
    ...Array.from({ length: lot.whole(0, 2) }, () => crash(lot.pick(ofCommand), lot.scale(1, 2 * most))),
  ];
}

/** What is crashed everywhere: one item of each provider, and then with answers that are lost. */
export function servedLossy(seed = 1): Scenario {
  const scenario = servedCalm(seed);
  const silent: UpstreamFault = { kind: "upstream-no-answer", isSilent: false };
  return {
    ...scenario,
    faults: [
      { at: "request", endpoint: "generate", nth: 2, fault: { kind: "lost-reply" } },
      ...[1, 2, 3, 4].map((nth) => ({
        at: "upstream" as const,
        step: "submit" as const,
        nth,
        fault: silent,
      })),
    ],
  };
}
