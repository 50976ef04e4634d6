import { cpSync, existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { expectArchived } from "./archive.js";
import { newPlace, type Place, run, start, started } from "./command.js";
import { type Scripted, type ScriptedService, startService } from "./service.js";
import { ids, sheet } from "./sheet.js";

const items = 4;
const begin = ["run", "set.csv", "--yes", "--lanes", "1"];

interface Synced {
  place: Place;
  service: ScriptedService;
  /** A folder that is synced, with a sheet in it. */
  folder: string;
  /** Runs the command in it. */
  command(...args: string[]): ReturnType<typeof run>;
}

async function synced(): Promise<Synced> {
  const service = await startService();
  const place = newPlace();
  place.write("Dropbox/jobs/set.csv", sheet(items, "plain-image"));
  const folder = join(place.folder, "Dropbox", "jobs");
  return { place, service, folder, command: (...args) => run(place, args, { ...service, cwd: folder }) };
}

const prompts = (service: ScriptedService) => service.made.map(({ prompt }) => prompt).toSorted();
const allPrompts = ids(items).map((id) => `a picture of ${id}`);

describe.concurrent("P18: a workspace in a synced folder", () => {
  test("keeps its state in the local state folder, says so once, and is found again after a kill", async () => {
    const { place, service, folder, command } = await synced();
    service.script(({ what, before }): Scripted => {
      if (what === "GET task" && before === 1) first.signal("SIGKILL");
      return "serve";
    });
    const first = start(place, begin, { ...service, cwd: folder });
    const cut = await first.ended;
    expect(cut.signal).toBe("SIGKILL");
    expect(cut.stderr).toMatch(/^bulkgen: the state of this workspace is kept in .*workspaces.*\(Dropbox\)/m);
    expect(place.files().filter((name) => name.startsWith("here/Dropbox/jobs/.bulkgen"))).toEqual([
      "here/Dropbox/jobs/.bulkgen/workspace.json",
    ]);
    expect((await command("status")).stdout).toContain("run       1 of set (set.csv): crashed");
    expect((await command("pause")).stdout).toContain("run 1 is paused");

    service.script(() => "serve");
    const second = await command("resume");
    expect([0, 10], second.stderr).toContain(second.code);
    expect(second.stderr).not.toContain("is kept in");
    expect(prompts(service)).toEqual(allPrompts);
    const doctor = await command("doctor");
    expect(doctor.stdout.replace(/\s+/g, " ")).toContain("is on Dropbox");
    expect(doctor.code, doctor.stdout).toBe(0);
  });

  test("whose state is gone is not paid for again, by no command", async () => {
    const { place, service, command } = await synced();
    expect((await command(...begin)).code).toBe(0);
    rmSync(join(place.root, "state", "bulkgen", "workspaces"), { recursive: true });
    for (const args of [begin, ["plan", "set.csv"], ["status"], ["resume"]]) {
      const end = await command(...args);
      expect(end, args[0]).toMatchObject({ code: 2, stdout: "" });
      expect(end.stderr).toMatch(/^bulkgen: the state of .* is kept in .* but it is gone.*Nothing was sent/);
    }
    const lost = await command("doctor");
    expect(lost.code).toBe(2);
    expect(lost.stdout).toContain(
      "expected a readable history, or none yet; got none that can be used: the state of",
    );
    expect(service.made).toHaveLength(items);
  });

  test("rehearses with the state there too, and the outputs here", async () => {
    const { place, folder, command } = await synced();
    place.write("Dropbox/jobs/set.csv", sheet(2));
    const end = await command("run", "set.csv", "--sandbox", "--yes");
    expect(end, end.stderr).toMatchObject({ code: 0 });
    expectArchived(join(folder, "sandbox-outputs", "set"), ids(2));
    expect(place.files().filter((name) => name.startsWith("here/Dropbox/jobs/.bulkgen"))).toHaveLength(1);
    expect((await command("sandbox", "keys", "list")).stdout).toMatch(/^sandbox /m);
    expect((await command("status", "--sandbox")).stdout).toContain("1 of set (set.csv): finished");
  });
});

describe.concurrent("P18: a workspace that was copied", () => {
  test("is refused while the original exists, until it is made independent", async () => {
    const service = await startService();
    const place = newPlace();
    place.write("one/set.csv", sheet(items, "plain-image"));
    const command = (folder: string, ...args: string[]) =>
      run(place, args, { ...service, cwd: join(place.folder, folder) });
    expect((await command("one", "run", "set.csv", "--yes")).code).toBe(0);
    cpSync(join(place.folder, "one"), join(place.folder, "two"), { recursive: true });
    const asked = service.asked.length;
    const plan = ["plan", "set.csv"];
    for (const args of [
      ["run", "set.csv", "--yes"],
      plan,
      ["resume"],
      ["redo", "a01", "--yes"],
      ["cancel"],
    ]) {
      const end = await command("two", ...args);
      expect(end, args[0]).toMatchObject({ code: 2, stdout: "" });
      expect(end.stderr).toMatch(/is a copy of the workspace .*one: .*doctor --separate/);
    }
    expect(service.asked).toHaveLength(asked);
    expect((await command("two", "doctor", "--json")).stdout).toContain('"name":"copy","state":"problem"');

    const separate = await command("two", "doctor", "--separate");
    expect(separate, separate.stderr).toMatchObject({ code: 0, stderr: "" });
    for (const folder of ["one", "two"]) {
      const end = await command(folder, "run", "set.csv", "--yes");
      expect(end, end.stderr).toMatchObject({ code: 0 });
      expect(end.stdout).toContain("all of them before, not paid again");
    }
    expect(prompts(service)).toEqual(allPrompts);
    expectArchived(join(place.folder, "two", "outputs", "set"), ids(items));
    expect((await command("two", "doctor", "--separate")).stderr).toContain("is not a copy");
  });
});

describe.concurrent("the contents of a workspace move with its folder", () => {
  async function ran() {
    const service = await startService();
    const place = newPlace();
    place.write("one/set.csv", sheet(items, "plain-image"));
    const at = (name: string) => join(place.folder, name);
    const command = (name: string, ...args: string[]) => run(place, args, { ...service, cwd: at(name) });
    expect((await command("one", "run", "set.csv", "--yes")).code).toBe(0);
    return { service, at, command };
  }

  test("a moved workspace has its files, and pays for none of them again", async () => {
    const { service, at, command } = await ran();
    renameSync(at("one"), at("two"));
    expect((await command("two", "verify")).code).toBe(0);
    const again = await command("two", "run", "set.csv", "--yes", "--missing", "pay");
    expect(again, again.stderr).toMatchObject({ code: 0 });
    expect(prompts(service)).toEqual(allPrompts);
    expect((await command("two", "gallery")).code).toBe(0);
    expect(existsSync(at("two/outputs/set/gallery.html"))).toBe(true);
    expect(existsSync(at("one"))).toBe(false);
  });

  test("a copy uses its own files, before and after it is made independent", async () => {
    const { at, command } = await ran();
    cpSync(at("one"), at("two"), { recursive: true });
    expect((await command("two", "gallery")).code).toBe(0);
    expect(existsSync(at("one/outputs/set/gallery.html"))).toBe(false);
    expect((await command("two", "doctor", "--separate", "--yes")).code).toBe(0);
    rmSync(at("two/outputs/set/a01.png"));
    rmSync(at("one/outputs/set/a02.png"));
    expect((await command("two", "verify")).stdout).toContain("a01.png");
    const repaired = await command("two", "verify", "--repair");
    expect(existsSync(at("two/outputs/set/a01.png")), repaired.stdout).toBe(true);
    expect(existsSync(at("one/outputs/set/a02.png"))).toBe(false);
  });

  test("an interrupted run continues in the new place, also if its state is elsewhere", async () => {
    const { place, service, folder } = await synced();
    service.script(({ what, before }): Scripted => {
      if (what === "GET task" && before === 1) first.interrupt();
      return "serve";
    });
    const first = started(place, begin, { ...service, cwd: folder });
    expect((await first.ended).code).toBe(130);
    service.script(() => "serve");
    const moved = join(place.folder, "Dropbox", "moved");
    renameSync(folder, moved);
    const resumed = await run(place, ["resume"], { ...service, cwd: moved });
    expect([0, 10], resumed.stderr).toContain(resumed.code);
    expect(prompts(service)).toEqual(allPrompts);
    expectArchived(join(moved, "outputs", "set"), ids(items));
    expect(existsSync(folder)).toBe(false);
  });
});
