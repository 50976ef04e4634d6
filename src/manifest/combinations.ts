import type { Problem } from "../core/problem.js";
import { count } from "../text/amounts.js";
import { cutText } from "../text/terminal.js";
import { paramKey } from "./shape/columns.js";
import type { Mark } from "./shape/manifest.js";
import type {
  Axis,
  Cells,
  Condition,
  SourceJob,
  SourceRow,
  SourceSetting,
  SourceStep,
  Written,
} from "./shape/source.js";

/** One combination for each row: a value from every axis, and a step. */
export interface Combination {
  /** Columns and variables that the axes set. */
  cells: Cells;
  /** The fields of the step, which override the row. */
  stepCells: Cells;
  marks: Record<string, Mark>;
  /** Part of ids and names, such as `de-16x9`. */
  label: string;
  /** The label without the step: all steps of one chain share it. */
  base: string;
  /** For messages, such as `lang=de, aspect_ratio=16:9`. */
  text: string;
  step: string | null;
  approve: boolean;
  /** It is left out where one of these says no. */
  when: readonly Condition[];
}

const onlyOne: Combination = {
  cells: {},
  stepCells: {},
  marks: {},
  label: "",
  base: "",
  text: "",
  step: null,
  approve: false,
  when: [],
};

/** Every combination of a job, in order: the first axis changes slowest, then come the steps. */
export function combinationsOf(job: SourceJob | undefined): Combination[] {
  if (!job) return [onlyOne];
  const when = job.when === undefined ? [] : [job.when];
  const base = combined([{ ...onlyOne, approve: job.approve, when }], job.axes);
  if (job.steps.length === 0) return base;
  return base.flatMap((each) => job.steps.flatMap((step) => combined([withStep(each, step)], step.axes)));
}

/** The column of a job with steps that names the step of each item. */
const stepColumn = "step";

/** The columns that a job adds to those of its rows. */
export function addedColumns(job: SourceJob | undefined): string[] {
  const keys = axesOf(job).flatMap(({ keys }) => keys);
  return job === undefined || job.steps.length === 0 ? keys : [...keys, stepColumn];
}

export function axesOf(job: SourceJob | undefined): Axis[] {
  return job ? [...job.axes, ...job.steps.flatMap((step) => step.axes)] : [];
}

/** The number of combinations of a row, without making them: one entry for each step, with the step's own `repeat`. */
function partsOf(job: SourceJob | undefined): { combinations: number; repeat: string | undefined }[] {
  const product = (axes: readonly Axis[]) => axes.reduce((number, axis) => number * axis.settings.length, 1);
  if (!job) return [{ combinations: 1, repeat: undefined }];
  const all = product(job.axes);
  if (job.steps.length === 0) return [{ combinations: all, repeat: undefined }];
  return job.steps.map(({ axes, cells }) => ({ combinations: all * product(axes), repeat: cells["repeat"] }));
}

export const itemsMaxDefault = 100_000;

/**
 * Counts the items of a job before they are made, to refuse a job that multiplies to far too many. A plain sheet may have
 * any number of rows.
 */
export class Bound {
  rows = 0;
  private made = 0;
  private readonly parts: ReturnType<typeof partsOf>;
  private readonly each: number;
  private readonly shared: number;

  constructor(
    private readonly job: SourceJob | undefined,
    private readonly itemsMax: number,
  ) {
    this.parts = partsOf(job);
    this.each = this.parts.reduce((sum, { combinations }) => sum + combinations, 0);
    this.shared = copies(job?.defaults.cells["repeat"]);
  }

  add({ repeat }: Cells): void {
    this.rows++;
    const own = copies(repeat, this.shared);
    for (const part of this.parts) this.made += copies(part.repeat, own) * part.combinations;
  }

  /** The limit is reached: items are only counted. */
  get exceeded(): boolean {
    return this.made > this.itemsMax && this.made > this.rows;
  }

  problem(file: string): Problem {
    const { job, rows, made, each, itemsMax } = this;
    const factors = [
      count(rows, "row"),
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

  /** One row alone exceeds the limit. */
  get eachExceeds(): boolean {
    return this.each > this.itemsMax && this.each > 1;
  }
}

/** A cell without a number counts as one here; the row reports it later. */
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

function withSetting(to: Combination, { cells, marks, label, when }: SourceSetting): Combination {
  const said = Object.entries(cells).map(([key, value]) => {
    return `${key.replace(/^params\./, "")}=${cutText(value, textCharactersMax)}`;
  });
  return {
    cells: { ...to.cells, ...cells },
    stepCells: to.stepCells,
    marks: { ...to.marks, ...marks },
    label: [to.label, label].filter(Boolean).join("-"),
    base: to.base,
    step: to.step,
    approve: to.approve,
    when: [...to.when, ...when],
    text: [to.text, ...said].filter(Boolean).join(", "),
  };
}

function withStep(to: Combination, step: SourceStep): Combination {
  return {
    cells: to.cells,
    stepCells: step.cells,
    marks: { ...to.marks, ...step.marks },
    label: [to.label, step.name].filter(Boolean).join("-"),
    base: to.label,
    step: step.name,
    approve: to.approve || step.approve,
    when: step.when === undefined ? to.when : [...to.when, step.when],
    text: [to.text, `step ${step.name}`].filter(Boolean).join(", "),
  };
}

/** Where a field's text comes from: steps and axes override the row, which overrides defaults. */
export class Layers {
  readonly label: string;
  readonly base: string;
  /** For messages, such as `lang=de`. */
  readonly text: string;
  readonly axes: Cells;
  /** The step's name. */
  readonly step: string | null;
  readonly approve: boolean;
  readonly when: readonly Condition[];
  private readonly stepCells: Cells;
  private readonly defaults: Written;
  /** Places of what the axes and the step set. */
  private readonly ofJob: Record<string, Mark>;
  private readonly severalSteps: boolean;
  private readonly onlyRow: boolean;
  /** Places of what the defaults, the axes and the step set: of everything except the row. */
  private readonly jobMarks: Record<string, Mark>;

  constructor(
    { defaults, job }: { defaults: Written; job: SourceJob | undefined },
    { cells, stepCells, label, base, text, marks, step, approve, when }: Combination,
  ) {
    this.defaults = defaults;
    this.label = label;
    this.base = base;
    this.text = text;
    this.axes = cells;
    this.stepCells = stepCells;
    this.step = step;
    this.approve = approve;
    this.when = when;
    this.severalSteps = (job?.steps.length ?? 0) > 1;
    this.ofJob = marks;
    this.jobMarks = { ...defaults.marks, ...marks };
    this.onlyRow = [defaults.cells, cells, stepCells].every((layer) => Object.keys(layer).length === 0);
  }

  /** All fields of a row. Do not change the object. */
  written(row: SourceRow): Cells {
    if (this.onlyRow) return row.cells;
    const cells: Cells = {};
    put(cells, this.defaults.cells);
    put(cells, row.cells);
    put(cells, this.axes);
    put(cells, this.stepCells);
    return cells;
  }

  /** The row as written, with the values of its combination and its step. A column of that name is the sheet's own. */
  columns(row: SourceRow): Cells {
    if (this.label === "") return row.cells;
    const cells = { ...row.cells, ...this.axes };
    if (this.step !== null) cells[stepColumn] ??= this.step;
    return cells;
  }

  marks(row: SourceRow): Record<string, Mark> {
    if (row.marks === undefined) return this.jobMarks;
    return { ...this.defaults.marks, ...row.marks, ...this.ofJob };
  }

  /** Whether a param comes from elsewhere than the row: it is then left out for a model that does not take it. */
  byDefault(column: string, row: SourceRow): boolean {
    if (Object.hasOwn(this.stepCells, column)) return false;
    // A row may have several models, and a param of one may not suit another.
    if (this.severalSteps && paramKey(column) !== null) return true;
    return !Object.hasOwn(this.axes, column) && !Object.hasOwn(row.cells, column);
  }

  /** Whether a step or an axis sets a column, whatever the row has in it. */
  overrides(column: string): boolean {
    return Object.hasOwn(this.stepCells, column) || Object.hasOwn(this.axes, column);
  }

  origin(column: string, row: SourceRow): { mark: Mark | undefined; ofJob: boolean } {
    const { stepCells, axes } = this;
    const has = (layer: Cells) => Object.hasOwn(layer, column);
    const ofRow = has(row.cells) && !has(axes) && !has(stepCells);
    const layer = has(stepCells) || has(axes) ? this.ofJob : this.defaults.marks;
    return { mark: (ofRow ? row.marks : layer)?.[column], ofJob: !ofRow };
  }
}

/** Assigns key by key: spreading several objects takes many times as long, and this runs for every row. */
function put(cells: Cells, layer: Cells): void {
  for (const column in layer) cells[column] = layer[column] as string;
}
