import { isKnown, paramColumn, paramKey } from "../shape/columns.js";
import type { Cells } from "../shape/source.js";
import {
  isTemplate,
  LateName,
  type Names,
  TemplateFault,
  type TemplateProblem,
  type Templates,
  type Values,
} from "./template.js";

/** Variables that every template has, whatever the manifest holds. */
const builtInNames = ["index", "row", "step", "today"] as const;
/** Those that only the names of files can have: they depend on the service's models, and on the whole of the item. */
const lateNames = ["category", "key"] as const;

/** Known fields may be named where no column has them: then they are empty. */
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

/** A column `Product name` is `product_name` in templates, where names have no spaces. */
export function variableName(column: string): string {
  return column
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "_")
    .replace(/^_+|_+$/g, "");
}

/** All names that the templates of a manifest may use, from its columns and whatever else gives values. */
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

/** Each other name leads to one column, and never hides a column that has it as its own. */
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

/** The columns that templates use, among these. */
export function isUsed(column: string, used: ReadonlySet<string>): boolean {
  return isKnown(column) || used.has(column) || used.has(variableName(column));
}

/** What templates can name of a row in one of its combinations. */
export interface Named {
  index: number;
  row: number;
  step: string | null;
  /** Every field that is known, filled up from the defaults. */
  written: Cells;
  /** The row's own cells, and those of its combination, which come before them. */
  cells: Cells;
  axes: Cells;
  /** Null until the service's models are known. */
  late: { category: string; key: string } | null;
}

/**
 * What the rendering of one row sees. A value that is itself a template is rendered when somebody asks for it, and again
 * by what it names; so values may build on each other in any order, only not in a circle.
 */
export class Scope implements Values {
  readonly param: Values["param"];
  private readonly open: string[] = [];
  /** Values that were rendered: others may be made of them again and again. */
  private readonly done = new Map<string, string>();

  constructor(
    private readonly named: Named,
    private readonly shared: { names: Names; templates: Templates; vars: Cells; today: string },
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

  private cell(column: string): string | undefined {
    const { axes, cells, written } = this.named;
    if (Object.hasOwn(axes, column)) return axes[column];
    if (Object.hasOwn(cells, column)) return cells[column];
    const { vars } = this.shared;
    if (Object.hasOwn(vars, column)) return vars[column];
    return isKnown(column) && Object.hasOwn(written, column) ? written[column] : undefined;
  }

  private builtIn(name: string): string | number | null {
    const { index, row, step, late } = this.named;
    if (name === "index") return index;
    if (name === "row") return row;
    if (name === "step") return step;
    if (name === "today") return this.shared.today;
    if (name !== "category" && name !== "key") return null;
    // A column that some row has, though not this one, is that column for all of them.
    if (this.shared.names.columns.has(name)) return null;
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
    if (typeof template !== "function") throw new TemplateFault(template);
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
    message: "the templates go in a circle",
    expected: "values that do not lead back to themselves",
    got: names.join(" → "),
  };
}
