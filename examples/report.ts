import { openWorkspace, type ReportDocument, type StatusDocument } from "bulkgen";

/** What a workspace did since then, and what waits for a person: for a mail in the morning. */
export async function reportSince(
  since: Date,
  folder: string,
  options: { sandbox?: boolean } = {},
): Promise<string[]> {
  const workspace = await openWorkspace(folder, options);
  try {
    return [...sumsOf(await workspace.report(since)), ...troubleOf(await workspace.status())];
  } finally {
    await workspace.close();
  }
}

function sumsOf({ totals, runs }: ReportDocument): string[] {
  const { archived, failed, credits } = totals;
  return [
    `${archived} archived, ${failed} failed, ${credits.spent} credits`,
    ...runs.map(({ run, job, exitName, state }) => `${job}, run ${run}: ${exitName ?? state}`),
  ];
}

/** Items of the newest run that failed, or that cannot go on. */
function troubleOf(status: StatusDocument | null): string[] {
  const trouble = status?.trouble ?? [];
  return trouble.map(({ rowId, state, reason }) => `  ${rowId} is ${state}: ${reason}`);
}
