import { mkdirSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { newPlace, type Place, run, start } from "../e2e/command.js";

let at: Place;
beforeEach(() => {
  at = newPlace();
});

const manifest = (name: string, ...rows: string[]) =>
  writeFileSync(join(at.folder, name), `id,model,prompt\n${rows.join("\n")}\n`);
const begin = (name: string, ...flags: string[]) => run(at, ["run", name, "--sandbox", "--yes", ...flags]);
const status = async (...flags: string[]) => {
  const { code, stdout } = await run(at, ["status", ...flags]);
  return { code, stdout, json: () => JSON.parse(stdout) };
};

test("all runs are listed with what became of items in each, also when a later run took the items along", async () => {
  manifest("set.csv", "cup,aurora-image-mini,a cup", "bad,aurora-image-mini,[[moderation]] a knife");
  await begin("set.csv");
  manifest("set.csv", "cup,aurora-image-mini,a cup", "jug,aurora-image-mini,a jug");
  await begin("set.csv");
  const { runs, workspace, sandbox } = (await status("--all", "--json", "--sandbox")).json();
  expect([workspace, sandbox]).toEqual([at.folder, true]);
  expect(runs).toMatchObject([
    {
      run: 1,
      job: "set",
      state: "finished",
      archived: 1,
      failed: 1,
      held: 0,
      credits: { spent: 1 },
      exitName: "failed",
    },
    {
      run: 2,
      job: "set",
      state: "finished",
      archived: 1,
      failed: 0,
      held: 0,
      credits: { spent: 1 },
      exitName: "done",
    },
  ]);
  const { stdout } = await status("--all", "--sandbox");
  expect(stdout.split("\n")).toHaveLength(4);
  expect(stdout).toMatch(/^ *1 +set +set\.csv +finished .* 1 +1 +0 +1 +5 failed$/m);
});

test("a run whose items a later run took along says how it left them", async () => {
  manifest("set.csv", "cup,aurora-image-mini,a cup", "bad,aurora-image-mini,[[moderation]] a knife");
  await begin("set.csv");
  expect((await status("--json", "--sandbox")).json()).toMatchObject({ run: 1, results: null });
  await begin("set.csv");
  const results = { archived: 1, failed: 1, planned: 0 };
  expect((await status("1", "--json", "--sandbox")).json()).toMatchObject({ run: 1, results });
  expect((await status("1", "--sandbox")).stdout).toMatch(
    /^items +a later run of set followed; this one left 1 archived, 1 failed$/m,
  );
  const now = (await status("2", "--json", "--sandbox")).json();
  expect(now).toMatchObject({ counts: { archived: 1, failed: 1 }, results: null });
});

test("--all and the number of a run are refused together", async () => {
  expect(await run(at, ["status", "3", "--all"])).toMatchObject({
    code: 2,
    stderr: "bulkgen: --all lists every run. Leave out the 3, or --all.\n",
  });
});

test("what to do about a run of another workspace names its folder", async () => {
  manifest("set.csv", "cup,aurora-image-mini,a cup", "jug,aurora-image-mini,a jug");
  await begin("set.csv", "--max-credits", "1");
  const elsewhere = ["--sandbox", "--workspace", at.folder];
  for (const line of [["status"], ["status", "--all"], ["report"]]) {
    const { stdout } = await run(at, [...line, ...elsewhere], { cwd: at.root });
    expect(stdout).toMatch(/\bin here: 1 item is left: `bulkgen resume/);
    expect((await run(at, [...line, "--sandbox"])).stdout).not.toContain("in here");
  }
});

test("a workspace with rehearsals alone names the flag that shows them", async () => {
  manifest("set.csv", "cup,aurora-image-mini,a cup");
  await begin("set.csv");
  const hint = `only rehearsals in ${at.folder} so far; add --sandbox for them\n`;
  expect(await status()).toMatchObject({ code: 0, stdout: hint });
  expect(await status("--all")).toMatchObject({ code: 0, stdout: hint });
  expect((await status("--json")).json()).toBeNull();
  expect((await status("--all", "--json")).json()).toEqual({
    workspace: at.folder,
    sandbox: false,
    runs: [],
  });
});

test("a workspace without runs says so and how to begin, and makes nothing", async () => {
  const none = `no runs in ${at.folder}: it is not a workspace yet. If yours is elsewhere, go to its folder or name it with --workspace. To begin here, \`bulkgen init\` writes a first sheet, \`bulkgen run FILE\` makes what a sheet lists\n`;
  expect(await run(at, ["resume"])).toMatchObject({ code: 2, stderr: `bulkgen: ${none}` });
  expect((await status()).stdout).toBe(none);
  expect((await status("7", "--sandbox")).code).toBe(2);
  expect((await status("--all")).stdout).toBe(none);
  mkdirSync(join(at.folder, ".bulkgen"));
  expect((await status()).stdout).toMatch(/^no runs in \S+ yet\. `bulkgen init` writes/);
});

test("a run in progress names its process; killed, it has crashed and says what to type", async () => {
  manifest("set.csv", "cup,reel-text,a cup", "jug,reel-text,a jug");
  const { pid, prints, signal, ended } = start(at, ["run", "set.csv", "--sandbox", "--yes", "--events"]);
  // With a request in flight the kill would leave one without an answer.
  await prints(/("submitted"[\s\S]*){2}/);
  const during = (await status("--json", "--sandbox")).json();
  expect(during).toMatchObject({ run: 1, state: "running", alive: true, crashed: false, resume: null });
  expect(during.lockOwner).toMatchObject({ pid, host: hostname() });
  signal("SIGKILL");
  await ended;
  const after = (await status("--json", "--sandbox")).json();
  expect(after).toMatchObject({
    alive: false,
    crashed: true,
    lockOwner: null,
    resume: "bulkgen resume --sandbox",
  });
  const text = (await status("--sandbox")).stdout;
  expect(text).toMatch(/^run +1 of set \(set\.csv\): crashed\n/);
  expect(text).toMatch(/^next +`bulkgen resume --sandbox` continues it$/m);
  expect((await status("--all", "--sandbox")).stdout).toContain(
    "run 1: `bulkgen resume --sandbox` continues it",
  );
  // What is merely at the service is not in doubt.
  const open = /^credits +0 spent, 40 for 2 tasks at the service$/m;
  expect(text).toMatch(open);
  const resumed = await run(at, ["resume", "--sandbox"]);
  expect(resumed).toMatchObject({ code: 0, stderr: expect.stringMatching(open) });
  expect((await status("--json", "--sandbox")).json()).toMatchObject({ state: "finished", resume: null });
});
