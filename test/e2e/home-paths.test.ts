import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { commandList } from "../../src/cli/command-list.js";
import { allCommands } from "../cli/all-commands.js";
import { newPlace, type Place, run } from "./command.js";
import { aYearAgo, withSchedules, yearly } from "./due-schedule.js";

let at: Place;
const inHome = (...names: string[]) => join(at.root, "home", ...names);
beforeEach(() => {
  at = newPlace();
  at.write("set.csv", "id,model,prompt\na,aurora-image-mini,a cup\n");
});

test("every flag whose value is a path says so", () => {
  const named = allCommands(commandList).flatMap(([path, { flags = {} }]) =>
    Object.entries(flags)
      .filter(([, { value, isPath }]) => /^<(file|folder|place|path)\b/.test(value ?? "") && !isPath)
      .map(([attribute]) => `${path.join(" ")} ${attribute}`),
  );
  expect(named).toEqual([]);
});

describe("a path that begins with ~ starts from the home folder", () => {
  test("--out=~/x, --workspace=~ and -o=~/x", async () => {
    const made = await run(at, ["run", "set.csv", "--sandbox", "--yes", "--out=~/pictures"]);
    expect(made.code, made.stderr).toBe(0);
    expect(existsSync(inHome("pictures", "set", "a.png"))).toBe(true);
    expect((await run(at, ["plan", "set.csv", "--sandbox", "--workspace=~", "-o=~/plan.json"])).code).toBe(0);
    expect(existsSync(inHome("plan.json"))).toBe(true);
    expect((await run(at, ["export", "--sandbox", "--to=~/done.csv", "--zip", "~/files.zip"])).code).toBe(0);
    expect(existsSync(inHome("done.csv"))).toBe(true);
    expect(existsSync(inHome("files.zip"))).toBe(true);
    const whole = await run(at, ["run", "set.csv", "--sandbox", "--yes", "--workspace", "~"]);
    expect(whole.code, whole.stderr).toBe(0);
    expect(existsSync(inHome("sandbox-outputs", "set", "a.png"))).toBe(true);
    expect(existsSync(join(at.folder, "~"))).toBe(false);
  });

  test("a variable, the settings file of a folder, and one's own", async () => {
    const env = { BULKGEN_OUT: "~/by-variable" };
    expect((await run(at, ["run", "set.csv", "--sandbox", "--yes"], { env })).code).toBe(0);
    expect(existsSync(inHome("by-variable", "set", "a.png"))).toBe(true);
    at.write("bulkgen.config.yaml", "out: ~/by-file\n");
    // It leads out of the folder.
    expect((await run(at, ["plan", "set.csv", "--sandbox"])).stderr).toContain(`out: ${inHome("by-file")}`);
    expect((await run(at, ["trust", "--yes"])).code).toBe(0);
    at.write("set.csv", "id,model,prompt\nb,aurora-image-mini,a jug\n");
    expect((await run(at, ["run", "set.csv", "--sandbox", "--yes"])).code).toBe(0);
    expect(existsSync(inHome("by-file", "set", "b.png"))).toBe(true);
  });

  test("a key file, of init and of the others", async () => {
    const key = `svc_${"k".repeat(32)}`;
    writeFileSync(inHome("key"), "not a key");
    const made = await run(at, ["init", "new", "--base-url", "http://127.0.0.1:9", "--api-key-file=~/key"]);
    expect([made.code, made.stderr]).toEqual([3, expect.not.stringContaining("there is no file")]);
    writeFileSync(inHome("key"), key);
    const asked = ["account", "--base-url", "http://127.0.0.1:9", "--api-key-file=~/key"];
    expect((await run(at, asked)).code).toBe(4);
  });

  test("a schedule keeps the whole path", async () => {
    const words = ["schedule", "add", "night", "set.csv", ...yearly, "--sandbox", "--out=~/nightly"];
    expect((await run(at, words)).code).toBe(0);
    withSchedules(at, (db) => db.exec(aYearAgo));
    const kept = withSchedules(at, (db) => db.prepare("SELECT flags FROM schedules").get()) as {
      flags: string;
    };
    expect(JSON.parse(kept.flags)).toContainEqual(["--out", inHome("nightly")]);
  });

  test("anything else that begins with it is a name", async () => {
    expect((await run(at, ["run", "set.csv", "--sandbox", "--yes", "--out=~pictures"])).code).toBe(0);
    expect(existsSync(join(at.folder, "~pictures", "set", "a.png"))).toBe(true);
  });
});
