import { basename } from "node:path";
import { EarlyExit } from "../../core/exit.js";
import { openSource } from "../../manifest/read.js";
import { someOf } from "../../text/reasons.js";
import { terminalText } from "../../text/terminal.js";

/**
 * What a review file says about an item. A review file is a sheet with the columns `id` and `decision`, such as a
 * gallery writes.
 */
const reviewDecisions = ["approve", "pick", "reject", "redo"] as const;
export type ReviewDecision = (typeof reviewDecisions)[number];

/** A name in a review file. */
export interface ReviewedName {
  name: string;
  decision: ReviewDecision;
  /** Where it stands, such as `review.csv, row 3`. */
  place: string;
}

/** How a person names an item: on the command line, or in a review file. */
export type ItemName = string | ReviewedName;

/** The columns of a review file; `row` and `path` of one that a gallery saves are for people. */
const reviewColumns: readonly string[] = ["id", "decision", "row", "path"];

/**
 * The names of the items for which a review file has these decisions; `note` gets the columns that nothing reads. Throws EarlyExit
 * if it has none, or if the file cannot be read.
 */
export async function reviewedNames(
  file: string,
  decisions: readonly ReviewDecision[],
  note: (text: string) => void,
): Promise<ReviewedName[]> {
  const { columns, problems, batches } = await openSource(file, { called: "review file" });
  const names: ReviewedName[] = [];
  const others = new Set<ReviewDecision>();
  const wrong = problems.map(({ message, got, nearest }) =>
    nearest === undefined ? `${message}: got ${got}` : `${message}; did you mean ${nearest}?`,
  );
  for await (const batch of batches()) {
    for (const { cells, number } of batch.rows) {
      const name = cells["id"]?.trim() ?? "";
      const text = (cells["decision"] ?? "").trim().toLowerCase();
      if (name === "" || text === "") continue;
      const decision = reviewDecisions.find((known) => known === text);
      if (decision === undefined)
        wrong.push(
          `row ${number}: expected ${reviewDecisions.join(", ")} as decision, got ${JSON.stringify(text)}`,
        );
      else if (decisions.includes(decision))
        names.push({ name, decision, place: `${basename(file)}, row ${number}` });
      else others.add(decision);
    }
  }
  if (wrong.length > 0)
    throw new EarlyExit("usage", `${file} cannot be used:\n  ${wrong.join("\n  ")}\nNothing was changed.`);
  const unused = columns.filter((column) => !reviewColumns.includes(column));
  if (names.length > 0 && unused.length > 0) note(unusedText(unused, basename(file)));
  if (names.length > 0) return names;
  throw new EarlyExit(
    "usage",
    others.size === 0
      ? `${file} has no decisions: expected a sheet with the columns id and decision, one item a row`
      : `${file} has no decision that this command takes (${decisions.join(", ")}), only ${[...others].join(", ")}`,
  );
}

function unusedText(columns: readonly string[], file: string): string {
  const [column, are] = columns.length === 1 ? ["column", "is"] : ["columns", "are"];
  return `the ${column} ${someOf(columns)} of ${terminalText(file)} ${are} not used: only id and decision are read`;
}

/** Puts the place of a name in front of a message about its item. */
export function placed(name: ItemName, message: string): string {
  return typeof name === "string" ? message : `${name.place}: ${message}`;
}
