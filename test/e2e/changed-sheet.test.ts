import { rmSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPlace, type Place, run } from "./command.js";
import { type ScriptedService, startService } from "./service.js";
import { sheet } from "./sheet.js";

/** A run of a sheet that ended at its cap. */
async function capped(files: Record<string, string>, manifest: string): Promise<[Place, ScriptedService]> {
  const service = await startService();
  const place = newPlace();
  for (const [name, text] of Object.entries(files)) place.write(name, text);
  const ended = await run(place, ["run", manifest, "--yes", "--max-credits", "2"], service);
  expect(ended, ended.stderr).toMatchObject({ code: 6 });
  return [place, service];
}

const again = (place: Place, service: ScriptedService, credits: number) =>
  run(place, ["resume", "--max-credits", String(credits)], service);
const note = (file: string, cap = 2) =>
  `${file} has changed since the run began: \`bulkgen resume\` continues with the rows as they were; \`bulkgen run ${file} --max-credits ${cap}\` takes the new ones`;

test("resume and status say that the sheet has changed since the run began", async () => {
  const [place, service] = await capped({ "set.csv": sheet(3, "plain-image") }, "set.csv");
  expect((await run(place, ["status"])).stdout).not.toContain("has changed");
  place.write("set.csv", sheet(4, "plain-image"));
  expect((await run(place, ["status"])).stdout).toContain(note("set.csv"));
  const resumed = await again(place, service, 4);
  expect(resumed.code).toBe(6);
  expect(resumed.stderr).toContain(note("set.csv", 4));
  expect(resumed.stderr.indexOf("has changed")).toBeLessThan(resumed.stderr.indexOf("0:00"));
  const quiet = await run(place, ["resume", "--max-credits", "4", "--quiet"], service);
  expect(quiet.stderr).not.toContain("has changed");
  // The new rows are taken over.
  expect((await run(place, ["run", "set.csv", "--yes", "--max-credits", "1"], service)).code).toBe(6);
  expect((await run(place, ["status"])).stdout).not.toContain("has changed");
  const rest = await again(place, service, 10);
  expect(rest).toMatchObject({ code: 0, stderr: expect.not.stringContaining("has changed") });
  // Nothing is left to go on with.
  place.write("set.csv", sheet(2, "plain-image"));
  expect((await run(place, ["status"])).stdout).not.toContain("has changed");
});

test("a file that was only touched, or is gone, gives no note", async () => {
  const [place, service] = await capped({ "set.csv": sheet(3, "plain-image") }, "set.csv");
  utimesSync(join(place.folder, "set.csv"), 1, 1);
  expect((await again(place, service, 4)).stderr).not.toContain("has changed");
  rmSync(join(place.folder, "set.csv"));
  const gone = await again(place, service, 10);
  expect(gone).toMatchObject({ code: 0, stderr: expect.not.stringContaining("has changed") });
});

test("the rows of a job file may be what has changed", async () => {
  const job = "name: shop\nrows: set.csv\n";
  const [place] = await capped({ "set.csv": sheet(3, "plain-image"), "shop.yaml": job }, "shop.yaml");
  place.write("set.csv", sheet(2, "plain-image"));
  expect((await run(place, ["status"])).stdout).toContain(note("shop.yaml"));
});
