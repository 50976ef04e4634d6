import type { Chance } from "./chance.js";
import type { PlannedFault, Scenario } from "./scenario.js";

/** How the local files among a run's inputs are published, and what becomes of them meanwhile. */
export interface PublishPlan {
  /** How long an address lives (ms). */
  lifeMs: number;
  /** The longest that one publication takes (ms). */
  longestMs: number;
  /** Publications that fail, of one. */
  failing: number;
  /** All fail from the one moment to the other (ms after the beginning). */
  outage?: { fromMs: number; toMs: number };
  /** Files that are others from a moment on, or gone, and put back at another (ms after the beginning). */
  changes: readonly FileChange[];
}

export interface FileChange {
  file: string;
  fromMs: number;
  toMs: number | null;
  isGone: boolean;
}

/** Where a crash is worth more than anywhere else in these runs. */
const critical = [
  "publish",
  "store.keepPublished",
  "store.unpublished",
  "store.publishAgain",
  "store.renewed",
];

/**
 * In one run of five, items take local files: few files for many items, so that some share them, and some have the same
 * content under another name.
 */
export function publishingOf(
  lot: Chance,
  { items, faults, again, otherPrice, cancel }: Scenario,
): Partial<Pick<Scenario, "items" | "faults" | "publishing">> {
  if (!lot.is(0.2)) return {};
  const files = Array.from({ length: lot.whole(1, 5) }, (_, number) => `photo-${number}.png`);
  const names = lot.is(0.3) ? [...files, "copy-0.png"] : files;
  const share = 0.2 + 0.6 * lot.next();
  const takeFiles = items.map((item) => (lot.is(share) ? { ...item, file: lot.pick(names) } : item));
  // Whoever runs a manifest again plans what its files hold by then, and those are other items.
  const mayChange = again === "resume" && !otherPrice && !cancel;
  const fromMs = lot.scale(1_000, 300_000);
  const crashes = Array.from({ length: lot.is(0.5) ? lot.whole(1, 3) : 0 }, () => crashOf(lot));
  return {
    items: takeFiles,
    faults: [...faults, ...crashes],
    publishing: {
      lifeMs: lot.is(0.5) ? lot.scale(150_000, 1_200_000) : lot.scale(1_200_000, 86_400_000),
      longestMs: lot.is(0.7) ? lot.scale(500, 10_000) : lot.scale(10_000, 900_000),
      failing: lot.is(0.5) ? 0 : lot.pick([0.1, 0.5]),
      ...(lot.is(0.3) ? { outage: { fromMs, toMs: fromMs + lot.scale(10_000, 1_200_000) } } : {}),
      changes: mayChange && lot.is(0.5) ? [changeOf(lot, names)] : [],
    },
  };
}

function crashOf(lot: Chance): PlannedFault {
  const kind = lot.pick(["crash", "power-cut"] as const);
  return {
    at: "effect",
    effect: lot.pick(critical),
    nth: lot.whole(1, 6),
    fault: { kind, after: lot.is(0.5) },
  };
}

function changeOf(lot: Chance, names: readonly string[]): FileChange {
  const fromMs = lot.scale(500, 600_000);
  const toMs = lot.is(0.5) ? null : fromMs + lot.scale(1_000, 7_200_000);
  return { file: lot.pick(names), fromMs, toMs, isGone: lot.is(0.3) };
}
