import { foldName, safeName, segmentBytesMax } from "../archive/disk/names.js";
import type { Problem } from "../core/problem.js";
import { copyName, copyOutput } from "../manifest/shape/columns.js";
import { cellPlace, type Row } from "../manifest/shape/manifest.js";
import { CompactTextMap } from "../text/compact-text-map.js";
import { shortText } from "../text/terminal.js";
import { Gathered } from "./findings.js";

/**
 * Names that two items would share, or that lead out of the output folder. On many disks, two names that differ only in
 * capitals are one file; so may be two forbidden names once they are made safe. All rows are checked, even wrong ones,
 * so that all problems are reported together.
 */
export class ItemNames {
  /** Names, each with twice the number of its row, plus one if the same text is the row's id. */
  private readonly names = new CompactTextMap();
  /** All other ids, each with twice the number of its row, plus one if it is the id of a copy. Most sheets have none. */
  private readonly ids = new CompactTextMap();
  private readonly changed = new Gathered();

  /** The names of files whose own names are forbidden on some system, or too long. */
  notes(): string[] {
    return this.changed.lines();
  }

  /** The problems of the next row's id and output. */
  check(row: Row): Problem[] {
    const { id } = row;
    if (id !== null && row.output === null && row.repeat === 1 && isSmall.test(id))
      return this.small(row, id);
    const earlier = id === null ? null : this.idBefore(id, row.number * 2);
    const twin = id !== null && earlier !== null && earlier % 2 === 0;
    const twins = twin ? [twinProblem(row, id, earlier / 2)] : none;
    const outside = row.output === null ? null : outsideProblem(row, row.output);
    if (outside) return [...twins, outside];
    const clash = this.clash(row, twin, earlier);
    return clash ? [...twins, clash] : twins;
  }

  /** A row whose id is also its file's name, as in nearly all sheets: one entry serves for both. */
  private small(row: Row, id: string): Problem[] {
    const name = this.names.put(id, row.number * 2 + 1);
    const isId = name === null || name % 2 === 1;
    const earlier = isId
      ? (this.ids.find(id) ?? (name === null ? null : name - 1))
      : this.ids.put(id, row.number * 2);
    if (earlier !== null && earlier % 2 === 0) return [twinProblem(row, id, earlier / 2)];
    const taken = earlier ?? name;
    return taken === null ? none : [clashProblem(row, Math.floor(taken / 2), "id", id)];
  }

  /**
   * Twice the number of the first row with this id, plus one if it is the id of that row's copy. Null for a new id, which
   * is kept with `own`.
   */
  private idBefore(id: string, own: number): number | null {
    const kept = this.ids.find(id);
    if (kept !== null) return kept;
    const name = this.names.find(id);
    return name !== null && name % 2 === 1 ? name - 1 : this.ids.put(id, own);
  }

  private clash(row: Row, isTwin: boolean, earlier: number | null): Problem | null {
    let clash: Problem | null = null;
    for (let copy = 1; copy <= row.repeat; copy++) {
      const id = row.id === null ? null : copyName(row.id, copy);
      const name = copyOutput(row, copy) ?? id;
      const taken = id === null ? null : copy === 1 ? earlier : this.idBefore(id, row.number * 2 + 1);
      if (id !== null && taken !== null && !isTwin)
        clash ??= clashProblem(row, Math.floor(taken / 2), "id", id);
      if (name === null) continue;
      const other = this.names.put(this.folded(name, row), row.number * 2);
      // The shared id was reported already, so the shared name is not.
      if (other === null || (isTwin && row.output === null)) continue;
      clash ??= clashProblem(row, Math.floor(other / 2), row.output === null ? "id" : "output", name);
    }
    return clash;
  }

  /** A form of the safe name that is equal for all names that are the same file on some disk. */
  private folded(name: string, row: Row): string {
    if (isPlain.test(name)) return name.toLowerCase();
    const safe = safeName(name);
    if (safe !== name.normalize("NFC"))
      this.changed.add(`"${shown(name)}" is saved as "${shown(safe)}"`, row.number);
    return foldName(safe);
  }
}

/** Names that are clearly safe: they are longer than every reserved name, and contain no media extension. */
const isPlain = /^[a-z0-9][a-z0-9_-]{4,78}[a-z0-9]$/i;

/** Clearly safe names without capitals, which folding does not change. */
const isSmall = /^[a-z0-9][a-z0-9_-]{4,78}[a-z0-9]$/;

const none: Problem[] = [];
const shownMax = 60;

function shown(name: string): string {
  return shortText(name, shownMax);
}

/** The first row with an id keeps it; the later ones are the problem. */
function twinProblem(row: Row, id: string, earlier: number): Problem {
  const same = earlier === row.number;
  return {
    place: cellPlace(row, "id"),
    message: same
      ? `several items of row ${row.number} have the same id`
      : `rows ${earlier} and ${row.number} have the same id`,
    expected: same
      ? "an id template or values of the matrix that differ for each item"
      : "a unique id, or none",
    got: id,
  };
}

function outsideProblem(row: Row, output: string): Problem | null {
  const steps = output.split(/[\\/]/);
  if (!steps.includes("..") && steps[0] !== "" && !/^[a-z]:/i.test(output)) return null;
  return {
    place: cellPlace(row, "output"),
    message: "the output path leads outside the output folder",
    expected: "a file name, or folders and a file name inside the output folder",
    got: output,
  };
}

function clashProblem(row: Row, other: number, column: "id" | "output", name: string): Problem {
  const what = column === "id" ? "give their items the same file name" : "want the same output";
  const isCut = name
    .split(/[\\/]/)
    .some((part) => Buffer.byteLength(part.normalize("NFC")) > segmentBytesMax);
  const whose =
    other === row.number ? `several items of row ${row.number}` : `rows ${other} and ${row.number}`;
  return {
    place: cellPlace(row, column),
    message: `${whose} ${what}${isCut ? `: each part of a name is cut after ${segmentBytesMax} bytes` : ""}`,
    expected: isCut
      ? `names that differ within their first ${segmentBytesMax} bytes (ignoring case)`
      : "a different name for each item (ignoring case)",
    got: name,
  };
}
