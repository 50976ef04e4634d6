import { openWorkspace, readIndex } from "bulkgen";

/** Lists what a workspace has made: each job's newest run, and its files with the prompts that they were made from. */
export async function listArchive(folder: string, options: { sandbox?: boolean } = {}): Promise<string[]> {
  const workspace = await openWorkspace(folder, options);
  const lines: string[] = [];
  try {
    const folders = new Set<string>();
    for (const { run, job, state, credits, folder: jobFolder } of await workspace.runs()) {
      if (folders.has(jobFolder)) continue;
      folders.add(jobFolder);
      lines.push(`${job}, run ${run}: ${state}, ${credits.spent} credits`);
      const { items } = await workspace.items(run, { state: "failed" });
      lines.push(...items.map(({ rowId, note }) => `  ${rowId} failed: ${note}`));
      for (const { file, prompt, sha256, credits } of await readIndex(jobFolder))
        lines.push(`  ${file}  ${sha256.slice(0, 8)}  ${credits} credits  ${prompt}`);
    }
  } finally {
    await workspace.close();
  }
  return lines;
}
