import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { nodeDisk } from "../archive/disk/node-disk.js";
import { type IndexLine, indexName, JobIndex } from "../archive/index-file.js";
import { EarlyExit } from "../core/exit.js";
import type { Host } from "../machine.js";

/** The files of a job's folder, as its index tells them, with the latest line of each output. Throws EarlyExit. */
export async function readIndexOf({ cwd }: Host, folder: string): Promise<IndexLine[]> {
  const path = resolve(cwd, folder);
  if (!existsSync(join(path, indexName)))
    throw new EarlyExit(
      "usage",
      `${path} has no ${indexName}: expected the folder of a job, such as outputs/JOB`,
    );
  return (await JobIndex.open(nodeDisk, path)).all();
}
