import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { indexOf, type Line } from "../e2e/archive.js";
import type { Harm } from "./story.js";

/** What the indexes of a folder's jobs list. */
export class Files {
  constructor(private readonly folder: () => string) {}

  /** The newest line about each output of the job folders. */
  lines(): (Line & { folder: string })[] {
    return this.jobFolders().flatMap((folder) => newestLines(folder).map((line) => ({ ...line, folder })));
  }

  /** The files that are there of a job. */
  ofJob(job: string): Line[] {
    const folder = join(this.folder(), "outputs", job);
    return newestLines(folder).filter(
      ({ file, bucket }) => bucket !== undefined || existsSync(join(folder, file)),
    );
  }

  harm(at: number, how: Harm): void {
    const there = this.lines()
      .map(({ folder, file }) => join(folder, file))
      .filter((file) => existsSync(file));
    const file = there[at % Math.max(1, there.length)];
    if (file === undefined) return;
    const bytes = readFileSync(file);
    const middle = bytes.length >> 1;
    if (how === "lose") rmSync(file);
    else if (how === "truncate") truncateSync(file, middle);
    else writeFileSync(file, bytes.fill((bytes[middle] ?? 0) ^ 1, middle, middle + 1));
  }

  /** Files that are gone, or are not what their lines say. A repair may have put an output into another folder. */
  broken(): string[] {
    const places = this.lines().map((line) => ({ ...line, path: join(line.folder, line.file) }));
    const isIntact = ({ path, sha256, bucket }: (typeof places)[number]) =>
      bucket !== undefined || (existsSync(path) && sha256Of(path) === sha256);
    const intact = new Set(places.filter(isIntact).map(({ task, output }) => `${task} ${output}`));
    return places
      .filter(
        (place) => !isIntact(place) && !(place.task !== "" && intact.has(`${place.task} ${place.output}`)),
      )
      .map(({ path }) => path);
  }

  private jobFolders(): string[] {
    return readdirSync(this.folder(), { recursive: true, encoding: "utf8" })
      .filter((file) => basename(file) === "index.jsonl" && !file.includes("_quarantine"))
      .map((file) => dirname(join(this.folder(), file)))
      .toSorted();
  }
}

function newestLines(folder: string): Line[] {
  return [...new Map(indexOf(folder).map((line) => [`${line.task} ${line.output}`, line])).values()];
}

function sha256Of(file: string): string {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}
