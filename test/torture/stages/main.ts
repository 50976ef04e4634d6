import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inspect } from "../../../src/archive/check/content.js";
import { nodeDisk } from "../../../src/archive/disk/node-disk.js";
import { removeLeftovers } from "../../../src/archive/disk/temporary.js";
import { undiciDownloads } from "../../../src/archive/download/download.js";
import { Partials } from "../../../src/archive/download/partial.js";
import { Indexes } from "../../../src/archive/index-file.js";
import { type SaveRequest, type SaveResult, saveOutput } from "../../../src/archive/save.js";
import type { Disk } from "../../../src/core/ports/disk.js";
import { systemClock } from "../../../src/system.js";
import { serve } from "../../archive/server.js";
import { watchedDisk } from "../../archive/watched-disk.js";
import { type Ground, mountSmall, type Trouble, troublesOn } from "./troubles.js";

/**
 * One file is saved into a real archive, and before each step that it takes on the disk in turn, something becomes of
 * the disk. Whatever it is, the save must say so or succeed; and once the trouble is over, the same save must leave the
 * one file, whole and under its name, one line in the index, and nothing else. A process of its own, because limits may
 * be set for it. Prints what was done as JSON: `{lines, violations}`. The one argument is an empty folder to work in.
 */
const root = process.argv[2] ?? "";
const at = join(root, "disk");
// A name of 400 characters: what is longer than a file system takes must not be a trouble of its own.
const name = "n".repeat(400);
const ground: Ground = {
  folder: join(at, "job"),
  outside: join(root, "outside"),
  file: `${"n".repeat(120)}.bmp`,
};
const picture = Buffer.alloc(2 * 2 ** 20, 7);
picture.write("BM", 0, "latin1");
// What it states of its size is true.
picture.writeUInt32LE(picture.length, 2);
const violations: string[] = [];

for (const folder of [at, ground.outside]) mkdirSync(folder);
writeFileSync(join(ground.outside, "secret"), "kept");
const refusal = mountSmall(at);
const server = await serve((_, reply) =>
  reply.writeHead(200, { "content-length": picture.length }).end(picture),
);
const downloads = undiciDownloads({ baseUrl: server.url });
try {
  const stages = await stagesOfASave();
  const lines: string[] = [];
  for (const trouble of troublesOn(at, ground, refusal)) lines.push(await playAll(trouble, stages));
  console.log(JSON.stringify({ lines, violations }));
} finally {
  await downloads.close();
  await server.close();
  if (refusal === null) spawnSync("umount", ["--lazy", at]);
}

async function playAll(trouble: Trouble, stages: readonly string[]): Promise<string> {
  const ends = new Map<string, number>();
  let struck = 0;
  for (let stage = 0; stage < stages.length; stage++) {
    const end = await playOne(trouble, stage).catch((error: unknown) => ({
      struck: true,
      end: violated(`${trouble.name} before ${stages[stage]}: ${(error as Error).message}`),
    }));
    trouble.relieve();
    if (!end.struck) continue;
    struck++;
    ends.set(end.end, (ends.get(end.end) ?? 0) + 1);
  }
  const told = [...ends].map(([end, times]) => `${end} ${times}`).join(", ");
  return `${trouble.name} (${trouble.way}): at ${struck} of ${stages.length} steps: ${told}`;
}

async function playOne(trouble: Trouble, stage: number): Promise<{ struck: boolean; end: string }> {
  rmSync(ground.folder, { recursive: true, force: true });
  let [steps, struck] = [0, false];
  const disk = watchedDisk(nodeDisk, () => {
    if (steps++ === stage) struck = trouble.strike();
  });
  const result = await save(disk);
  trouble.relieve();
  await removeLeftovers(nodeDisk, ground.folder);
  const again = await save(nodeDisk);
  const where = `${trouble.name} before step ${stage + 1}`;
  if (again.kind !== "saved") violated(`${where}: after it was over, ${JSON.stringify(again)}`);
  else judge(again.file, where);
  return { struck, end: result.kind === "disk" ? result.code : result.kind };
}

/** P13, P17, P23: one file, whole, with one line. */
function judge(file: string, where: string): void {
  const files = readdirSync(ground.folder, { recursive: true, encoding: "utf8" }).toSorted();
  const lines = readFileSync(join(ground.folder, "index.jsonl"), "utf8").trimEnd().split("\n");
  const whole = lines.filter((line) => isLineOf(line, file));
  if (files.join() !== ["index.jsonl", file].toSorted().join())
    violated(`${where}: left ${files.join(", ")}`);
  if (whole.length !== 1) violated(`${where}: ${whole.length} lines in the index`);
  if (hashOf(readFileSync(join(ground.folder, file))) !== hashOf(picture))
    violated(`${where}: another content`);
}

/** A line that the disk cut short stays as it is, and says nothing. */
function isLineOf(line: string, file: string): boolean {
  try {
    return (JSON.parse(line) as { file: string }).file === file;
  } catch {
    return false;
  }
}

async function stagesOfASave(): Promise<string[]> {
  const steps: string[] = [];
  const result = await save(watchedDisk(nodeDisk, (step) => steps.push(step)));
  if (result.kind !== "saved") throw new Error(`without any trouble: ${JSON.stringify(result)}`);
  return steps;
}

function save(disk: Disk): Promise<SaveResult> {
  const facts = { item: "row", key: "k1:1", task: "task", external_task: null, model: "m", prompt: "p" };
  const index = { ...facts, params: {}, inputs: {}, credits: 1, created: null, completed: null };
  const address = { url: `${server.url}/out`, jobFolder: ground.folder, name };
  const request: SaveRequest = { ...address, outputNumber: 1, outputCount: 1, category: "any", index };
  return saveOutput(request, {
    disk,
    download: downloads.download,
    clock: systemClock,
    version: "1.2.3",
    indexes: new Indexes(disk),
    partials: new Partials(),
    inspect: (path, category) => inspect(disk, path, category),
  });
}

function violated(what: string): string {
  violations.push(what);
  return "violation";
}

function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
