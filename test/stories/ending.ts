import { expect } from "vitest";
import { type Commands, creditsOf, documentOf } from "./commands.js";
import type { Desk, Planned } from "./desk.js";
import { isCharged, promptOf } from "./sheets.js";

/** What was paid for is in an archive. */
export function checkCollected(
  commands: Commands,
  desks: readonly Desk[],
  tooLate: ReadonlySet<string>,
): void {
  const known = new Set(desks.flatMap(({ files }) => files.lines()).map(({ task }) => task));
  const missing = commands
    .made()
    .filter((task, at) => isCharged(task) && !commands.unanswered.has(at))
    .filter(({ id }) => !known.has(id) && !tooLate.has(id));
  expect(missing, "paid for and not archived").toEqual([]);
}

/** The runs have spent what the accounts were charged. */
export async function checkBooks(commands: Commands, desks: readonly Desk[]): Promise<void> {
  let [spent, pending] = [0, 0];
  for (const desk of desks) {
    for (let run = 1; run <= desk.runsMax; run++) {
      const status = documentOf<{ credits: Record<"spent" | "pending" | "lost", number> }>(
        await commands.run(desk, ["status", String(run), "--json"]),
      );
      spent += status?.credits.spent ?? 0;
      pending += (status?.credits.pending ?? 0) + (status?.credits.lost ?? 0);
    }
  }
  const charged = creditsOf(commands.made());
  expect(spent, "credits in the books").toBeLessThanOrEqual(charged);
  expect(
    spent + pending,
    "credits in the books, with those that may have been charged",
  ).toBeGreaterThanOrEqual(charged);
}

/** Each row of a sheet has the picture that it wants, and no other. */
export async function checkFiles(commands: Commands, desk: Desk, name: string): Promise<void> {
  const planned = await commands.run(desk, ["plan", desk.sheets.manifest(name), "--json"]);
  const plan = documentOf<Planned>(planned);
  const rows = desk.sheets.rows(name);
  const isMade = planned.code === 0 && plan?.edition === "" && plan.states["archived"] === rows.length;
  const { hasAdopted, hasTwoFolders, hasBucketAlone, hasTwoUsers } = desk;
  const isElsewhere = hasTwoFolders || hasBucketAlone;
  // Files elsewhere stay there under their names, and of two sheets of a job the last one names them.
  if (!isMade || hasAdopted || isElsewhere || hasTwoUsers || desk.hasTwoSheets(plan.job)) return;
  const prompts = new Map(commands.made().map(({ id, prompt }) => [id, prompt]));
  const lost = new Set(plan.missing.map(({ rowId }) => rowId));
  const files = desk.files.ofJob(plan.job).filter(({ file }) => !/^(_|edition-)/.test(file));
  for (const row of rows.filter(({ id }) => !lost.has(id))) {
    const own = new Set(files.filter(({ item }) => item === row.id).map(({ task }) => prompts.get(task)));
    expect(own, `files of ${row.id} of ${name}`).toContain(promptOf(row));
    // A repair puts the file of an earlier version of the row beside the row's own.
    if (!desk.hasHarmed) expect(own.size, `files of ${row.id} of ${name}`).toBe(1);
  }
}
