import type { LineCounter as Lines, ParsedNode } from "yaml";
import { z } from "zod";
import type { ProviderKind } from "../../providers/kind.js";
import type { JsonObject, Mistake, ModelSettings, ProviderSettings } from "../../providers/provider.js";
import type { SelectParameter, ServiceModel } from "../../service/models/model.js";
import { nearest } from "../../text/nearest.js";
import { fileFields, type ModelFields, modelFields, type ProviderFields, providerFields } from "./shape.js";

/** A model of a models file: what is listed of it, and what its provider gets. */
export interface OwnModel {
  settings: ModelSettings;
  provider: ProviderSettings;
  listed: ServiceModel;
}

export interface ModelsFile {
  /** What a credit is worth; null if the file does not say. */
  credit: { value: number; currency: string } | null;
  /** Hosts that inputs may be fetched from though they are not public. */
  allowedHosts: string[];
  models: OwnModel[];
}

/** A models file that cannot be used, with every mistake and its place. */
export class ModelsFileError extends Error {
  override readonly name = "ModelsFileError";

  constructor(
    file: string,
    readonly mistakes: readonly string[],
  ) {
    const many = mistakes.length === 1 ? "1 mistake" : `${mistakes.length} mistakes`;
    super(`${file} has ${many}:\n${mistakes.map((mistake) => `  ${mistake}`).join("\n")}`);
  }
}

/** More than anybody writes. */
const charactersMax = 1_000_000;

/**
 * Reads a models file. `file` is how messages call it; relative paths in it start at `folder`. Throws ModelsFileError with all
 * mistakes at once.
 */
export async function readModelsFile(
  text: string,
  { file, folder, kinds }: { file: string; folder: string; kinds: readonly ProviderKind[] },
): Promise<ModelsFile> {
  const { LineCounter, parseDocument, visit, isScalar, isPair } = await import("yaml");
  if (text.length > charactersMax) throw new ModelsFileError(file, [`more than ${charactersMax} characters`]);
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const [error] = document.errors;
  if (error)
    throw new ModelsFileError(file, [`${placeOf(lines, error.pos[0])}: ${firstLine(error.message)}`]);
  // The values of a parameter stay as they are written: 1.0 is not 1.
  visit(document, {
    Scalar(_, node, path) {
      const names = path.flatMap((each) =>
        isPair(each) && isScalar(each.key) ? [String(each.key.value)] : [],
      );
      if (names.includes("params") && names[0] === "models" && typeof node.value !== "string")
        node.value = node.source ?? node.value;
    },
  });
  const found = new Findings(document.contents, lines);
  let plain: unknown;
  try {
    plain = document.toJS({ maxAliasCount: 1_000 }) ?? {};
  } catch {
    throw new ModelsFileError(file, ["too many aliases (*name), or one that contains itself"]);
  }
  const read = new Reader(plain, found, folder, kinds).read();
  if (read === null || found.mistakes.length > 0) throw new ModelsFileError(file, found.sorted());
  return read;
}

/** The mistakes so far, with their places in the file. */
class Findings {
  readonly mistakes: { at: number; text: string }[] = [];

  constructor(
    private readonly contents: ParsedNode | null,
    private readonly lines: Lines,
  ) {}

  add(path: readonly PropertyKey[], message: string, atKey = false): void {
    const at = this.offsetOf(path, atKey);
    this.mistakes.push({ at, text: `${placeOf(this.lines, at)}: ${pathText(path)}${message}` });
  }

  sorted(): string[] {
    return this.mistakes.toSorted((one, other) => one.at - other.at).map(({ text }) => text);
  }

  /** Where the value of a path begins, or the nearest thing around it that is there. */
  private offsetOf(path: readonly PropertyKey[], atKey: boolean): number {
    let node: unknown = this.contents;
    let at = 0;
    for (const [index, step] of path.entries()) {
      const items = (node as { items?: unknown[] } | null)?.items ?? [];
      const pair = items.find(
        (each) =>
          (each as { key?: { value?: unknown } }).key !== undefined &&
          String((each as { key: { value?: unknown } }).key.value) === String(step),
      ) as { key: { range?: number[] }; value: { range?: number[] } | null } | undefined;
      const next = pair ? pair.value : typeof step === "number" ? items[step] : undefined;
      if (pair?.key.range) at = pair.key.range[0] ?? at;
      if (next === undefined || next === null) return at;
      const isLast = index === path.length - 1;
      if (!(isLast && atKey)) at = (next as { range?: number[] }).range?.[0] ?? at;
      node = next;
    }
    return at;
  }
}

const kindField = { kind: z.string() };

class Reader {
  constructor(
    private readonly plain: unknown,
    private readonly found: Findings,
    private readonly folder: string,
    private readonly kinds: readonly ProviderKind[],
  ) {}

  read(): ModelsFile | null {
    const file = this.checked(fileFields, this.plain, []);
    if (file === null) return null;
    const providers = new Map<string, { kind: ProviderKind; settings: ProviderSettings } | null>();
    for (const [name, value] of Object.entries(file.providers))
      providers.set(name, this.provider(name, value, ["providers", name]));
    const models = file.models.flatMap((value, index) => {
      const model = this.model(value, ["models", index], providers);
      return model === null ? [] : [model];
    });
    this.onlyOnce(file.models);
    return { credit: file.credit ?? null, allowedHosts: file.inputs?.allow ?? [], models };
  }

  private onlyOnce(models: readonly unknown[]): void {
    const keys = models.map((model) => (model as { key?: unknown } | null)?.key);
    for (const [index, key] of keys.entries())
      if (typeof key === "string" && keys.indexOf(key) !== index)
        this.found.add(["models", index, "key"], "expected a key that no other model has");
  }

  private provider(name: string, value: unknown, path: readonly PropertyKey[]) {
    const kind = this.kindOf(value, path);
    if (kind === null) return null;
    const read = this.checked({ ...kindField, ...providerFields, ...kind.provider }, value, path);
    if (read === null) return null;
    const fields = read as unknown as ProviderFields;
    const { defaults } = kind;
    const settings: ProviderSettings = {
      name,
      kind: kind.name,
      addresses: fields.base_url ?? defaults.addresses ?? [],
      keyEnv: fields.key_env ?? (fields.key_file === undefined ? (defaults.keyEnv ?? null) : null),
      keyFile: fields.key_file ?? null,
      headers: fields.headers ?? {},
      concurrency: fields.concurrency ?? defaults.concurrency ?? 1,
      perMinute: fields.rpm ?? null,
      timeoutMs: fields.timeout ?? defaults.timeoutMs ?? 600_000,
      waiting: fields.waiting ?? defaults.waiting ?? 10_000,
      details: only(read, kind.provider),
    };
    return { kind, settings };
  }

  private kindOf(value: unknown, path: readonly PropertyKey[]): ProviderKind | null {
    const names = this.kinds.map(({ name }) => name);
    const named = (value as { kind?: unknown } | null)?.kind;
    const kind = this.kinds.find(({ name }) => name === named);
    if (kind) return kind;
    const given = typeof named === "string" ? nearest(named, names) : undefined;
    const hint = given === undefined ? "" : `; did you mean ${given}?`;
    const got = named === undefined ? "none" : JSON.stringify(named);
    this.found.add([...path, "kind"], `expected one of ${names.join(", ")}, got ${got}${hint}`);
    return null;
  }

  private model(
    value: unknown,
    path: readonly PropertyKey[],
    providers: ReadonlyMap<string, { kind: ProviderKind; settings: ProviderSettings } | null>,
  ): OwnModel | null {
    const provider = this.providerOf(value, path, providers);
    if (provider === null) {
      // What every model has is checked all the same.
      const common = this.checked(modelFields, value, path, true) as ModelFields | null;
      if (common) this.prices(common, path);
      return null;
    }
    const { kind, settings } = provider;
    const read = this.checked({ ...modelFields, provider: z.unknown(), ...kind.model }, value, path);
    if (read === null) return null;
    const fields = read as unknown as ModelFields;
    const { key, name = key, category, input } = fields;
    const model: ModelSettings = { key, name, category, input, details: only(read, kind.model) };
    const parameters = Object.entries(fields.params).map(([param, shape]) =>
      this.parameter(param, shape, fields, path),
    );
    this.prices(fields, path);
    const params = parameters.map((each) => each.key);
    const mistakes: Mistake[] = kind.check?.(model, this.folder, params, settings) ?? [];
    for (const mistake of mistakes) this.found.add([...path, ...mistake.path], mistake.message);
    const listed = { key, name, category, inputType: input, credits: fields.credits.base, parameters };
    return { settings: model, provider: settings, listed };
  }

  private providerOf(
    value: unknown,
    path: readonly PropertyKey[],
    providers: ReadonlyMap<string, { kind: ProviderKind; settings: ProviderSettings } | null>,
  ): { kind: ProviderKind; settings: ProviderSettings } | null {
    const { provider: named, key } = (value ?? {}) as { provider?: unknown; key?: unknown };
    if (typeof named === "object" && named !== null)
      return this.provider(String(key ?? "model"), named, [...path, "provider"]);
    const name = typeof named === "string" ? named : "";
    const found = providers.get(name);
    // A provider with mistakes has been spoken of.
    if (found !== undefined) return found;
    const near = nearest(name, providers.keys());
    const hint = near === undefined ? "" : `; did you mean ${near}?`;
    const known = [...providers.keys()].join(", ") || "none is there";
    const got = named === undefined ? "none" : JSON.stringify(named);
    this.found.add([...path, "provider"], `expected one of providers (${known}), got ${got}${hint}`);
    return null;
  }

  private parameter(
    key: string,
    { type, options, default: preset, label = labelOf(key) }: ModelFields["params"][string],
    { credits }: ModelFields,
    path: readonly PropertyKey[],
  ): SelectParameter {
    if (type === "select" && options.length === 0)
      this.found.add([...path, "params", key], "expected options, such as [small, large]");
    if (preset !== undefined && options.length > 0 && !options.includes(preset))
      this.found.add([...path, "params", key, "default"], `expected one of ${options.join(", ")}`);
    const prices = credits.by[key] ?? {};
    return {
      key,
      label,
      type,
      options: options.map((value) => {
        const price = prices[value];
        return { value, label: value, ...(price === undefined ? {} : { credits_cost: price }) };
      }),
      default: preset ?? options[0] ?? "",
    };
  }

  private prices({ credits, params }: ModelFields, path: readonly PropertyKey[]): void {
    for (const [key, prices] of Object.entries(credits.by)) {
      const options = params[key]?.options;
      const at = [...path, "credits", "by", key];
      if (options === undefined) this.found.add(at, `there is no parameter ${key}`, true);
      for (const value of Object.keys(prices))
        if (options !== undefined && !options.includes(value))
          this.found.add(
            [...at, value],
            `${key} has no option ${value}; it has ${options.join(", ") || "none"}`,
            true,
          );
    }
  }

  /** What a shape reads, or null after its mistakes are noted. */
  private checked<Shape extends z.ZodRawShape>(
    shape: Shape,
    value: unknown,
    path: readonly PropertyKey[],
    hasMore = false,
  ): z.output<z.ZodObject<Shape>> | null {
    const read = (hasMore ? z.looseObject(shape) : z.strictObject(shape)).safeParse(value);
    if (read.success) return read.data as z.output<z.ZodObject<Shape>>;
    for (const issue of read.error.issues) this.issue(issue, value, path, Object.keys(shape));
    return null;
  }

  private issue(
    issue: z.core.$ZodIssue,
    value: unknown,
    path: readonly PropertyKey[],
    names: string[],
  ): void {
    const at = [...path, ...issue.path];
    if (issue.code !== "unrecognized_keys") this.found.add(at, wordsOf(issue, value));
    for (const key of issue.code === "unrecognized_keys" ? issue.keys : []) {
      const near = issue.path.length === 0 ? nearest(key, names) : undefined;
      const isKey = /^(api_?key|key|token|secret)$/i.test(key) && path[0] !== "models";
      const hint = isKey
        ? "; a key is never written here: name the variable that holds it in key_env"
        : near === undefined
          ? ""
          : `; did you mean ${near}?`;
      this.found.add([...at, key], `there is no such field${hint}`, true);
    }
  }
}

function only(read: object, shape: z.ZodRawShape): JsonObject {
  const names = Object.keys(shape);
  return Object.fromEntries(
    Object.entries(read).filter(([name, value]) => names.includes(name) && value !== undefined),
  ) as JsonObject;
}

/** `aspect_ratio` is shown as `Aspect ratio`. */
function labelOf(key: string): string {
  const words = key.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function pathText(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "";
  const text = path.map((step) => (typeof step === "number" ? `[${step + 1}]` : `.${String(step)}`)).join("");
  return `${text.replace(/^\./, "")}: `;
}

/** What zod found, as it is said elsewhere. */
function wordsOf(issue: z.core.$ZodIssue, value: unknown): string {
  const given = issue.path.reduce<unknown>((inside, step) => (inside as never)?.[step], value);
  const got = given === undefined ? "nothing" : JSON.stringify(given);
  if (issue.code === "invalid_type")
    return `expected ${typeNames[issue.expected] ?? issue.expected}, got ${got}`;
  if (issue.code === "invalid_value")
    return `expected one of ${issue.values.map(String).join(", ")}, got ${got}`;
  if (issue.code === "invalid_union") {
    const told = issue.errors.flat().find(({ code }) => code !== "invalid_type");
    return told
      ? wordsOf({ ...told, path: [...issue.path, ...told.path] } as never, value)
      : `cannot be ${got}`;
  }
  if (issue.code === "too_small" && issue.origin === "array") return "expected one or more";
  if (issue.code === "custom" || issue.message.startsWith("expected")) return issue.message;
  return `${issue.message.replace(/^Invalid input: |^Invalid /, "")}, got ${got}`;
}

const typeNames: Readonly<Record<string, string>> = {
  string: "text",
  int: "a whole number",
  number: "a number",
  boolean: "true or false",
  array: "a list",
  object: "fields",
  record: "fields",
};

function placeOf(lines: Lines, offset: number): string {
  const { line, col } = lines.linePos(offset);
  return `line ${Math.max(1, line)}, column ${Math.max(1, col)}`;
}

function firstLine(message: string): string {
  return message.split("\n")[0]?.replace(/:$/, "") ?? message;
}
