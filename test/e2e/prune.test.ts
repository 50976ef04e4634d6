import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openSqlite } from "../../src/sqlite.js";
import { indexOf } from "./archive.js";
import { newPlace, type Place, run, started } from "./command.js";
import { failedTask, type Scripted, startService } from "./service.js";
import { sheet } from "./sheet.js";

const day = 86_400_000;

/** What was archived until now seems to be of a hundred days ago. */
function age(place: Place, state = "state.db"): void {
  const db = openSqlite(join(place.folder, ".bulkgen", state));
  db.exec(`UPDATE outputs SET saved_at = saved_at - ${100 * day};
    UPDATE items SET addressed_at = addressed_at - ${100 * day}, fetch_by = fetch_by - ${100 * day}`);
  db.close();
}

/** A finished job of three items, of which `a02` is picked, and a file of an earlier version of `a03`. */
async function old() {
  const service = await startService();
  const place = newPlace();
  const command = (...args: string[]) => run(place, args, service);
  place.write("set.csv", sheet(3, "plain-image"));
  expect((await command("run", "set.csv", "--yes", "--sidecars")).code).toBe(0);
  place.write("set.csv", sheet(3, "plain-image").replace("a picture of a03", "another picture"));
  expect((await command("run", "set.csv", "--yes", "--sidecars")).code).toBe(0);
  expect((await command("pick", "a02")).code).toBe(0);
  age(place);
  const folder = join(place.folder, "outputs", "set");
  const files = () =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => entry.name)
      .toSorted();
  expect(service.made).toHaveLength(4);
  return { service, place, command, folder, files };
}

const prune = ["prune", "--older-than", "90d"];

describe.concurrent("prune", () => {
  test("shows what goes, keeps what is picked, and no run pays again, nor verify, export or gallery miss it", async () => {
    const { service, place, command, folder, files } = await old();
    const shown = await command(...prune, "--keep-picked", "--dry-run");
    expect(shown, shown.stderr).toMatchObject({ code: 0 });
    expect(shown.stdout).toMatch(/^set +outputs\/set +3 +[\d.]+ k?B +1 +0$/m);
    expect(shown.stdout).toContain("As old, and kept: 1 of picked items.\n");
    expect(shown.stdout).toMatch(/nothing was removed: --dry-run\n$/);
    const before = files();
    expect(await command(...prune)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Add --yes to agree. Nothing was removed."),
    });
    expect(files()).toEqual(before);
    const pruned = await command(...prune, "--keep-picked", "--yes");
    expect(pruned, pruned.stderr).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/\nremoved 3 files, /),
    });
    expect(files()).toEqual(["a02.json", "a02.png", "index.jsonl"]);
    expect(indexOf(folder).length).toBeGreaterThan(4);

    expect(await command("verify", "--read-data")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("every file is intact"),
    });
    for (const words of [["--missing", "fetch"], ["--missing", "pay"], []]) {
      const again = await command("run", "set.csv", "--yes", ...words);
      expect(again, again.stderr).toMatchObject({ code: 0 });
      expect(again.stderr).not.toContain("lost files");
    }
    // The row of the superseded file asks for it again: it was paid for, and is not paid again.
    place.write("set.csv", sheet(3, "plain-image"));
    const back = await command("run", "set.csv", "--yes");
    expect(back, back.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(4);
    const exported = await command("export");
    expect(exported.stdout).toMatch(/^a01,.*,archived,its files were pruned on \d{4}-\d\d-\d\d,2,/m);
    expect(exported.stdout).toMatch(/^a02,.*,a02\.png,yes,,archived,/m);
    expect((await command("export", "--zip", "set.zip", "--files-only")).code).toBe(0);
    expect((await command("gallery")).stdout).toContain("gallery.html: 1 file of job set");
    expect((await command("status")).stdout).toMatch(/^items +3/m);
    expect((await command("doctor")).stdout).not.toMatch(/pruned|missing/);
    // A new version takes the name that has become free.
    expect((await command("redo", "a01", "--yes")).code).toBe(0);
    place.write("set.csv", sheet(3, "plain-image").replace("a picture of a01", "a third picture"));
    expect((await command("run", "set.csv", "--yes")).code).toBe(0);
    expect(files()).toContain("a01.png");
    expect((await command("verify", "--read-data")).code).toBe(0);
    expect(await command(...prune, "--keep-picked")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("nothing to remove that was saved before"),
    });
  });

  test("what was pruned is known after a rebuild, with receipts and without, and is not paid or downloaded again", async () => {
    for (const lost of [["state.db", "state.db-wal", "state.db-shm"], [""]]) {
      const { service, place, command, files } = await old();
      expect((await command(...prune, "--yes")).code).toBe(0);
      expect(files()).toEqual(["index.jsonl"]);
      for (const name of lost) rmSync(join(place.folder, ".bulkgen", name), { recursive: true, force: true });
      expect(await command("run", "set.csv", "--yes")).toMatchObject({ code: 2 });
      const rebuilt = await command("doctor", "--rebuild", "--yes");
      expect(rebuilt.stdout, rebuilt.stderr).toMatch(/^items +4: 4 archived$/m);
      expect(rebuilt.stdout).not.toContain("missing");
      const again = await command("run", "set.csv", "--yes");
      expect(again, again.stderr).toMatchObject({ code: 0 });
      expect(service.made).toHaveLength(4);
      expect(files()).toEqual(["index.jsonl"]);
      expect((await command("verify")).code).toBe(0);
      expect((await command("export")).stdout).toMatch(/^a01,.*,archived,its files were pruned on /m);
    }
  });

  test("files of a job with something left to do stay, and so do those that are newer or were changed", async () => {
    const { service, place, command, folder, files } = await old();
    writeFileSync(join(folder, "a01.png"), "retouched by hand");
    place.write("set.csv", `${sheet(4, "plain-image").replace("a picture of a03", "another picture")}`);
    const capped = await command("run", "set.csv", "--yes", "--max-credits", "0");
    expect(capped.code, capped.stderr).toBe(6);
    const before = files();
    const open = await command(...prune, "--yes", "--json");
    expect(JSON.parse(open.stdout)).toMatchObject({ removed: false, files: 0, kept: { unfinished: 4 } });
    expect(files()).toEqual(before);
    expect((await command("resume", "--max-credits", "9")).code).toBe(0);
    const pruned = await command(...prune, "--yes", "--json");
    expect(JSON.parse(pruned.stdout)).toMatchObject({
      removed: true,
      files: 3,
      groups: [{ job: "set", edition: "", files: 3, superseded: 1, picked: 1 }],
      kept: { picked: 0, unfinished: 0, undecided: 0, changed: 1, bucket: 0 },
    });
    expect(readFileSync(join(folder, "a01.png"), "utf8")).toBe("retouched by hand");
    expect(files()).toEqual(expect.arrayContaining(["a01.png", "a04.png"]));
    expect(service.made).toHaveLength(5);
  });

  test("asks on a terminal, removes old downloads that failed, and leaves an edition's empty folder to nobody", async () => {
    const { service, place, command, folder } = await old();
    expect((await command("run", "set.csv", "--yes", "--edition", "summer")).code).toBe(0);
    age(place);
    expect(existsSync(join(folder, "edition-summer"))).toBe(true);
    const quarantine = join(folder, "_quarantine");
    place.write("outputs/set/_quarantine/x.bad", "broken");
    place.write("outputs/set/_quarantine/new.bad", "broken");
    const long = new Date(Date.now() - 100 * day);
    utimesSync(join(quarantine, "x.bad"), long, long);
    const how = { ...service, columns: 100, keyboard: true };
    const refused = started(place, prune, how);
    await refused.prints(/Remove 8 files, .*, for good\? \[y\/N\]/);
    refused.type("\n");
    expect((await refused.ended).code).toBe(2);
    const asked = started(place, prune, how);
    await asked.prints(/1 download that failed the check, 6 B, in _quarantine[\s\S]*for good\? \[y\/N\]/);
    asked.type("y\n");
    expect((await asked.ended).code).toBe(0);
    expect(readdirSync(quarantine)).toEqual(["new.bad"]);
    expect(existsSync(join(folder, "edition-summer"))).toBe(false);
  });

  test("an item that is to use a pruned file waits, and is not paid for", async () => {
    const service = await startService();
    const place = newPlace();
    const command = (...args: string[]) => run(place, args, service);
    const steps = (more: string) =>
      place.write(
        "set.yaml",
        `name: set\nrows:\n  - {id: cup, prompt: a cup}\nsteps:\n  - {name: draft, model: plain-image}\n${more}`,
      );
    steps("");
    expect((await command("run", "set.yaml", "--yes")).code).toBe(0);
    age(place);
    expect((await command(...prune, "--yes")).code).toBe(0);
    steps('  - {name: final, model: plain-image, prompt: "{{prompt}} again", image_url: "@draft"}\n');
    service.script(({ what }) =>
      what === "GET task"
        ? { status: 404, json: { error: { code: "TASK_NOT_FOUND", message: "gone" } } }
        : "serve",
    );
    const blocked = await command("run", "set.yaml", "--yes");
    expect([blocked.code, service.made.length], blocked.stdout).toEqual([10, 1]);
    expect(blocked.stdout).toContain("the output of cup-draft cannot be handed on");
  });

  test("a prune that was cut short is finished by the next one", async () => {
    const { command, folder, files } = await old();
    // After the file was removed, and before the history knew.
    rmSync(join(folder, "a01.png"));
    expect((await command(...prune, "--yes")).code).toBe(0);
    expect(files()).toEqual(["a01.json", "index.jsonl"]);
    expect((await command("verify")).code).toBe(0);
  });

  test("removes nothing but what was archived: not what the database was made to name, nor what was changed at its size", async () => {
    const { place, command, folder } = await old();
    const victim = join(place.root, "victim");
    mkdirSync(join(victim, "set"), { recursive: true });
    cpSync(join(folder, "a01.png"), join(victim, "set", "thesis.doc"));
    const db = openSqlite(join(place.folder, ".bulkgen", "state.db"));
    const named = (file: string, out: string) =>
      db.prepare("UPDATE outputs SET file = ?, out_folder = ? WHERE file = 'a01.png'").run(file, out);
    named("thesis.doc", victim);
    const changed = readFileSync(join(folder, "a02.png"));
    changed[60] = (changed[60] ?? 0) ^ 1;
    writeFileSync(join(folder, "a02.png"), changed);
    const pruned = await command(...prune, "--yes", "--json");
    expect(JSON.parse(pruned.stdout), pruned.stderr).toMatchObject({
      files: 2,
      groups: [{ folder, files: 2 }],
      kept: { changed: 1, elsewhere: 1 },
    });
    expect(existsSync(join(victim, "set", "thesis.doc"))).toBe(true);
    expect(readFileSync(join(folder, "a02.png"))).toEqual(changed);
    // The runs were made to name that folder too.
    db.exec(`UPDATE runs SET out_folder = '${victim}'`);
    const asked = await command(...prune, "--yes");
    expect(asked).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/that you have not agreed to on this machine:\n {2}out: \S+victim/),
    });
    expect(existsSync(join(victim, "set", "thesis.doc"))).toBe(true);
    expect((await command("trust", "--yes")).code).toBe(0);
    const agreed = await command(...prune, "--yes");
    expect(agreed, agreed.stderr).toMatchObject({ code: 0 });
    expect(agreed.stdout).toMatch(/^set +\.\.\/victim\/set +1 /m);
    expect(existsSync(join(victim, "set", "thesis.doc"))).toBe(false);
    db.close();
  });

  test("a file that a killed prune left is removed by the next one, unless it is another by now", async () => {
    const { command, folder, files } = await old();
    const kept = ["a01.png", "a02.png"].map((name) => [name, readFileSync(join(folder, name))] as const);
    expect((await command(...prune, "--yes")).code).toBe(0);
    for (const [name, content] of kept) writeFileSync(join(folder, name), content);
    writeFileSync(join(folder, "a02.png"), "mine");
    const again = await command(...prune, "--yes", "--json");
    expect(JSON.parse(again.stdout)).toMatchObject({
      removed: true,
      files: 1,
      groups: [{ job: "set", files: 1 }],
    });
    expect(files()).toEqual(["a02.png", "index.jsonl"]);
  });

  test("what was pruned is not missed, fetched or paid for by a history of before the prune", async () => {
    const { service, place, command, files } = await old();
    const backup = join(place.root, "backup");
    cpSync(join(place.folder, ".bulkgen"), backup, { recursive: true });
    expect((await command(...prune, "--yes")).code).toBe(0);
    rmSync(join(place.folder, ".bulkgen"), { recursive: true });
    cpSync(backup, join(place.folder, ".bulkgen"), { recursive: true });
    const asked = service.asked.length;
    expect(await command("verify", "--repair")).toMatchObject({ code: 0 });
    for (const missing of ["fetch", "pay"]) {
      const again = await command("run", "set.csv", "--yes", "--missing", missing);
      expect(again, again.stderr).toMatchObject({ code: 0 });
    }
    expect(service.made).toHaveLength(4);
    expect(service.asked.slice(asked).filter(({ what }) => what === "GET file")).toEqual([]);
    expect((await command(...prune, "--yes")).code).toBe(0);
    expect((await command("export")).stdout).toMatch(/^a01,.*its files were pruned on /m);
    expect(files()).toEqual(["index.jsonl"]);
  });

  test("what failed items and unfinished jobs take as input stays", async () => {
    const service = await startService();
    const place = newPlace();
    const command = (...args: string[]) => run(place, args, service);
    service.script(({ what, path }): Scripted => {
      const made = service.made.find(({ task, prompt }) => path.endsWith(task) && prompt === "fails");
      return what === "GET task" && made !== undefined ? { json: failedTask(made) } : "serve";
    });
    place.write(
      "set.csv",
      "id,model,prompt,image_url\na,plain-image,x,\nb,plain-image,fails,@a\nc,plain-image,z,\nd,plain-image,w,\n",
    );
    expect((await command("run", "set.csv", "--yes", "--retries", "0")).code).toBe(5);
    place.write(
      "other.csv",
      "id,model,prompt,image_url\np,plain-image,first,\nq,plain-image,y,outputs/set/c.png\n",
    );
    const publish = ["--publish-command", "echo https://example.com/x.png"];
    const capped = await command("run", "other.csv", "--yes", "--max-credits", "2", ...publish);
    expect(capped.code, capped.stderr).toBe(6);
    age(place);
    // The service has made the same picture of each row.
    const db = openSqlite(join(place.folder, ".bulkgen", "state.db"));
    for (const [at, id] of ["a", "d"].entries()) {
      const path = join(place.folder, `outputs/set/${id}.png`);
      const content = readFileSync(path);
      content[60 + at] = (content[60 + at] ?? 0) ^ 1;
      writeFileSync(path, content);
      const sha256 = createHash("sha256").update(content).digest("hex");
      db.prepare("UPDATE outputs SET sha256 = ? WHERE file = ?").run(sha256, `${id}.png`);
    }
    db.close();
    const pruned = await command(...prune, "--yes", "--json");
    expect(JSON.parse(pruned.stdout), pruned.stderr).toMatchObject({
      files: 1,
      groups: [{ job: "set", files: 1 }],
      kept: { needed: 2, unfinished: 1 },
    });
    expect(["a", "c", "d"].map((id) => existsSync(join(place.folder, `outputs/set/${id}.png`)))).toEqual([
      true,
      true,
      false,
    ]);
    service.script(() => "serve");
    expect((await command("retry", "1", "--yes")).code).toBe(0);
    const resumed = await command("resume", "--yes", "--max-credits", "10", ...publish.slice(0, 2));
    expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
  });

  test("a file behind a linked folder is left alone, and the others go", async () => {
    const service = await startService();
    const place = newPlace();
    const command = (...args: string[]) => run(place, args, service);
    place.write("set.csv", "id,model,prompt,output\na,plain-image,x,sub/a\nb,plain-image,y,b\n");
    expect((await command("run", "set.csv", "--yes")).code).toBe(0);
    age(place);
    const folder = join(place.folder, "outputs", "set");
    renameSync(join(folder, "sub"), join(place.root, "moved"));
    symlinkSync(join(place.root, "moved"), join(folder, "sub"));
    const pruned = await command(...prune, "--yes");
    expect(pruned, pruned.stderr).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("1 behind a symbolic link"),
    });
    expect(existsSync(join(place.root, "moved", "a.png"))).toBe(true);
    expect(existsSync(join(folder, "b.png"))).toBe(false);
  });

  test("a pruned item cannot be picked, and one that was picked is told of by pick, gallery and export", async () => {
    const { place, command } = await old();
    expect((await command("pick", "a03")).code).toBe(0);
    const keep = await command(...prune, "--yes", "--keep-picked");
    expect(keep.code, keep.stderr).toBe(0);
    expect(await command("pick", "a01")).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/a01 cannot be picked: its files were pruned on \d{4}-\d\d-\d\d\. /),
    });
    expect((await command("pick", "a02", "--undo")).code).toBe(0);
    expect((await command(...prune, "--yes", "--keep-picked")).code).toBe(0);
    const packed = await command("export", "--picked", "--zip", "x.zip", "--files-only");
    expect(packed.stderr).toBe("x.zip: 1 file\n");
    expect((await command("pick", "a03")).stdout).toContain("a03 was picked already");
    expect((await command(...prune, "--yes")).code).toBe(0);
    const told = "a03: picked, but its file was pruned";
    expect((await command("pick")).stdout).toMatch(/^a03 .*its file was pruned/m);
    for (const words of [
      ["export", "--picked", "--zip", "y.zip", "--files-only"],
      ["export", "--picked", "--zip", "y.zip"],
      ["gallery", "--picked"],
    ])
      expect(await command(...words)).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(new RegExp(`${told}[^]*Nothing was written\\.\n$`)),
      });
    expect(place.files().filter((name) => name.endsWith("y.zip"))).toEqual([]);
    expect((await command("run", "set.csv", "--yes")).stderr).not.toContain("pruned");
  });

  test("every command that a rehearsal names is one of the rehearsal: it buys nothing", async () => {
    const place = newPlace();
    place.write("set.csv", "id,model,prompt\na,aurora-image-mini,a cup\nb,aurora-image-mini,a jug\n");
    const command = (...args: string[]) => run(place, [...args, "--sandbox"]);
    expect((await command("run", "set.csv", "--yes")).code).toBe(0);
    expect((await command("pick", "a")).code).toBe(0);
    age(place, "sandbox/state.db");
    expect((await command(...prune, "--yes")).code).toBe(0);
    const ends = [
      await command("pick", "b"),
      await command("gallery", "--picked"),
      await command("export", "--picked", "--zip", "y.zip", "--files-only"),
    ];
    for (const { stderr } of ends) {
      const named = stderr.match(/`bulkgen [^`]*`/g) ?? [];
      expect(named.length, stderr).toBeGreaterThan(0);
      for (const words of named) expect(words).toContain(" --sandbox");
    }
  });

  test.each([
    [["prune"], "--older-than <age> is missing"],
    [["prune", "--older-than", "90"], '--older-than: expected an age such as 90d or 12h, got "90"'],
    [["prune", "--older-than", "0d"], "expected an age such as 90d"],
    [["prune", "--older-than", "99999999999999d"], 'expected at most 36500d, got "99999999999999d"'],
    [["prune", "--older-than", "1d"], "no run"],
  ])("%j is refused", async (words, message) => {
    const place = newPlace();
    expect(await run(place, words)).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
    expect(place.files()).toEqual([]);
  });
});
