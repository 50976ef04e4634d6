import { type ItemState, wantedItems } from "../../../core/item.js";
import type { StateCounts } from "../../../documents/page.js";
import { orderedStates, stateWords } from "../../../report/state-words.js";
import { number } from "../../parts/amounts.js";

/** Items by state, as a bar and in numbers. */

/** In the order in which an item passes through them, so that the bar fills from the left. */
const barOrder: readonly ItemState[] = [
  "archived",
  "ready",
  "processing",
  "submitting",
  "unknown",
  "overdue",
  "held",
  "failed",
  "planned",
  "blocked",
];

export function Progress({
  counts,
  label,
  large = false,
}: {
  counts: StateCounts;
  label: string;
  large?: boolean;
}) {
  const total = wantedItems(counts);
  const done = counts.archived ?? 0;
  return (
    <div
      class={large ? "bar large" : "bar"}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={Math.max(1, total)}
      aria-valuenow={done}
      aria-valuetext={`${number(done)} of ${number(total)} archived`}
    >
      {barOrder
        .filter((state) => (counts[state] ?? 0) > 0)
        .map((state) => (
          <span key={state} class={`fill ${state}`} style={{ flexGrow: counts[state] }} />
        ))}
    </div>
  );
}

export function StateCountList({ counts }: { counts: StateCounts }) {
  const some = orderedStates.filter((state) => (counts[state] ?? 0) > 0);
  return (
    <ul class="counts">
      {some.map((state) => (
        <li key={state}>
          <i class={`dot ${state}`} />
          <b>{number(counts[state] ?? 0)}</b> {stateWords[state]}
        </li>
      ))}
    </ul>
  );
}

export function StateBadge({ state }: { state: ItemState }) {
  return (
    <span class="state">
      <i class={`dot ${state}`} />
      {stateWords[state]}
    </span>
  );
}
