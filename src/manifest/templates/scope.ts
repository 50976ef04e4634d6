import { isKnown, paramColumn, paramKey } from "../shape/columns.js";
import { lostCellProblem } from "../shape/damage.js";
import type { LateValues } from "../shape/manifest.js";
import { type Cells, isTemplate, type SourceRow } from "../shape/source.js";
import {
  LateName,
  type Names,
  TemplateFault,
  type TemplateProblem,
  type Templates,
  type Values,
} from "./template.js";

/** Variables of every template. */
export const builtInNames = ["index", "row", "number", "step", "today"] as const;
/** Variables of file names only: they depend on the service's models and on the whole item. */
export const lateNames = ["category", "key", "copy", "take"] as const;

/** Known fields may be named without a column: then they are empty. */
const fieldNames = [
  "id",
  "model",
  "prompt",
  "image_url",
  "video_url",
  "audio_url",
  "output",
  "repeat",
  "priority",
];

/** The column `Product name` is `product_name` in templates, where names have no spaces. */
export function variableName(column: string): string {
  return column
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "_")
    .replace(/^_+|_+$/g, "");
}

/** All names that the templates of a manifest may use. */
export function namesFrom(columns: Iterable<string>): Names {
  const all = [...columns];
  const plain = all.filter((column) => paramKey(column) === null);
  const early = [...plain, ...plain.map(variableName), ...fieldNames, ...builtInNames, "params"].filter(
    Boolean,
  );
  return {
    early: new Set(early),
    top: new Set([...early, ...lateNames]),
    columns: new Set(plain),
    params: new Set(all.flatMap((column) => paramKey(column) ?? [])),
    aliases: aliasesOf(plain),
  };
}

/** Each alternative name means one column, and never hides a column of that name. */
function aliasesOf(columns: readonly string[]): Map<string, string> {
  const taken = new Set([...columns, ...builtInNames, "params", ""]);
  const aliases = new Map<string, string>();
  for (const column of new Set(columns)) {
    const alias = variableName(column);
    if (taken.has(alias)) continue;
    taken.add(alias);
    aliases.set(alias, column);
  }
  return aliases;
}

/** Which of these columns the templates use. */
export function isUsed(column: string, used: ReadonlySet<string>): boolean {
  return isKnown(column) || used.has(column) || used.has(variableName(column));
}

/** The values of a row in one combination. */
export interface Named {
  index: number;
  row: number;
  /** Of the item in the job, from 1; copies of a row have the same. */
  number: number;
  step: string | null;
  /** All known fields, with defaults filled in. */
  written: Cells;
  /** The row's cells, overridden by those of its combination. */
  cells: Cells;
  lost?: SourceRow["lost"];
  axes: Cells;
  /** Null until the service's models are known. */
  late: LateValues | null;
}

/**
 * The values for rendering one row. A value that is itself a template is rendered on demand, so values may refer to each
 * other in any order, but not in a circle.
 */
export class Scope implements Values {
  readonly param: Values["param"];
  private readonly open: string[] = [];
  /** Rendered values, which others may use several times. */
  private readonly done = new Map<string, string>();

  constructor(
    private readonly named: Named,
    private readonly shared: {
      names: Names;
      templates: Templates;
      vars: Cells;
      today: string;
      /** Told of a column of the sheet that has no value in this row. */
      onEmpty: ((column: string) => void) | null;
    },
  ) {
    this.param = {
      raw: (key) => this.cell(paramColumn(key)) ?? null,
      value: (key) => this.rendered(paramColumn(key), this.cell(paramColumn(key)) ?? null),
    };
  }

  raw(name: string): string | number | null {
    const { names } = this.shared;
    const column = names.aliases.get(name) ?? name;
    if (column === "model") return this.named.written["model"] ?? null;
    return this.cell(column) ?? this.builtIn(column);
  }

  value(name: string): string | number | null {
    const { aliases } = this.shared.names;
    return this.rendered(aliases.get(name) ?? name, this.raw(name));
  }

  empty(name: string): void {
    const { names, vars, onEmpty } = this.shared;
    const column = names.aliases.get(name) ?? name;
    const { axes, cells, written } = this.named;
    // A cell that is a template may come out empty; where a column that it names is why, that column is noted.
    if ([axes, vars, written].some((given) => Object.hasOwn(given, column)) || cells[column]) return;
    onEmpty?.(column);
  }

  private cell(column: string): string | undefined {
    const { axes, cells, written, lost } = this.named;
    if (Object.hasOwn(axes, column)) return axes[column];
    // A step's params are sent, and win over the row's. Its prompt may use the row's.
    if (paramKey(column) !== null) return Object.hasOwn(written, column) ? written[column] : undefined;
    const lostCell = lost?.[column];
    if (lostCell !== undefined) throw new TemplateFault(lostCellProblem(lostCell), false, column);
    if (Object.hasOwn(cells, column)) return cells[column];
    const { vars } = this.shared;
    if (Object.hasOwn(vars, column)) return vars[column];
    return isKnown(column) && Object.hasOwn(written, column) ? written[column] : undefined;
  }

  private builtIn(name: string): string | number | null {
    // A column of that name hides the built-in variable, also for rows without a value.
    if (this.shared.names.columns.has(name)) return null;
    const { index, row, number, step, late } = this.named;
    if (name === "index") return index;
    if (name === "row") return row;
    if (name === "number") return number;
    if (name === "step") return step;
    if (name === "today") return this.shared.today;
    if (name !== "category" && name !== "key" && name !== "copy" && name !== "take") return null;
    if (late === null) throw new LateName(name);
    return late[name];
  }

  private rendered(name: string, value: string | number | null): string | number | null {
    if (typeof value !== "string" || !isTemplate(value)) return value;
    const { open, done } = this;
    const known = done.get(name);
    if (known !== undefined) return known;
    if (open.includes(name)) throw new TemplateFault(circle([...open, name]));
    const template = this.shared.templates.compile(value);
    if (typeof template !== "function") {
      const cell = Object.hasOwn(this.named.cells, name) ? name : null;
      throw new TemplateFault(template, false, cell);
    }
    open.push(name);
    try {
      const text = template(this);
      done.set(name, text);
      return text;
    } finally {
      open.pop();
    }
  }
}

function circle(names: readonly string[]): TemplateProblem {
  return {
    message: "the templates refer to each other in a circle",
    expected: "values without circular references",
    got: names.join(" → "),
  };
}
