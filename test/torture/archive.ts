import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

/** A job's folder as anybody can read it. */
export interface Archive {
  /** Finished files by their path in the folder. */
  files: ReadonlyMap<string, { bytes: number; sha256: string }>;
  /** Readable lines of the index. One that a crash cut short is none. */
  lines: readonly IndexLine[];
  /** What a run that died has left on the way. */
  temporaries: readonly string[];
}

export interface IndexLine {
  item: string;
  task: string;
  output: number;
  file: string;
  bytes: number;
  sha256: string;
}

export function readArchive(folder: string): Archive {
  const paths = existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    : [];
  const isTemporary = (path: string) => path.endsWith(".part");
  const finished = paths.filter(
    (path) => !isTemporary(path) && path !== "index.jsonl" && !path.startsWith("_quarantine/"),
  );
  return {
    files: new Map(
      finished.map((path) => {
        const content = readFileSync(join(folder, path));
        return [path, { bytes: content.length, sha256: sha256(content) }];
      }),
    ),
    lines: paths.includes("index.jsonl") ? linesIn(readFileSync(join(folder, "index.jsonl"), "utf8")) : [],
    temporaries: paths.filter(isTemporary),
  };
}

export function sha256(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

function linesIn(text: string): IndexLine[] {
  return text.split("\n").flatMap((line) => {
    try {
      return [JSON.parse(line) as IndexLine];
    } catch {
      return [];
    }
  });
}
