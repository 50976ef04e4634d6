import type { Problem } from "../../src/core/problem.js";
import { openManifest, type ReadOptions } from "../../src/manifest/read.js";
import type { End, Manifest, Row } from "../../src/manifest/shape/manifest.js";
import type { Source, SourceRow } from "../../src/manifest/shape/source.js";
import { ItemNames } from "../../src/plan/names.js";

/** A manifest with all of its rows and everything that is wrong with them, in the order of the sheet. */
export interface ReadManifest extends Omit<Manifest, "parts">, Omit<End, "refusal"> {
  rows: Row[];
  problems: Problem[];
}

export async function readManifest(path: string, options: ReadOptions = {}): Promise<ReadManifest> {
  return readWhole(await openManifest(path, options));
}

async function readWhole({ parts, ...manifest }: Manifest): Promise<ReadManifest> {
  const names = new ItemNames();
  const rows: Row[] = [];
  const problems: Problem[] = [];
  const all = parts();
  for (;;) {
    const { value, done } = await all.next();
    if (done) {
      const { refusal, ...end } = value;
      const told = refusal ? [refusal] : problems.toSorted((a, b) => (a.place.row ?? 0) - (b.place.row ?? 0));
      return { ...manifest, ...end, rows: refusal ? [] : rows, problems: told };
    }
    problems.push(...value.problems);
    for (const row of value.rows) {
      rows.push(row);
      const twins = names.check(row).filter(({ message }) => message.endsWith("have the same id"));
      problems.push(...twins);
    }
  }
}

/** A source with all of its rows. */
export async function wholeSource({ batches, ...source }: Source) {
  const rows: SourceRow[] = [];
  const problems = [...source.problems];
  const notes = [...source.notes];
  for await (const batch of batches()) {
    rows.push(...batch.rows);
    problems.push(...batch.problems);
    notes.push(...(batch.notes ?? []));
  }
  return { ...source, rows, problems, notes };
}
