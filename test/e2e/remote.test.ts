import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { expectArchived } from "./archive.js";
import { type Ended, eventually, newPlace, type Place, run, start } from "./command.js";
import { testKey } from "./leaked-key.js";
import { startSandbox } from "./sandbox.js";
import { me, type Scripted, startService } from "./service.js";
import { ids, sheet } from "./sheet.js";

test("P21: a service in another process is used by address and key, and the key is written nowhere", async () => {
  const sandbox = await startSandbox("--plan", "Pro", "--credits", "50");
  const place = newPlace();
  place.write("set.csv", sheet(4));
  place.write("nothing.csv", sheet(2, "no-such-model"));
  const byFlag = { env: { BULKGEN_API_KEY: sandbox.key } };
  const where = ["--base-url", sandbox.url, "--log-level", "debug"];
  const ends = [
    await run(place, ["run", "set.csv", "--yes", ...where], byFlag),
    await run(place, ["resume", ...where], byFlag),
    await run(place, ["run", "nothing.csv", "--yes", ...where], byFlag),
    await run(place, ["plan", "set.csv", "--json", ...where], byFlag),
    await run(place, ["account", "--json", ...where], byFlag),
    await run(place, ["models", ...where], byFlag),
    await run(place, ["status", "--json"]),
  ];
  expect(ends.map((end) => end.code)).toEqual([0, 0, 2, 0, 0, 0, 0]);
  expect(ends[0]?.stdout).toContain("4 spent, 46 left");
  expect(ends[0]?.stderr).toContain("DEBUG: answered");
  expectArchived(join(place.folder, "outputs", "set"), ids(4));
  expectNoKey(place, sandbox.key, ends);
  expect(await sandbox.tasks()).toHaveLength(4);
});

test("P21: a service that repeats the key in its refusals does not get it written down", async () => {
  const refusal = {
    status: 401,
    json: { error: { code: "INVALID_API_KEY", message: `unknown key ${testKey}` } },
  };
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(2, "plain-image"));
  service.script(({ what }) => (what === "POST generate" ? refusal : "serve"));
  const submitting = await run(place, ["run", "set.csv", "--yes", "--log-level", "debug"], service);
  service.script(() => refusal);
  const planning = await run(place, ["run", "set.csv", "--yes", "--log-level", "debug"], service);
  expect([submitting.code, planning.code]).toEqual([3, 3]);
  expectNoKey(place, testKey, [submitting, planning]);
});

test("P21: a report that Node writes of the process does not hold the key", async () => {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(1, "plain-image"));
  const reporting = `--report-on-signal --report-signal=SIGUSR2 --report-directory=${place.folder} --report-filename=report.json`;
  const running = start(place, ["run", "set.csv", "--yes"], {
    env: { ...service.env, NODE_OPTIONS: reporting },
  });
  service.script(async ({ what }): Promise<Scripted> => {
    if (what !== "POST generate") return "serve";
    running.signal("SIGUSR2");
    await eventually(() => (running.stderr().includes("Node.js report completed") ? true : null));
    return "serve";
  });
  const end = await running.ended;
  expect(end, end.stderr).toMatchObject({ code: 0 });
  const report = JSON.parse(place.read("report.json")) as { environmentVariables: Record<string, string> };
  expect(report.environmentVariables).toMatchObject({ BULKGEN_BASE_URL: service.url });
  expectNoKey(place, testKey, [end]);
});

test("a key whose user has changed is refused with both users, and nothing is paid", async () => {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(2, "plain-image"));
  expect((await run(place, ["run", "set.csv", "--yes"], service)).code).toBe(0);
  const was = me({ balance: 50 });
  const other = { ...was, user: { ...was.user, id: "22222222-2222-4222-8222-222222222222" } };
  service.script(({ what }) => (what === "GET me" ? { json: other } : "serve"));
  place.write("set.csv", sheet(3, "plain-image"));
  for (const words of [
    ["run", "set.csv", "--yes"],
    ["redo", "a01", "--yes"],
    ["plan", "set.csv"],
    ["account"],
  ]) {
    const ended = await run(place, words, service);
    expect(ended, words[0]).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toBe(
      `bulkgen: the API key belongs to another user than before: expected ${was.user.id} at ${service.url}, ` +
        `got ${other.user.id}. Nothing was submitted. Set a key of user ${was.user.id}, or make a new key for user ${other.user.id}.\n`,
    );
  }
  const doctor = await run(place, ["doctor"], service);
  expect(doctor).toMatchObject({
    code: 2,
    stdout: expect.stringMatching(/^problem +user +expected user 1111.*; got user 2222/m),
  });
  expect(service.made).toHaveLength(2);
});

function expectNoKey(place: Place, key: string, ends: readonly Ended[]): void {
  const files = place.files();
  expect(files.length).toBeGreaterThan(1);
  const secret = key.replace("svc_", "");
  expect(files.filter((file) => readFileSync(join(place.root, file)).includes(secret))).toEqual([]);
  expect(ends.filter(({ stdout, stderr }) => (stdout + stderr).includes(secret))).toEqual([]);
}
