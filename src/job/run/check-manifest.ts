import type { Problem } from "../../core/problem.js";
import { openManifest, type ReadOptions } from "../../manifest/read.js";
import { ItemNames } from "../../plan/names.js";

/** Problems that are kept of a manifest that is only looked at. */
const problemsMax = 10_000;

/** What is wrong with a manifest, as far as it can be told without the service, and how many rows can be read. */
export async function checkedManifest(
  path: string,
  options: ReadOptions,
): Promise<{ problems: Problem[]; rows: number }> {
  const names = new ItemNames();
  const problems: Problem[] = [];
  const found = (some: readonly Problem[]) => problems.push(...some.slice(0, problemsMax - problems.length));
  const parts = (await openManifest(path, options)).parts();
  let rows = 0;
  for (;;) {
    const { value, done } = await parts.next();
    if (done) {
      if (value.refusal) problems.unshift(value.refusal);
      return { problems, rows: value.refusal ? 0 : rows };
    }
    rows += value.rows.length;
    found(value.problems);
    for (const row of value.rows) found(names.check(row));
  }
}
