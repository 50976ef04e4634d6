import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";

export interface Line {
  item: string;
  task: string;
  output: number;
  file: string;
  sha256: string;
  mime: string;
  /** Where it is, if in a bucket only. */
  bucket?: string;
  params: Record<string, string>;
}

/** The index of a job's folder. */
export function indexOf(jobFolder: string): Line[] {
  const path = join(jobFolder, "index.jsonl");
  if (!existsSync(path)) return [];
  return readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((row) => JSON.parse(row) as Line);
}

/** Holds a job's folder to its rule: a line for each file, a file for each line, and these items once each. */
export function expectArchived(jobFolder: string, items: readonly string[]): void {
  const index = indexOf(jobFolder);
  expect(index.map((line) => line.item).toSorted()).toEqual([...items].toSorted());
  const files = readdirSync(jobFolder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== "index.jsonl")
    .map((entry) => join(entry.parentPath, entry.name).slice(jobFolder.length + 1));
  expect(files.toSorted()).toEqual(index.map((line) => line.file).toSorted());
}
