import type { Chance } from "./chance.js";
import type { ScenarioItem } from "./scenario.js";

/**
 * Jobs of a workspace. An item's id says of which it is: `item-3` is of the first and `item-3@1` of the second, and both
 * have the row `item-3`: the same key, prompt, model and params, so that their paid requests are the same word by word.
 */
export function rowOf(item: string): string {
  return item.split("@")[0] as string;
}

/** From 0. */
export function jobOf(item: string): number {
  return Number(item.split("@")[1] ?? 0);
}

export function itemOf(job: number, row: string): string {
  return job === 0 ? row : `${row}@${job}`;
}

export function isOfRun(item: ScenarioItem, workspace: number, job: number): boolean {
  return item.workspace === workspace && jobOf(item.id) === job;
}

/** In some scenarios each workspace has a second job, which asks for some rows of the first once more. */
export function intoJobs(lot: Chance, items: readonly ScenarioItem[]): ScenarioItem[] {
  if (!lot.is(0.12)) return [...items];
  const begin = Math.ceil(items.length / 2);
  return items.map((item, index) => {
    if (index < begin) return item;
    const equals = items.slice(0, begin).filter(({ workspace }) => workspace === item.workspace);
    const equal = equals[index - begin] ?? item;
    const { id, model } = lot.is(0.6) ? equal : item;
    return { ...item, id: itemOf(1, id), model };
  });
}
