import type { StepSum } from "../core/ports/draft.js";
import type { Draft } from "../store/draft/draft.js";
import type { Listing } from "../text/listing.js";

/** A step of a manifest, with the items that are made for it. */
export interface WorkflowStep extends Omit<StepSum, "next" | "depth"> {
  /** Different for each step of the plan. */
  name: string;
  /** The names of the steps that take outputs of this one. */
  next: string[];
}

/** A chain without steps may have any length, so its items are grouped from here on. */
const depthMax = 8;

function placeIn(depth: number): string {
  return `${depth + 1}${depth === depthMax ? "+" : ""}`;
}

/** The steps of a plan, which are counted when they are asked for. */
export function workflowOf(draft: Pick<Draft, "steps">): Listing<WorkflowStep> {
  let steps: WorkflowStep[] | null = null;
  const found = () => {
    steps ??= named(draft.steps(depthMax));
    return steps;
  };
  return {
    get length() {
      return found().length;
    },
    [Symbol.iterator]: () => found()[Symbol.iterator](),
  };
}

/** Each has the name of its step or model, and a distinction if several have the same name. */
function named(steps: readonly StepSum[]): WorkflowStep[] {
  const plain = steps.map(({ step, model }) => step || model);
  const uses = new Map<string, number>();
  for (const name of plain) uses.set(name, (uses.get(name) ?? 0) + 1);
  const taken = new Set<string>();
  const names = steps.map(({ model, step, depth }, index) => {
    const name = plain[index] as string;
    const apart = uses.get(name) === 1 ? "" : step === null ? ` ${placeIn(depth ?? 0)}` : ` (${model})`;
    let own = `${name}${apart}`;
    // A step may be called as a model is.
    while (taken.has(own)) own += "'";
    taken.add(own);
    return own;
  });
  return steps.map(({ next, depth: _, ...step }, index) => ({
    name: names[index] as string,
    ...step,
    next: next.map((to) => names[to] as string),
  }));
}
