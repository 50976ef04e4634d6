import type { Run, Store } from "../../core/ports/store.js";

/**
 * The edition of a job that a run belongs to. The first one has the empty name; `--edition NAME` makes everything anew
 * under that name, once; `--fresh` numbers them, and goes on with the newest while it is unfinished, so that a nightly
 * run that is started again after a crash pays nothing twice.
 */
export type EditionChoice = { name: string } | "fresh" | "first";

export async function editionOf(
  choice: EditionChoice,
  store: Store | null,
  jobName: string,
): Promise<string> {
  if (choice === "first") return "";
  if (choice !== "fresh") return choice.name;
  if (store === null) return "";
  const runs = (await store.runs()).filter((run) => run.jobName === jobName && numberOf(run) !== null);
  const newest = runs.toSorted((a, b) => (numberOf(a) ?? 0) - (numberOf(b) ?? 0) || a.id - b.id).at(-1);
  if (!newest) return "";
  return newest.state === "finished" || newest.state === "cancelled"
    ? `#${(numberOf(newest) ?? 1) + 1}`
    : newest.edition;
}

/** The number of a numbered edition: 1 for the first, null for one with a name. */
function numberOf({ edition }: Pick<Run, "edition">): number | null {
  if (edition === "") return 1;
  const match = /^#(\d+)$/.exec(edition);
  return match ? Number(match[1]) : null;
}
