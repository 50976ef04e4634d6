import type { Problem } from "../core/problem.js";
import { paramKey } from "./shape/columns.js";
import type { Mark } from "./shape/manifest.js";
import type {
  Axis,
  Cells,
  SourceJob,
  SourceRow,
  SourceSetting,
  SourceStep,
  Written,
} from "./shape/source.js";

/** One way in which each row is made: a value from every axis, and a step. */
export interface Combination {
  /** What the axes set, in columns and variables. */
  cells: Cells;
  /** What the step says; it comes before what the row says. */
  stepCells: Cells;
  marks: Record<string, Mark>;
  /** Part of ids and names, such as `de-16x9`. */
  label: string;
  /** For messages, such as `lang=de, aspect_ratio=16:9`. */
  text: string;
}

const onlyOne: Combination = { cells: {}, stepCells: {}, marks: {}, label: "", text: "" };

/** Every combination of a job, in order: the first axis changes slowest, and steps come after the job's own axes. */
export function combinationsOf(job: SourceJob | undefined): Combination[] {
  if (!job) return [onlyOne];
  const base = combined([onlyOne], job.axes);
  if (job.steps.length === 0) return base;
  return base.flatMap((each) => job.steps.flatMap((step) => combined([withStep(each, step)], step.axes)));
}

/** The axes of a job and of its steps. */
export function axesOf(job: SourceJob | undefined): Axis[] {
  return job ? [...job.axes, ...job.steps.flatMap((step) => step.axes)] : [];
}

/** How many there are, without making them. */
function countOf(job: SourceJob | undefined): number {
  const product = (axes: readonly Axis[]) => axes.reduce((number, axis) => number * axis.settings.length, 1);
  if (!job) return 1;
  const steps = job.steps.length === 0 ? 1 : job.steps.reduce((sum, step) => sum + product(step.axes), 0);
  return product(job.axes) * steps;
}

export const itemsMaxDefault = 100_000;

/**
 * Counts the items that rows ask for before they are made, for a job that asks for more than anybody means. A plain
 * sheet may have any number of rows: nothing in it multiplies.
 */
export class Bound {
  rows = 0;
  private made = 0;
  private readonly each: number;
  private readonly shared: number;

  constructor(
    private readonly job: SourceJob | undefined,
    private readonly itemsMax: number,
  ) {
    this.each = countOf(job);
    this.shared = copies(job?.defaults.cells["repeat"]);
  }

  add({ repeat }: Cells): void {
    this.rows++;
    this.made += copies(repeat, this.shared) * this.each;
  }

  /** Nothing more is to be made, only counted. */
  get exceeded(): boolean {
    return this.made > this.itemsMax && this.made > this.rows;
  }

  problem(file: string): Problem {
    const { job, rows, made, each, itemsMax } = this;
    const factors = [
      rows === 1 ? "1 row" : `${rows} rows`,
      ...axesOf(job).map(({ keys, settings }) => `${settings.length} of ${keys.join("+")}`),
      ...(job && job.steps.length > 1 ? [`${job.steps.length} steps`] : []),
      ...(made > rows * each ? ["repeats"] : []),
    ];
    return {
      place: { file, row: null },
      message: `the manifest asks for ${made} items (${factors.join(" × ")})`,
      expected: `at most ${itemsMax}, or --max-items with a higher number`,
      got: String(made),
    };
  }

  /** One row alone asks for more. */
  get eachExceeds(): boolean {
    return this.each > this.itemsMax && this.each > 1;
  }
}

/** Of a cell that holds no number the row tells later; here it counts as one. */
function copies(cell: string | undefined, missing = 1): number {
  if (cell === undefined) return missing;
  const number = Number(cell);
  return Number.isInteger(number) && number > 0 ? number : 1;
}

function combined(from: readonly Combination[], axes: readonly Axis[]): Combination[] {
  return axes.reduce<readonly Combination[]>(
    (made, axis) => made.flatMap((each) => axis.settings.map((setting) => withSetting(each, setting))),
    from,
  ) as Combination[];
}

const textCharactersMax = 30;

function withSetting(to: Combination, { cells, marks, label }: SourceSetting): Combination {
  const said = Object.entries(cells).map(([key, value]) => {
    const short = value.length > textCharactersMax ? `${value.slice(0, textCharactersMax - 1)}…` : value;
    return `${key.replace(/^params\./, "")}=${short}`;
  });
  return {
    cells: { ...to.cells, ...cells },
    stepCells: to.stepCells,
    marks: { ...to.marks, ...marks },
    label: [to.label, label].filter(Boolean).join("-"),
    text: [to.text, ...said].filter(Boolean).join(", "),
  };
}

function withStep(to: Combination, step: SourceStep): Combination {
  return {
    cells: to.cells,
    stepCells: step.cells,
    marks: { ...to.marks, ...step.marks },
    label: [to.label, step.name].filter(Boolean).join("-"),
    text: [to.text, `step ${step.name}`].filter(Boolean).join(", "),
  };
}

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
    { defaults, job }: { defaults: Written; job: SourceJob | undefined },
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
