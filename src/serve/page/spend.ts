import type { ServedSpend, Spent } from "../../api/served-page.js";
import type { SqliteState } from "../../service/state/sqlite-state.js";
import { fromMicro } from "../../service/state/state.js";

const dayMs = 24 * 60 * 60 * 1_000;
const days = 30;

/** What was charged in the last 30 days (UTC), today among them. What failed is given back, and counts nowhere. */
export function spendOf({ db }: SqliteState, now: number): ServedSpend {
  const since = (Math.floor(now / dayMs) - days + 1) * dayMs;
  // By key, then by time: so the index of keys' tasks finds them.
  const rows = db
    .prepare(
      `select keys.id, keys.name as "key", model, tasks.created_at / ${dayMs} as day, count(*) as tasks, sum(cost_micro) as micro
       from keys cross join tasks on key_id = keys.id
       where tasks.created_at >= ? and outcome is not 'failed' group by keys.id, model, day`,
    )
    .all(since) as SpendRow[];
  const dayOf = ({ day }: SpendRow) => new Date(day * dayMs).toISOString().slice(0, 10);
  return {
    keys: summed(rows, ({ key }) => key).sort(mostFirst),
    models: summed(rows, ({ model }) => model).sort(mostFirst),
    days: summed(rows, dayOf).sort((one, other) => other.name.localeCompare(one.name)),
  };
}

interface SpendRow {
  key: string;
  model: string;
  /** Days since 1970. */
  day: number;
  tasks: number;
  micro: number;
}

function summed(rows: readonly SpendRow[], nameOf: (row: SpendRow) => string): Spent[] {
  const sums = new Map<string, { tasks: number; micro: number }>();
  for (const row of rows) {
    const { tasks, micro } = sums.get(nameOf(row)) ?? { tasks: 0, micro: 0 };
    sums.set(nameOf(row), { tasks: tasks + row.tasks, micro: micro + row.micro });
  }
  return [...sums].map(([name, { tasks, micro }]) => ({ name, tasks, credits: fromMicro(micro) }));
}

function mostFirst(one: Spent, other: Spent): number {
  return other.credits - one.credits || one.name.localeCompare(other.name);
}
