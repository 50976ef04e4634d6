import { type Credits, plus } from "../../core/money.js";
import type { PlannedState, StepSum } from "../../core/ports/draft.js";
import type { Sqlite } from "../../sqlite.js";

/** What distinguishes items without a step, besides their model. */
const level = (of: string) => `CASE WHEN ${of}.step IS NULL THEN min(${of}.depth, @depthMax) END`;

interface Part {
  step: string | null;
  model: string;
  category: string;
  depth: number | null;
  state: PlannedState;
  items: number;
  due: number;
  credits: Credits;
}

interface Arrow {
  step: string | null;
  model: string;
  depth: number | null;
  fromStep: string | null;
  fromModel: string;
  fromDepth: number | null;
}

/** The wanted items of a plan by step, and which steps use outputs of which others. */
export function draftSteps(db: Sqlite, depthMax: number): StepSum[] {
  const parts = db
    .prepare(
      `SELECT step, model, category, ${level("drafted")} AS depth, state, count(*) AS items, sum(due) AS due,
         sum(due * price) AS credits
       FROM drafted CROSS JOIN kinds ON kinds.id = drafted.kind WHERE key IS NOT NULL AND wanted
       GROUP BY 1, 2, 4, state ORDER BY min(drafted.depth), min(position)`,
    )
    .all({ depthMax }) as Part[];
  const steps: StepSum[] = [];
  const indexes = new Map<string, number>();
  for (const { state, ...part } of parts) {
    const name = nameOf(part.step, part.model, part.depth);
    const known = steps[indexes.get(name) ?? -1];
    if (known === undefined) {
      indexes.set(name, steps.length);
      steps.push({ ...part, states: { [state]: part.items }, next: [] });
      continue;
    }
    known.states[state] = part.items;
    known.items += part.items;
    known.due += part.due;
    known.credits = plus(known.credits, part.credits);
  }
  const arrows = db
    .prepare(
      `SELECT DISTINCT below.step, kind.model, ${level("below")} AS depth,
         above.step AS fromStep, from_kind.model AS fromModel, ${level("above")} AS fromDepth
       FROM links CROSS JOIN drafted below ON below.position = child JOIN kinds kind ON kind.id = below.kind
         JOIN drafted above ON above.position = parent JOIN kinds from_kind ON from_kind.id = above.kind
       WHERE below.key IS NOT NULL AND above.key IS NOT NULL AND below.wanted`,
    )
    .all({ depthMax }) as Arrow[];
  for (const { step, model, depth, fromStep, fromModel, fromDepth } of arrows) {
    const from = indexes.get(nameOf(fromStep, fromModel, fromDepth));
    const to = indexes.get(nameOf(step, model, depth));
    if (from !== undefined && to !== undefined) steps[from]?.next.push(to);
  }
  for (const { next } of steps) next.sort((a, b) => a - b);
  return steps;
}

function nameOf(...parts: (string | number | null)[]): string {
  return JSON.stringify(parts);
}

/** Each item ends when the last of its parents has ended and its own generation has taken its time. */
export function longestChain(db: Sqlite, msOf: (group: number) => number): number {
  const following = db.prepare(
    `SELECT child, parent, kind.price_group, from_kind.price_group, above.due
     FROM links CROSS JOIN drafted below ON below.position = child JOIN kinds kind ON kind.id = below.kind
       JOIN drafted above ON above.position = parent JOIN kinds from_kind ON from_kind.id = above.kind
     WHERE below.key IS NOT NULL AND above.key IS NOT NULL AND below.wanted AND below.due ORDER BY below.depth`,
  );
  const known = new Map<number, number>();
  const takes = (group: number) => {
    const ms = known.get(group) ?? msOf(group);
    known.set(group, ms);
    return ms;
  };
  const ends = new Map<number, number>();
  let longest = 0;
  // With many items, objects would take longer than the query.
  for (const each of following.raw().iterate()) {
    const [child, parent, childGroup, parentGroup, parentDue] = each as [
      number,
      number,
      number,
      number,
      number,
    ];
    const begins = parentDue === 0 ? 0 : (ends.get(parent) ?? takes(parentGroup));
    const end = Math.max(ends.get(child) ?? 0, begins + takes(childGroup));
    ends.set(child, end);
    longest = Math.max(longest, end);
  }
  return longest;
}
