import { isKnown, paramKey } from "./columns.js";
import { type Fault, TemplateFault } from "./fault.js";
import { isTemplate, type Names, type Scope, type Templates } from "./template.js";

/** Variables that every template has, whatever the manifest holds. */
export const builtInNames = ["index", "row", "step", "today"] as const;

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
  return {
    top: new Set(
      [...plain, ...plain.map(variableName), ...fieldNames, ...builtInNames, "params"].filter(Boolean),
    ),
    params: new Set(all.flatMap((column) => paramKey(column) ?? [])),
    aliases: aliasesOf(plain),
  };
}

/** Each other name leads to one column, and never hides a column that has it as its own. */
function aliasesOf(columns: readonly string[]): Map<string, string[]> {
  const taken = new Set([...columns, ...builtInNames, "params", ""]);
  return new Map(
    [...new Set(columns)].map((column): [string, string[]] => {
      const alias = variableName(column);
      if (taken.has(alias)) return [column, []];
      taken.add(alias);
      return [column, [alias]];
    }),
  );
}

/** The columns that templates use, among these. */
export function isUsed(column: string, used: ReadonlySet<string>): boolean {
  return isKnown(column) || used.has(column) || used.has(variableName(column));
}

export type Values = Iterable<readonly [name: string, value: string | number | null]>;

/**
 * What one rendering sees. A value that is itself a template is rendered when somebody asks for it, and again by what it
 * names; so values may build on each other in any order, only not in a circle.
 */
export function scopeOf(values: Values, names: Names, templates: Templates): Scope {
  const scope: Scope = Object.create(null);
  const params: Scope = Object.create(null);
  for (const name of names.top) scope[name] = null;
  for (const key of names.params) params[key] = null;
  scope["params"] = params;
  const open: string[] = [];
  // The later of two values of one name is the one that counts.
  for (const [name, value] of new Map(values)) {
    const key = paramKey(name);
    const target = key === null ? scope : params;
    for (const as of [key ?? name, ...(names.aliases.get(name) ?? [])]) {
      if (typeof value !== "string" || !isTemplate(value)) target[as] = value;
      else Object.defineProperty(target, as, { get: () => rendered(name, value), enumerable: true });
    }
  }
  return scope;

  function rendered(name: string, text: string): string {
    if (open.includes(name)) throw new TemplateFault(circle([...open, name]));
    const template = templates.compile(text);
    if (typeof template !== "function") throw new TemplateFault(template);
    open.push(name);
    try {
      return template(scope);
    } finally {
      open.pop();
    }
  }
}

function circle(names: readonly string[]): Fault {
  return {
    message: "the templates go in a circle",
    expected: "values that do not lead back to themselves",
    got: names.join(" → "),
  };
}
