import type { PickStanding, Store } from "../../core/ports/store.js";
import type { Plan } from "../../plan/plan.js";
import { groupedReasons } from "../../text/reasons.js";

/** A picked file that its row does not ask for any more. No export has it until somebody picks again. */
export interface StalePick {
  itemId: number;
  rowId: string;
  job: string;
  reason: string;
}

export const pickReasons = {
  replaced: "the picked file was replaced by a new version; pick again",
  changed: "the picked file is an earlier version; pick again when the new version is archived",
  removed: "the row of the picked file is no longer in the sheet",
} as const satisfies Record<Exclude<PickStanding["now"], "current">, string>;

/** The picks whose rows were changed or removed since: of a job, or of one of its editions, or all. */
export async function stalePicks(
  store: Pick<Store, "pickStandings">,
  of: { jobId?: number; edition?: string } = {},
): Promise<StalePick[]> {
  return (await store.pickStandings(of.jobId)).flatMap(({ itemId, rowId, job, edition, now }) =>
    now === "current" || edition !== (of.edition ?? edition)
      ? []
      : [{ itemId, rowId, job, reason: pickReasons[now] }],
  );
}

/** One line for each reason, with the rows. */
export function stalePicksLines(picks: readonly Pick<StalePick, "rowId" | "reason">[]): string[] {
  return groupedReasons(
    picks.map(({ rowId, reason }) => ({ rowId, reason, kind: "" })),
    Object.keys(pickReasons).length,
  );
}

/** What a plan says about picks whose rows will ask for another version, or are gone: one line for each reason. */
export async function picksToReplace(
  store: Pick<Store, "pickStandings">,
  { job, edition, vanished }: Pick<Plan, "job" | "edition" | "vanished">,
): Promise<string[]> {
  const picks = (await store.pickStandings()).filter(
    (each) => each.job === job && each.edition === edition && each.now === "current",
  );
  if (picks.length === 0) return [];
  const leaving = new Map([...vanished].map(({ key, hasRow }) => [key, hasRow]));
  const lines = picks.flatMap(({ rowId, originalKey }) => {
    const hasRow = leaving.get(originalKey);
    if (hasRow === undefined) return [];
    return [{ rowId, reason: hasRow ? willBeReplaced : pickReasons.removed }];
  });
  return stalePicksLines(lines);
}

const willBeReplaced = "the picked file will be replaced by a new version; pick again after the run";
