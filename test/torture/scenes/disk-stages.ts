import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Scene } from "../scene.js";

/** P13, P17, P23: what may become of a disk, at every step of saving one file; see `stages/main.ts`. */
export const diskStages: Scene = {
  name: "the disk at every step",
  async play({ place }) {
    const folder = join(place.root, "stages");
    mkdirSync(folder);
    const program = fileURLToPath(new URL("../stages/main.js", import.meta.url));
    const { stdout, stderr, status } = spawnSync(process.execPath, [program, folder], { encoding: "utf8" });
    if (status !== 0) throw new Error(stderr);
    const { lines, violations } = JSON.parse(stdout) as { lines: string[]; violations: string[] };
    return { facts: lines.join("\n  "), violations };
  },
};
