import type { MediaField } from "../../src/api/inputs.js";
import type { Chance } from "./chance.js";
import { jobOf } from "./jobs.js";
import { categoryOf } from "./models.js";
import type { Scenario, ScenarioItem } from "./scenario.js";

/** An input of an item that is an output of another one of its job. */
export interface Take {
  field: MediaField;
  /** The parent's id. */
  of: string;
  /** From 1. */
  output: number;
}

/** Items in a chain, from the first to the last. */
const lengthMax = 4;

/**
 * In one run of four, items take the outputs of others: in chains of up to four, several of one and one of several. There
 * addresses live for minutes or less, so that they have to be renewed.
 */
export function chainsOf(
  lot: Chance,
  scenario: Pick<Scenario, "items" | "switches" | "again" | "otherPrice" | "cancel">,
): Pick<Scenario, "items" | "switches" | "mends"> | null {
  if (!lot.is(0.25)) return null;
  const { items, switches } = scenario;
  const outputs = lot.is(0.35) ? { number: lot.whole(2, 3) } : switches.outputs;
  const chained = {
    ...switches,
    ...(outputs === undefined ? {} : { outputs }),
    ...(lot.is(0.8) ? { urlMs: lot.scale(5_000, 900_000) } : {}),
    ...(lot.is(0.6) ? { signing: "each-look" as const } : {}),
  };
  const links = linked(lot, items, outputs?.number ?? 1);
  const isChanged = mayChange(scenario) && lot.is(0.7);
  return {
    items: isChanged ? withChanges(lot, links) : links,
    switches: chained,
    ...(lot.is(0.5) ? { mends: true } : {}),
  };
}

/** With another job in its workspace, a new item's number could not be told. */
function mayChange({ items, again, otherPrice, cancel }: Parameters<typeof chainsOf>[1]): boolean {
  return again === "run" && !otherPrice && !cancel && items.every(({ id }) => jobOf(id) === 0);
}

/** The sheet is changed once: a row or two are others from then on, and so is whatever takes their outputs. */
function withChanges(lot: Chance, items: readonly ScenarioItem[]): ScenarioItem[] {
  const changed = new Set([lot.pick(items).id, ...(lot.is(0.3) ? [lot.pick(items).id] : [])]);
  for (let size = 0; size < changed.size; ) {
    size = changed.size;
    for (const { id, takes = [] } of items) if (takes.some(({ of }) => changed.has(of))) changed.add(id);
  }
  const newId = (id: string) => (changed.has(id) ? `${id}-new` : id);
  const news = items.flatMap(({ takes, ...item }) => {
    if (!changed.has(item.id)) return [];
    const others = takes?.map((take) => ({ ...take, of: newId(take.of) }));
    return { ...item, id: newId(item.id), replaces: item.id, ...(others ? { takes: others } : {}) };
  });
  return [...items, ...news];
}

/** Parents come before their children in an order that is not the sheet's. */
function linked(lot: Chance, items: readonly ScenarioItem[], outputs: number): ScenarioItem[] {
  const share = 0.3 + 0.5 * lot.next();
  const length = new Map<string, number>();
  const takes = new Map<string, Take[]>();
  const earlier: ScenarioItem[] = [];
  for (const item of lot.is(0.5) ? items : lot.shuffle(items)) {
    const own = lot.is(share) ? takesOf(lot, earlier.filter(isBeside(item)), length, outputs) : [];
    if (own.length > 0) takes.set(item.id, own);
    length.set(item.id, 1 + Math.max(0, ...own.map(({ of }) => length.get(of) ?? 1)));
    earlier.push(item);
  }
  return items.map((item) => {
    const own = takes.get(item.id);
    return own === undefined ? item : { ...item, takes: own };
  });
}

/** One parent, or one for each kind of input. */
function takesOf(
  lot: Chance,
  earlier: readonly ScenarioItem[],
  length: ReadonlyMap<string, number>,
  outputs: number,
): Take[] {
  const parents = earlier.filter(({ id }) => (length.get(id) ?? 1) < lengthMax);
  const first = takeOf(lot, parents, outputs);
  if (first === null || lot.is(0.5)) return first === null ? [] : [first];
  const others = parents.filter(({ model }) => fieldOf(model) !== first.field);
  const second = takeOf(lot, others, outputs);
  return second === null ? [first] : [first, second];
}

function takeOf(lot: Chance, parents: readonly ScenarioItem[], outputs: number): Take | null {
  if (parents.length === 0) return null;
  // The last ones make long chains, the first ones have many children.
  const some = lot.is(0.5) ? parents.slice(-3) : lot.is(0.5) ? parents.slice(0, 2) : parents;
  const { id, model } = lot.pick(some);
  // Now and then there is no such output, which shows when the parent is made.
  const most = lot.is(0.03) ? outputs + 1 : outputs;
  return { field: fieldOf(model), of: id, output: lot.is(0.5) ? most : 1 };
}

function fieldOf(model: string): MediaField {
  return categoryOf(model) === "audio" ? "audio_url" : "image_url";
}

function isBeside(item: ScenarioItem): (other: ScenarioItem) => boolean {
  return ({ workspace, id }) => workspace === item.workspace && jobOf(id) === jobOf(item.id);
}
