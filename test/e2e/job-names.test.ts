import { renameSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPlace, run } from "./command.js";
import { startSandbox } from "./sandbox.js";
import { sheet } from "./sheet.js";

test("a manifest under another name is not paid again unawares", { timeout: 120_000 }, async () => {
  const { env } = await startSandbox();
  const place = newPlace();
  const spends = async (...args: string[]) => {
    const end = await run(place, ["run", ...args, "--yes", "--json"], { env });
    expect(end.code, end.stderr).toBe(0);
    return JSON.parse(end.stdout);
  };
  place.write("monday.csv", sheet(3));
  expect((await spends("monday.csv")).credits.spent).toBe(3);

  renameSync(join(place.folder, "monday.csv"), join(place.folder, "on tuesday.csv"));
  const renamed = await run(place, ["plan", "on tuesday.csv"], { env });
  expect(renamed.code).toBe(0);
  expect(renamed.stdout).toContain("monday.csv is gone and 3 of 3 items were made for job monday");
  expect(renamed.stdout).toContain("--job 'on tuesday' makes a separate job");
  expect(await spends("on tuesday.csv")).toMatchObject({ job: "monday", credits: { spent: 0 } });
  expect(await spends("on tuesday.csv")).toMatchObject({ job: "monday", credits: { spent: 0 } });

  // A copy, beside the one that it was made from.
  place.write("wednesday.csv", sheet(3).replace("picture of a02", "drawing of a02"));
  const copied = await run(place, ["plan", "wednesday.csv"], { env });
  expect(copied.code).toBe(2);
  expect(copied.stdout).toContain(
    "2 of 3 items were made before for job monday (on tuesday.csv) and would be paid again, for 2 credits",
  );
  const refused = await run(place, ["run", "wednesday.csv", "--yes"], { env });
  expect(refused).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--job monday continues that job"),
  });
  expect(await spends("wednesday.csv", "--job", "monday")).toMatchObject({ credits: { spent: 1 } });
  expect(await spends("wednesday.csv")).toMatchObject({ job: "monday", credits: { spent: 0 } });
  expect(await spends("wednesday.csv", "--job", "own")).toMatchObject({ job: "own", credits: { spent: 3 } });

  // A few rows in common are no reason to refuse, and are reported.
  place.write("other.csv", `${sheet(1)}\n${sheet(9).split("\n").slice(7).join("\n")}`);
  const partly = await run(place, ["plan", "other.csv"], { env });
  expect(partly).toMatchObject({ code: 0, stdout: expect.stringContaining("1 of 4 items were made before") });
  expect((await run(place, ["plan", "other.csv", "--job", " "], { env })).stderr).toContain(
    "expected a name",
  );
});
