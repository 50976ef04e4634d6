import { count } from "../text/amounts.js";
import { terminalText } from "../text/terminal.js";
import type { Adoption } from "../upkeep/archive/adopt-folder.js";
import { shownPath } from "./problem-text.js";

const linesMax = 20;

/** Paths are relative to `folder` if that is shorter. */
export function adoptionText(adoption: Adoption & { dryRun: boolean }, folder: string): string {
  const { job, dryRun, taken, refused, kept, unmatched, left } = adoption;
  const seen = (path: string) => shownPath(path, folder);
  const done = dryRun ? "would be taken" : "taken";
  return [
    `${job}: ${count(taken.length, "file")} ${done} into the archive at no cost`,
    ...listed(
      taken,
      ({ rowId, from, file }) => `${rowId}: ${seen(from)}${file === null ? "" : ` as ${file}`}`,
    ),
    ...(refused.length === 0 ? [] : [`${count(refused.length, "file")} not taken:`]),
    ...listed(refused, ({ rowId, from, reason }) => `${rowId}: ${seen(from)}: ${reason}`),
    ...(kept.length === 0
      ? []
      : [`${count(kept.length, "file")} left alone: their rows are archived, submitted or skipped`]),
    ...listed(kept, seen),
    ...(unmatched.length === 0 ? [] : [`${count(unmatched.length, "file")} without a row of that name:`]),
    ...listed(unmatched, seen),
    `${count(left, "item")} left to make`,
  ].join("\n");
}

function listed<Each>(all: readonly Each[], line: (each: Each) => string): string[] {
  const more = all.length - linesMax;
  return [
    ...all.slice(0, linesMax).map((each) => `- ${terminalText(line(each))}`),
    ...(more > 0 ? [`and ${more} more`] : []),
  ];
}
