import type { PlanName } from "../../src/api/plans.js";
import type { SwitchSettings } from "../../src/service/state/switches.js";
import { cancelOf } from "./cancelling.js";
import { chainsOf } from "./chains.js";
import { type Chance, chance, denseChance } from "./chance.js";
import { decade } from "./decade.js";
import { approvalsOf } from "./deciding.js";
import { intoJobs } from "./jobs.js";
import { modelNames, priceOf } from "./models.js";
import { type OtherPrice, otherPriceOf } from "./other-price.js";
import { publishingOf } from "./publishing.js";
import type { Scenario, ScenarioItem } from "./scenario.js";
import { swarm } from "./swarm.js";

export interface WorkloadOptions {
  /** Days of virtual time that a run may span: with more than one, the day's limit binds and tasks take hours. */
  days: number;
  /**
   * Caps, other prices, second jobs, cancels and a clock that is wrong by years are in about a third of the runs each.
   */
  isDense?: boolean;
  /** Every run has an unlimited plan and sixteen lanes, instead of one in eight that has up to so many. */
  isCrowd?: boolean;
}

/** Earlier seeds have the scenarios that are on record. */
const repeatsFrom = 1_330_000_000;

/** The whole scenario of a seed. */
export function scenarioOf(
  seed: number,
  { days, isDense = false, isCrowd = false }: WorkloadOptions = { days: 1 },
): Scenario {
  const lot = chance(seed, "workload");
  const rarely = isDense ? denseChance : chance;
  const crowd = crowdOf(rarely(seed, "crowd"), isCrowd);
  const workspaces = lot.is(0.2) ? 2 : 1;
  // Most of what goes wrong needs few items, and a small run costs least.
  const few = Math.min(lot.scale(6, 60), lot.scale(6, 60), lot.scale(6, 60));
  const count = crowd?.items ?? few;
  const items = itemsOf(lot, count, workspaces);
  const worth = items.reduce((sum, item) => sum + priceOf(item.model), 0) / workspaces;
  const isLong = days > 1 || lot.is(0.06);
  const scenario: Scenario = {
    seed,
    items,
    workspaces,
    ...limitsOf(lot, items.length),
    ...(crowd === null ? {} : { plan: "Enterprise", rpm: null, rpd: null, lanes: crowd.lanes }),
    downloads: lot.whole(1, 4),
    maxCredits: lot.is(0.3) ? Math.ceil(worth * (0.2 + lot.next())) : null,
    balance: lot.is(0.1) ? Math.ceil(worth * lot.next()) : 10_000,
    retries: lot.whole(0, 2),
    // Days of waiting take the simulation long.
    onDailyLimit: lot.is(0.92) ? "stop" : "wait",
    onInsufficient: lot.is(0.92) ? "stop" : "wait",
    settle: lot.is(0.6) ? "stop" : "wait",
    again: lot.pick(["run", "resume"]),
    taskMs: isLong ? { min: 1_000, max: 1_500_000 } : { min: 500, max: lot.scale(1_000, 120_000) },
    switches: switchesOf(lot),
    tellsTime: chance(seed, "time").is(0.8),
    ...(seed >= repeatsFrom && chance(seed, "repeats").is(0.25) ? { repeats: true } : {}),
    faults: [],
    daysMax: 30 + 2 * days,
  };
  const cancelled = cancelOf(rarely(seed, "cancel"), scenario);
  const faults = [
    ...swarm(chance(seed, "swarm"), scenario),
    ...decade(rarely(seed, "decade")),
    ...(cancelled?.faults ?? []),
  ];
  const otherPrice = otherPriceOf(rarely(seed, "prices"), scenario);
  const bounds = withOther(boundsOf(rarely(seed, "bounds"), scenario), otherPrice);
  // With a clock that jumps and a service that states no time, no age can be known.
  const jumps = faults.some(({ fault }) => fault.kind === "clock-jump");
  const cancel = cancelled === null ? {} : { cancel: cancelled.cancel };
  const inJobs = intoJobs(rarely(seed, "jobs"), items);
  const tellsTime = jumps || scenario.tellsTime;
  const chains = chainsOf(rarely(seed, "chains"), { ...scenario, ...bounds, ...cancel, items: inJobs });
  const whole = { ...scenario, ...bounds, ...cancel, items: inJobs, tellsTime, faults, ...chains };
  const approved = { ...whole, ...approvalsOf(rarely(seed, "approvals"), whole) };
  return { ...approved, ...publishingOf(rarely(seed, "publishing"), approved) };
}

/** One run in eight has an unlimited plan, up to 16 lanes, whose transactions share commits, and items enough for them. */
function crowdOf(lot: Chance, isCrowd: boolean): { lanes: number; items: number } | null {
  const is = lot.is(0.12);
  if (isCrowd) return { lanes: 16, items: lot.scale(18, 40) };
  return is ? { lanes: lot.whole(4, 16), items: lot.scale(20, 60) } : null;
}

type Limits = Pick<Scenario, "plan" | "rpm" | "rpd" | "lanes">;

function limitsOf(lot: Chance, items: number): Limits {
  return {
    plan: lot.pick<PlanName>(["Starter", "Starter", "Pro"]),
    rpm: lot.scale(4, 30),
    rpd: lot.is(0.12) ? lot.whole(items + 4, 4 * items) : 1_000,
    lanes: lot.whole(1, 3),
  };
}

type Bounds = Pick<
  Scenario,
  "modelCap" | "dailyCredits" | "keepCredits" | "orphanCredits" | "overdueWaitMs" | "otherPrice"
> &
  Partial<Pick<Scenario, "onInsufficient">>;

function withOther(bounds: Bounds, otherPrice: OtherPrice | null): Bounds {
  if (otherPrice === null) return bounds;
  const { dailyCredits } = bounds;
  const daily =
    dailyCredits === undefined ? {} : { dailyCredits: Math.max(dailyCredits, Math.ceil(otherPrice.credits)) };
  // Nobody puts more on an account of which some is kept, so a price that it does not reach for is waited for in vain.
  const refused = bounds.keepCredits === undefined ? {} : { onInsufficient: "stop" as const };
  return { ...bounds, ...daily, ...refused, otherPrice };
}

/**
 * What somebody sets beside the cap of the whole run. A day's credits pay for any one item, or nothing would ever end.
 */
function boundsOf(lot: Chance, { items, workspaces, balance }: Scenario): Bounds {
  const worthOf = (some: readonly ScenarioItem[]) => some.reduce((sum, { model }) => sum + priceOf(model), 0);
  const { model } = lot.pick(items);
  const most = Math.ceil(
    (worthOf(items.filter((item) => item.model === model)) / workspaces) * (0.2 + lot.next()),
  );
  const dearest = Math.max(...items.map((item) => priceOf(item.model)));
  const perDay = Math.ceil(Math.max(dearest, worthOf(items) * (0.25 + lot.next())));
  return {
    ...(lot.is(0.12) ? { modelCap: { model, most } } : {}),
    ...(lot.is(0.1) ? { dailyCredits: perDay } : {}),
    ...(lot.is(0.1) ? { keepCredits: Math.max(0, Math.floor(balance - worthOf(items) * lot.next())) } : {}),
    ...(lot.is(0.12) ? { orphanCredits: lot.whole(1, 40) } : {}),
    ...(lot.is(0.2) ? { overdueWaitMs: lot.scale(60_000, 7_200_000) } : {}),
  };
}

export function itemsOf(lot: Chance, count: number, workspaces: number): ScenarioItem[] {
  const models = lot.shuffle(modelNames).slice(0, lot.whole(1, modelNames.length));
  const sharesNames = lot.is(0.3);
  return Array.from({ length: count }, (_, index) => ({
    workspace: index % workspaces,
    id: `item-${index}`,
    name: sharesNames ? `name-${lot.whole(1, 3)}` : `file-${index}`,
    model: lot.pick(models),
    priority: lot.is(0.8) ? 0 : lot.whole(-1, 2),
  }));
}

/** What the service's page leaves open is settled in another way each time. */
export function switchesOf(lot: Chance): SwitchSettings {
  return {
    limiter: { kind: "sliding-log" },
    tooMany: {
      retryAfter: lot.pick(["none", "seconds", "date"]),
      body: lot.pick(["json", "text", "empty"]),
    },
    refund: { at: lot.pick(["end", "delayed", "seen"]), delayMs: 60_000, lowersUsed: lot.is(0.5) },
    requestsCount: lot.pick(["all", "admitted", "succeeded", "generates"]),
    signing: lot.is(0.7) ? "each-look" : "once",
    errorIsCharged: lot.is(0.2),
    errorShape: lot.pick(["nested", "flat", "string"]),
    urlMs: lot.is(0.7) ? 3_600_000 : lot.scale(3_000, 60_000),
    outputs: { number: lot.is(0.85) ? 1 : lot.whole(2, 3) },
  };
}
