import type { Combination } from "./combinations.js";
import { paramKey } from "./shape/columns.js";
import type { Mark } from "./shape/manifest.js";
import type { Cells, Job, SourceRow, Written } from "./shape/source.js";

/** Where a field's text comes from: a step says more than the row, an axis as well, and a default says least. */
export class Layers {
  readonly label: string;
  /** For messages, such as `lang=de`. */
  readonly text: string;
  readonly axes: Cells;
  /** The step's name. */
  readonly step: string | null;
  private readonly stepCells: Cells;
  private readonly defaults: Written;
  /** Of everything but the row. */
  private readonly ofJob: Record<string, Mark>;
  private readonly severalSteps: boolean;
  private readonly onlyRow: boolean;
  private readonly jobMarks: Record<string, Mark>;

  constructor(
    { defaults, job }: { defaults: Written; job: Job | undefined },
    { cells, stepCells, label, text, marks }: Combination,
  ) {
    this.defaults = defaults;
    this.label = label;
    this.text = text;
    this.axes = cells;
    this.stepCells = stepCells;
    this.step = job?.steps.find((step) => step.cells === stepCells)?.name ?? null;
    this.severalSteps = (job?.steps.length ?? 0) > 1;
    this.ofJob = marks;
    this.jobMarks = { ...defaults.marks, ...marks };
    this.onlyRow = [defaults.cells, cells, stepCells].every((layer) => Object.keys(layer).length === 0);
  }

  /** All that is said of a row: not to be changed. */
  written(row: SourceRow): Cells {
    if (this.onlyRow) return row.cells;
    const cells: Cells = {};
    put(cells, this.defaults.cells);
    put(cells, row.cells);
    put(cells, this.axes);
    put(cells, this.stepCells);
    return cells;
  }

  /** The row as written, and what its combination adds. */
  columns(row: SourceRow): Cells {
    return this.label === "" ? row.cells : { ...row.cells, ...this.axes };
  }

  marks(row: SourceRow): Record<string, Mark> {
    if (row.marks === undefined) return this.jobMarks;
    return { ...this.defaults.marks, ...row.marks, ...this.ofJob };
  }

  /** Whether the row does not ask for it by itself: a model that does not take it goes without. */
  byDefault(column: string, row: SourceRow): boolean {
    if (Object.hasOwn(this.stepCells, column)) return false;
    // One row, several models: what is meant for the picture is not meant for the voice.
    if (this.severalSteps && paramKey(column) !== null) return true;
    return !Object.hasOwn(this.axes, column) && !Object.hasOwn(row.cells, column);
  }

  origin(column: string, row: SourceRow): { mark: Mark | undefined; ofJob: boolean } {
    const { stepCells, axes } = this;
    const has = (layer: Cells) => Object.hasOwn(layer, column);
    const ofRow = has(row.cells) && !has(axes) && !has(stepCells);
    const layer = has(stepCells) || has(axes) ? this.ofJob : this.defaults.marks;
    return { mark: (ofRow ? row.marks : layer)?.[column], ofJob: !ofRow };
  }
}

/** One by one: spreading several objects into one takes many times as long, and is done for every row. */
function put(cells: Cells, layer: Cells): void {
  for (const column in layer) cells[column] = layer[column] as string;
}
