import type { Problem } from "../core/problem.js";
import { copyName, outputName } from "../manifest/item-names.js";
import { cellPlace, type Row } from "../manifest/manifest.js";

/**
 * Names that would be taken twice, or lead out of the output folder. Two names that differ only in capitals are one
 * file on many disks. All rows are looked at, also wrong ones, so that everything is told at once.
 */
export function nameProblems(rows: readonly Row[]): Problem[] {
  const names = new Map<string, Row>();
  const ids = new Map<string, Row>();
  return rows.flatMap((row) => {
    const outside = row.output === null ? null : outsideProblem(row, row.output);
    if (outside) return [outside];
    const clash = clashOf(row, names, ids);
    return clash ? [clash] : [];
  });
}

function outsideProblem(row: Row, output: string): Problem | null {
  const steps = output.split(/[\\/]/);
  if (!steps.includes("..") && steps[0] !== "" && !/^[a-z]:/i.test(output)) return null;
  return {
    place: cellPlace(row, "output"),
    message: "the output leads out of the output folder",
    expected: "a name, or folders and a name below the output folder",
    got: output,
  };
}

function clashOf(row: Row, names: Map<string, Row>, ids: Map<string, Row>): Problem | null {
  let clash: Problem | null = null;
  for (let copy = 1; copy <= row.repeat; copy++) {
    const id = row.id === null ? null : copyName(row.id, copy);
    const name = row.output === null ? id : copyName(outputName(row.output), copy);
    // Two rows with one id were told when the file was read; their names need no second telling.
    const twin = id === null ? undefined : ids.get(id);
    const told = twin !== undefined && twin.id === row.id;
    if (id !== null && twin === undefined) ids.set(id, row);
    if (id !== null && twin && !told) clash ??= clashProblem(row, twin, "id", id);
    if (name === null) continue;
    const taken = names.get(folded(name));
    if (taken === undefined) names.set(folded(name), row);
    else if (taken !== row && !(told && row.output === null)) {
      clash ??= clashProblem(row, taken, row.output === null ? "id" : "output", name);
    }
  }
  return clash;
}

function folded(name: string): string {
  return name.normalize("NFC").toLowerCase();
}

function clashProblem(row: Row, other: Row, column: "id" | "output", name: string): Problem {
  const what = column === "id" ? "give their items the same name" : "want the same output";
  const whose =
    other.number === row.number
      ? `several items of row ${row.number}`
      : `rows ${other.number} and ${row.number}`;
  return {
    place: cellPlace(row, column),
    message: `${whose} ${what}`,
    expected: "a name of its own for each item (capitals make no difference)",
    got: name,
  };
}
