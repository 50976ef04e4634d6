import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { expectArchived } from "./archive.js";
import { type Ended, newPlace, type Place, run } from "./command.js";
import { startSandbox } from "./sandbox.js";
import { scriptedKey, startService } from "./service.js";
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
  expect(ends[0]?.stderr).toContain('"level"');
  expectArchived(join(place.folder, "outputs", "set"), ids(4));
  expectNoKey(place, sandbox.key, ends);
  expect(await sandbox.tasks()).toHaveLength(4);
});

test("P21: a service that repeats the key in its refusals does not get it written down", async () => {
  const refusal = {
    status: 401,
    json: { error: { code: "INVALID_API_KEY", message: `unknown key ${scriptedKey}` } },
  };
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(2, "plain-image"));
  service.script(({ what }) => (what === "POST generate" ? refusal : "serve"));
  const submitting = await run(place, ["run", "set.csv", "--yes", "--log-level", "debug"], service);
  service.script(() => refusal);
  const planning = await run(place, ["run", "set.csv", "--yes", "--log-level", "debug"], service);
  expect([submitting.code, planning.code]).toEqual([3, 3]);
  expectNoKey(place, scriptedKey, [submitting, planning]);
});

function expectNoKey(place: Place, key: string, ends: readonly Ended[]): void {
  const files = place.files();
  expect(files.length).toBeGreaterThan(1);
  const secret = key.replace("svc_", "");
  expect(files.filter((file) => readFileSync(join(place.root, file)).includes(secret))).toEqual([]);
  expect(ends.filter(({ stdout, stderr }) => (stdout + stderr).includes(secret))).toEqual([]);
}
