import { categoryOf, type InputField, type MediaField, mediaFields, requiredFor } from "../api/inputs.js";
import type { Model, ModelParameter } from "../api/records.js";
import type { Problem } from "../core/problem.js";
import { isReference, referenceIn } from "../core/reference.js";
import { isLocalPath, type LocalInput } from "../manifest/local-inputs.js";
import { foldedName } from "../manifest/shape/columns.js";
import { cellPlace, type Row } from "../manifest/shape/manifest.js";
import { optionBefore, type Repair } from "../manifest/shape/repairs.js";
import { nearest } from "../text/nearest.js";

/** A row that was checked against the live models. */
export interface CheckedRow {
  row: Row;
  /** Null if the row names no model that exists. */
  model: Model | null;
  /** The params to send, without defaults that the model does not accept. */
  params: Readonly<Record<string, string>>;
  /** The inputs as identity counts them: an address as written, or the hash of a local file. */
  contents: Partial<Record<MediaField, string>>;
  /** Values that were restored because a spreadsheet had changed them. */
  repairs: Repair[];
  problems: Problem[];
  /** Defaults that its model does not accept, and the problem if no other model accepts them either. */
  without: { key: string; problem: Problem }[];
  /** The inputs whose local files are not there. */
  gone: readonly MediaField[];
  /** Nothing speaks against the row as it is written but what the service lists now, and files that are not there. */
  isDoubtful: boolean;
  /** Nothing speaks against the row as it is written but the same. */
  isUsable: boolean;
  /** Params that its item has if it turns out to be paid for so. */
  ifPaid?: readonly Row["params"][];
  /** Its problem unless its item is paid for: that is known once the items of its inputs are. */
  unlessPaid?: Problem | undefined;
}

type LocalInputs = ReadonlyMap<string, LocalInput> | undefined;
const none: never[] = [];

export interface CheckAgainst {
  models: ReadonlyMap<string, Model>;
  unpriced?: readonly string[];
  localInputs: LocalInputs;
  repair: boolean;
  said: Said;
}

export function checkRow(row: Row, against: CheckAgainst): CheckedRow {
  const { models } = against;
  const model = models.get(row.model) ?? null;
  const { contents, problems, gone } = checkMedia(row, against.localInputs);
  const isUsable = problems.length === gone.length;
  if (!model) {
    const words = against.said.of([row.model], () => noModel(row.model, models, against.unpriced));
    return {
      row,
      model,
      params: row.params,
      contents,
      repairs: row.repairs,
      problems: [{ place: cellPlace(row, "model"), ...words }, ...problems],
      without: none,
      gone,
      isUsable,
      isDoubtful: isUsable,
    };
  }
  const params = checkParams(row, model, against);
  const missing = missingInputs(row, model);
  const doubts = missing.length + params.problems.length + params.without.length + gone.length;
  return {
    row,
    model,
    params: params.params,
    contents,
    repairs: [...row.repairs, ...params.repairs],
    problems: [...missing, ...problems, ...params.problems],
    without: params.without,
    gone,
    isUsable,
    isDoubtful: isUsable && doubts > 0,
  };
}

function missingInputs(row: Row, model: Model): Problem[] {
  const has = (field: InputField) =>
    field === "prompt" ? (row.prompt ?? "").trim() !== "" : row.inputs[field] !== undefined;
  return requiredFor(model.input_type)
    .filter((field) => !has(field))
    .map((field) => ({
      place: cellPlace(row, field),
      message: `model ${model.model_key} needs ${field}`,
      expected: `${field}, because the model's input is ${model.input_type}`,
      got: "nothing",
    }));
}

function checkMedia(row: Row, localInputs: LocalInputs) {
  const problems: Problem[] = [];
  const gone: MediaField[] = [];
  let contents = row.inputs;
  for (const field of mediaFields) {
    const value = row.inputs[field];
    if (value === undefined) continue;
    const read = contentOf(field, value, localInputs);
    if ("content" in read) {
      if (read.content !== value) contents = { ...contents, [field]: read.content };
    } else {
      const { isGone, ...words } = read;
      if (isGone) gone.push(field);
      problems.push({ place: cellPlace(row, field), got: value, ...words });
    }
  }
  return { contents, problems, gone };
}

const anotherAddress = /[\s;|]https?:\/\//i;
/** Such as `C:\pictures\cup.png`, and the address of a file on this computer. */
const pathOfDisk = /^(?:[a-z]:[\\/]|file:)/i;

/** Such as `www.example.com/cup.png`. */
const hostFirst = /^(?:www\.|(?:[a-z0-9-]+\.)+[a-z]{2,}\/)/i;

type Media = { content: string } | (Pick<Problem, "message" | "expected" | "nearest"> & { isGone?: boolean });

function contentOf(field: MediaField, value: string, localInputs: LocalInputs): Media {
  if (isReference(value)) {
    if (referenceIn(value) !== null) return { content: value };
    return {
      message: "not a usable reference to another item",
      expected: "@ITEM, @STEP or @ROW.STEP, followed by [2] for the second output",
    };
  }
  if (!isLocalPath(value)) {
    const url = URL.canParse(value) ? new URL(value) : null;
    const web = url?.protocol === "https:" || url?.protocol === "http:";
    if (web && anotherAddress.test(value))
      return { message: "several addresses in one cell", expected: "one address" };
    if (pathOfDisk.test(value))
      return {
        message: "a path outside the manifest's folder",
        expected: "the path of a file in the manifest's folder, such as pictures/cup.png, or https://…",
      };
    return web ? { content: value } : { message: "not a usable web address", expected: "https://…" };
  }
  const local = localInputs?.get(value);
  if (hostFirst.test(value) && !(local && "sha256" in local)) {
    const message = "a web address without https://";
    return { message, expected: "https://…", nearest: `https://${value}` };
  }
  if (!localInputs) {
    return {
      message: "the service cannot read a local path",
      expected: "https://…, or --publish with a place where the service can read local files",
    };
  }
  const file = local ?? { wrong: "it was not read", expected: "a file" };
  if ("sha256" in file) {
    const wanted = categoryOf[field];
    const mime = file.mime ?? "no known media format";
    // Containers made for video may contain only sound.
    const fits = mime.startsWith(`${wanted}/`) || (wanted === "audio" && mime.startsWith("video/"));
    if (fits) return { content: file.sha256 };
    return {
      message: `the input file has the wrong content (${mime})`,
      expected: `${wanted === "video" ? "a" : "an"} ${wanted} file`,
    };
  }
  // A path that is a mere name was probably meant as one of a step or an item.
  const isName = /^[\p{L}\p{N}_-]+$/u.test(value);
  return {
    message: `the input file cannot be used: ${file.wrong}`,
    expected: isName ? `${file.expected}, or @${value} for the output of a step or item` : file.expected,
    isGone: file.isGone ?? false,
    ...(file.nearest === undefined ? {} : { nearest: file.nearest }),
  };
}

/**
 * A model without a list of parameters is not checked: the service decides. A default that the model does not accept is
 * left out, as long as another model of the manifest accepts it.
 */
function checkParams(row: Row, model: Model, { repair, said }: CheckAgainst) {
  const list = model.parameters;
  const problems: Problem[] = [];
  const repairs: Repair[] = [];
  const without: CheckedRow["without"] = [];
  if (!list) return { params: row.params, repairs, problems, without };
  const params: [string, string][] = [];
  let asWritten = true;
  for (const key in row.params) {
    const value = row.params[key] as string;
    const parameter = parameterOf(model, key, row.params);
    if (!parameter && row.defaultParams.includes(key)) {
      const words = said.of([model.model_key, key], () => unknownParam(model, key));
      without.push({ key, problem: { place: cellPlace(row, `params.${key}`), ...words } });
      asWritten = false;
      continue;
    }
    const sent = parameter?.key ?? key;
    asWritten &&= sent === key;
    if (parameter && isOption(parameter, value)) {
      params.push([sent, value]);
      continue;
    }
    const words = parameter
      ? said.of([model.model_key, key, value], () => wrongValue(parameter, value))
      : said.of([model.model_key, key], () => unknownParam(model, key));
    const wrong = { place: cellPlace(row, `params.${key}`), ...words };
    const repaired = repair ? wrong.repair : undefined;
    if (repaired !== undefined) {
      repairs.push({ column: `params.${key}`, from: value, to: repaired });
      asWritten = false;
    } else problems.push(wrong);
    params.push([sent, repaired ?? value]);
  }
  return { params: asWritten ? row.params : Object.fromEntries(params), repairs, problems, without };
}

/**
 * The parameter of that key. A header may have capitals and spaces, as in `Params.Aspect Ratio`; keys of models may too, so
 * the key as written counts first, and two columns never set the same parameter.
 */
export function parameterOf(
  { parameters = [] }: Model,
  key: string,
  params: Row["params"],
): ModelParameter | undefined {
  const exact = parameters.find((each) => each.key === key);
  if (exact) return exact;
  const folded = foldedName(key);
  const alike = (name: string) => foldedName(name) === folded;
  const [only, ...others] = parameters.filter((each) => alike(each.key));
  return others.length === 0 && Object.keys(params).filter(alike).length === 1 ? only : undefined;
}

/** A problem without its place. */
export type Words = Omit<Problem, "place">;

const keptMax = 1_000;

/** Cached messages for wrong values: finding the nearest valid one is slow, and a million rows may share a mistake. */
export class Said {
  private readonly kept = new Map<string, Words>();

  of(what: readonly string[], words: () => Words): Words {
    const key = JSON.stringify(what);
    let said = this.kept.get(key);
    if (said === undefined) {
      said = words();
      if (this.kept.size < keptMax) this.kept.set(key, said);
    }
    return said;
  }
}

const listedMax = 12;

export function noModel(
  named: string,
  models: ReadonlyMap<string, Model>,
  unpriced: readonly string[] = [],
): Words {
  if (unpriced.includes(named))
    return {
      message: `the service lists model "${named}" without a price that can be used, so nothing is bought of it`,
      expected: "a model with a price",
      got: named,
    };
  const keys = [...models.keys()];
  const near = nearest(named, keys);
  const expected =
    keys.length > 0 && keys.length <= listedMax ? `one of: ${keys.join(", ")}` : "a model key of the service";
  return {
    message: named === "" ? "the row names no model" : `unknown model "${named}"`,
    expected: named === "" ? `${expected} (as the row's model, or with --model)` : expected,
    got: named === "" ? "nothing" : named,
    ...(named !== "" && near ? { nearest: near } : {}),
  };
}

export function unknownParam(model: Model, key: string): Words {
  const keys = (model.parameters ?? []).map((parameter) => parameter.key);
  const near = nearest(key, keys);
  return {
    message: `model ${model.model_key} has no parameter "${key}"`,
    expected: keys.length > 0 ? `one of: ${keys.join(", ")}` : "no parameters",
    got: key,
    ...(near ? { nearest: near } : {}),
  };
}

/** Only the options of a select are known; the service decides about any other type. */
export function isOption({ options = [] }: ModelParameter, value: string): boolean {
  return options.length === 0 || options.some((option) => option.value === value);
}

export function wrongValue({ key, options = [] }: ModelParameter, value: string): Words {
  const values = options.map((option) => option.value);
  const labelled = options.find((option) => option.label.toLowerCase() === value.toLowerCase());
  const before = optionBefore(value, values);
  const near = labelled?.value ?? before ?? nearest(value, values);
  return {
    message: `parameter ${key} has no option "${value}"`,
    expected: `one of: ${values.join(", ")}`,
    got: value,
    ...(near ? { nearest: near } : {}),
    ...(before === null ? {} : { repair: before }),
  };
}
