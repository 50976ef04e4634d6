import { existsSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test, vi } from "vitest";
import { listArchive } from "../../examples/archive.js";
import { cheapestModel } from "../../examples/client.js";
import { makeOne } from "../../examples/one.js";
import { priceOf } from "../../examples/plan.js";
import { reportSince } from "../../examples/report.js";
import { makeSheet } from "../../examples/run.js";
import { testLostAnswer } from "../../examples/sandbox.js";
import { createSandbox, type LocalSandbox, openWorkspace } from "../../src/index.js";
import { afterThisFile } from "../after-file.js";
import { newPlace, type Place } from "../e2e/command.js";

/** The examples run as a user's program does: on the real machine, with its clock. */
let sandbox: LocalSandbox;
let place: Place;

beforeAll(async () => {
  place = newPlace();
  for (const [name, value] of Object.entries(place.env)) vi.stubEnv(name, value);
  vi.spyOn(console, "log").mockImplementation(() => {});
  sandbox = await createSandbox({ taskMs: { min: 0, max: 0 } });
  afterThisFile(async () => {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
    await sandbox.close();
  });
  place.write("cups.csv", "id,model,prompt\ncup,aurora-image-mini,a cup\n");
});

test("client.ts finds the cheapest model, and one.ts makes one picture with it, once", async () => {
  const { model_key: model, credits_cost: price } = await cheapestModel(sandbox);
  const picture = { id: "fox", model, prompt: "a red fox" };
  const folder = newPlace().folder;
  const make = () => makeOne(folder, picture, sandbox, price);
  const file = await make();
  expect(existsSync(file)).toBe(true);
  expect(await make()).toBe(file);
  const reader = await openWorkspace(folder, { sandbox: true });
  expect((await reader.runs()).map(({ credits }) => credits.spent)).toEqual([0, price]);
  await reader.close();
});

test("plan.ts prices a sheet, run.ts makes it, archive.ts lists what was made, and report.ts sums it up", async () => {
  const manifest = join(place.folder, "cups.csv");
  expect(await priceOf(manifest, sandbox)).toBe(1);
  const [file = ""] = await makeSheet(manifest, sandbox, 5);
  expect(existsSync(file)).toBe(true);
  expect(await listArchive(place.folder, { sandbox: true })).toEqual([
    "cups, run 1: finished, 1 credits",
    expect.stringMatching(/^ {2}cup\.png {2}[0-9a-f]{8} {2}1 credits {2}a cup$/),
  ]);
  expect(await reportSince(new Date(0), place.folder, { sandbox: true })).toEqual([
    "1 archived, 0 failed, 1 credits",
    "cups, run 1: done",
  ]);
});

test("sandbox.ts tests code against a lost answer", () => testLostAnswer());
