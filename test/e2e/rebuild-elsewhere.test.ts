import { cpSync, existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { expectArchived } from "./archive.js";
import { newPlace, run } from "./command.js";
import { startService } from "./service.js";
import { ids, sheet } from "./sheet.js";

const items = 3;
const payForMissing = ["run", "set.csv", "--yes", "--missing", "pay"];

/** A workspace `one` with a finished run. */
async function ran() {
  const service = await startService();
  const place = newPlace();
  place.write("one/set.csv", sheet(items, "plain-image"));
  const at = (...names: string[]) => join(place.folder, ...names);
  const command = (name: string, ...args: string[]) => run(place, args, { ...service, cwd: at(name) });
  expect((await command("one", "run", "set.csv", "--yes")).code).toBe(0);
  return { service, at, command };
}

function loseDatabase(root: string): void {
  for (const name of readdirSync(join(root, ".bulkgen"))) {
    if (name.startsWith("state.db")) rmSync(join(root, ".bulkgen", name));
  }
}

describe.concurrent("P4: the database", () => {
  test("of a moved workspace is rebuilt where it is now, and pays nothing again", async () => {
    const { service, at, command } = await ran();
    renameSync(at("one"), at("two"));
    loseDatabase(at("two"));
    const rebuilt = await command("two", "doctor", "--rebuild", "--yes");
    expect(rebuilt.stdout, rebuilt.stderr).toMatch(/^items +3: 3 archived$/m);
    expect((await command("two", "verify")).code).toBe(0);
    const again = await command("two", ...payForMissing);
    expect(again, again.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(items);
    expectArchived(at("two/outputs/set"), ids(items));
    expect(existsSync(at("one"))).toBe(false);
  });

  test("counts what was paid for a file that was lost and paid for again", async () => {
    const { service, at, command } = await ran();
    rmSync(at("one/outputs/set/a01.png"));
    expect((await command("one", ...payForMissing)).code).toBe(0);
    expect(service.made).toHaveLength(items + 1);
    const credits = async () =>
      (
        JSON.parse((await command("one", "status", "--all", "--json")).stdout) as {
          runs: { credits: { spent: number } }[];
        }
      ).runs
        .map((run) => run.credits.spent)
        .reduce((sum, spent) => sum + spent, 0);
    const before = await credits();
    loseDatabase(at("one"));
    expect((await command("one", "doctor", "--rebuild", "--yes")).code).toBe(0);
    expect(await credits()).toBe(before);
    expect(before).toBe((items + 1) * 2);
  });

  test("of a copy knows the copy's files, and the original's are left alone", async () => {
    const { service, at, command } = await ran();
    cpSync(at("one"), at("two"), { recursive: true });
    loseDatabase(at("two"));
    expect((await command("two", "doctor", "--separate")).code).toBe(0);
    rmSync(at("two/outputs/set/a01.png"));
    const before = readdirSync(at("one/outputs/set"), { recursive: true });
    rmSync(at("one/outputs/set/a02.png"));

    const rebuilt = await command("two", "doctor", "--rebuild", "--yes");
    expect(rebuilt.stdout, rebuilt.stderr).toMatch(/^items +3: 1 processing, 2 archived$/m);
    const resumed = await command("two", "resume");
    expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
    const again = await command("two", ...payForMissing);
    expect(again, again.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(items);
    expectArchived(at("two/outputs/set"), ids(items));
    expect(readdirSync(at("one/outputs/set"), { recursive: true })).toEqual(
      before.filter((name) => name !== "a02.png"),
    );
  });
});

test("P2: the outputs alone restore each edition, and none is paid for again", async () => {
  const { service, at, command } = await ran();
  for (const flags of [["--edition", "web"], ["--fresh"]])
    expect((await command("one", "run", "set.csv", "--yes", ...flags)).code).toBe(0);
  expect(service.made).toHaveLength(3 * items);
  rmSync(at("one/.bulkgen"), { recursive: true });
  const rebuilt = await command("one", "doctor", "--rebuild", "--yes");
  expect(rebuilt.stdout, rebuilt.stderr).toMatch(/^items +9: 9 archived$/m);
  expect((await command("one", "plan", "set.csv", "--fresh")).stdout).not.toContain("was made as user");
  for (const flags of [[], ["--edition", "web"], ["--edition", "#2"]]) {
    const again = await command("one", "run", "set.csv", "--yes", ...flags);
    expect(again, again.stderr).toMatchObject({ code: 0 });
  }
  expect(service.made).toHaveLength(3 * items);
  const redone = await command("one", "redo", "a01", "--yes");
  expect(redone, redone.stderr).toMatchObject({ code: 0 });
  expect((await command("one", "run", "set.csv", "--yes", "--fresh")).code).toBe(0);
  expect(service.made).toHaveLength(4 * items + 1);
  expect(readdirSync(at("one/outputs/set"))).toContain("edition-3");
});

test("the outputs alone restore retakes as such, which are picked and handed over", async () => {
  const { at, command } = await ran();
  expect((await command("one", "redo", "a01", "--yes")).code).toBe(0);
  rmSync(at("one/.bulkgen"), { recursive: true });
  expect((await command("one", "doctor", "--rebuild", "--yes")).code).toBe(0);
  expect((await command("one", "run", "set.csv", "--yes")).code).toBe(0);
  expect((await command("one", "pick", "a01-v2")).stdout).toBe("a01-v2 is picked\n");
  const final = await command("one", "export", "--final", "--columns", "item,file");
  expect(final, final.stderr).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("a01-v2,a01-v2.png"),
  });
});
