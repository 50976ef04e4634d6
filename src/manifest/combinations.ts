import type { Problem } from "../core/problem.js";
import type { Mark } from "./shape/manifest.js";
import type { Axis, Cells, Job, Setting, Step } from "./shape/source.js";

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
export function combinationsOf(job: Job | undefined): Combination[] {
  if (!job) return [onlyOne];
  const base = combined([onlyOne], job.axes);
  if (job.steps.length === 0) return base;
  return base.flatMap((each) => job.steps.flatMap((step) => combined([withStep(each, step)], step.axes)));
}

/** The axes of a job and of its steps. */
export function axesOf(job: Job | undefined): Axis[] {
  return job ? [...job.axes, ...job.steps.flatMap((step) => step.axes)] : [];
}

/** How many there are, without making them. */
function countOf(job: Job | undefined): number {
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
    private readonly job: Job | undefined,
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

function withSetting(to: Combination, { cells, marks, label }: Setting): Combination {
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

function withStep(to: Combination, step: Step): Combination {
  return {
    cells: to.cells,
    stepCells: step.cells,
    marks: { ...to.marks, ...step.marks },
    label: [to.label, step.name].filter(Boolean).join("-"),
    text: [to.text, `step ${step.name}`].filter(Boolean).join(", "),
  };
}
