import { readFileSync } from "node:fs";
import { join } from "node:path";
import { EarlyExit } from "../../core/exit.js";
import { slipIn } from "../../manifest/formats/yaml-slips.js";
import type { Environment } from "../../text/environment.js";
import { homeFolder } from "../../text/home.js";

/** A setting of a file: the words that its flag takes, one for each time the flag would be given. */
interface FileSetting {
  words: string[];
  /** `file:line:column` */
  place: string;
}

export interface ConfigFile {
  path: string;
  /** The user's own file, not one in a folder that may come from somebody else. */
  own: boolean;
  settings: ReadonlyMap<string, FileSetting>;
}

export const configName = "bulkgen.config.yaml";

export function workspaceConfig(root: string): string {
  return join(root, configName);
}

export function userConfig(environment: Environment): string {
  return join(
    environment["XDG_CONFIG_HOME"] || join(homeFolder(environment), ".config"),
    "bulkgen",
    configName,
  );
}

/** More than anybody sets. Aliases and anchors in a larger file would take seconds in which nothing can be interrupted. */
const charactersMax = 100_000;
const tooDeep = "values are too deeply nested";

/** Null when there is no file. Throws EarlyExit, which ends with what to do, for a file that cannot be read. */
export function settingsText(path: string, todo = ""): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw new EarlyExit("usage", `the settings file ${path} cannot be read (${code ?? message})${todo}`);
  }
}

/** Null when there is no file. Throws EarlyExit, with the place, for a file that cannot be read. */
export async function readConfig(path: string, own: boolean): Promise<ConfigFile | null> {
  const text = settingsText(path);
  if (text === null) return null;
  if (text.length > charactersMax)
    throw new EarlyExit(
      "usage",
      `${path}: a settings file has at most ${charactersMax} characters, got ${text.length}`,
    );
  const { isMap, isScalar, LineCounter, parseDocument, visit } = await import("yaml");
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const at = (offset: number | undefined) => {
    const { line, col } = lines.linePos(offset ?? 0);
    return `${path}:${line}:${col}`;
  };
  const [error] = document.errors;
  if (error?.message.includes("call stack")) throw new EarlyExit("usage", `${at(0)}: ${tooDeep}`);
  if (error)
    throw new EarlyExit(
      "usage",
      `${at(error.pos[0])}: expected YAML, such as "max-credits: 200", got ${slipIn(error.message, text, error.pos[0])}`,
    );
  const settings = new Map<string, FileSetting>();
  if (document.contents === null) return { path, own, settings };
  if (!isMap(document.contents)) {
    throw new EarlyExit(
      "usage",
      `${at(0)}: expected settings such as "max-credits: 200", got something else`,
    );
  }
  // A number stays as it is written, as in a manifest: `1.0` and `007` may be values of a model's parameter.
  visit(document, {
    Scalar(_, scalar) {
      if (scalar.value !== null && typeof scalar.value !== "string")
        scalar.value = scalar.source ?? scalar.value;
    },
  });
  for (const { key, value } of document.contents.items) {
    const place = at(isScalar(key) ? key.range?.[0] : 0);
    let words: string[];
    try {
      const plain = (value as { toJS(of: typeof document): unknown } | null)?.toJS(document) ?? null;
      words = wordsOf(plain);
    } catch (error) {
      // yaml counts the values that aliases repeat; an alias of itself has no end, which JSON cannot write.
      const deep = error instanceof RangeError;
      const why = deep ? tooDeep : "too many aliases (*name), or one that contains itself";
      throw new EarlyExit("usage", `${place}: ${why}`);
    }
    settings.set(String(isScalar(key) ? key.value : key), { words, place });
  }
  return { path, own, settings };
}

/** A list is a repeated flag; a map is written as `key=value`; what is inside either stays as it is. */
function wordsOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.map(wordOf);
  if (isObject(value)) return Object.entries(value).map(([key, each]) => `${key}=${wordOf(each)}`);
  return [value === null ? "" : String(value)];
}

function wordOf(value: unknown): string {
  return isObject(value) ? JSON.stringify(value) : String(value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
