import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { openSqlite } from "../../src/sqlite.js";
import { newPlace, type Place, run } from "./command.js";
import { yearly } from "./due-schedule.js";

/** A folder that came from somebody else, with this user's own file beside it. */
let at: Place;
const secret = () => join(at.root, "home", "secret");
const made = (...words: string[]) => run(at, [...words, "--sandbox"]);

beforeEach(async () => {
  at = newPlace();
  writeFileSync(secret(), "s3cret\n");
  at.write("set.csv", "id,model,prompt\na,aurora-image-mini,a cup\n");
  expect((await made("run", "set.csv", "--yes")).code).toBe(0);
});

const stateFile = () => join(at.folder, ".bulkgen", "sandbox", "state.db");

function change(sql: string): void {
  const db = openSqlite(stateFile());
  db.exec(sql);
  db.close();
}

const commands = [
  ["status"],
  ["export", "--to", "out.csv"],
  ["export", "--zip", "out.zip", "--files-only"],
  ["verify", "--repair", "--clean", "--yes"],
  ["gallery"],
  ["find", "cup"],
  ["pick", "a"],
  ["redo", "a", "--yes"],
  ["report"],
  ["adopt", ".", "set.csv"],
];

describe("P26: a name in a received state that leads out of its folder", () => {
  test.each(["../../../home/secret", "/etc/passwd", "a/../../x.png", "./x.png", "..\\x.png"])(
    "is refused by every command in one sentence: %s",
    async (name) => {
      change(`UPDATE outputs SET file = '${name}', bytes = 7`);
      for (const words of commands) {
        const { code, stdout, stderr } = await made(...words);
        expect([words, code]).toEqual([words, 2]);
        expect(stderr).toContain("somebody else may have changed it");
        expect(stdout + stderr).not.toMatch(/s3cret|at .*\.js:/);
      }
      expect(readFileSync(secret(), "utf8")).toBe("s3cret\n");
      expect(["out.csv", "out.zip"].filter((file) => existsSync(join(at.folder, file)))).toEqual([]);
      const rebuilt = await made("doctor", "--rebuild", "--yes");
      expect(rebuilt.code, rebuilt.stderr).toBe(0);
      expect((await made("status")).code).toBe(0);
    },
  );
});

describe("P26: code in a received database", () => {
  test.each([
    ["trigger", "CREATE TRIGGER t AFTER UPDATE ON items BEGIN UPDATE items SET prompt = 'theirs'; END"],
    ["trigger", "CREATE TRIGGER t BEFORE INSERT ON runs BEGIN SELECT RAISE(ABORT, 'stop'); END"],
    ["view", "CREATE VIEW t AS SELECT * FROM items"],
  ])("is refused before it runs: a %s", async (what, sql) => {
    change(sql);
    for (const words of [...commands, ["run", "set.csv", "--yes"]]) {
      const { code, stderr } = await made(...words);
      expect([words, code]).toEqual([words, 2]);
      expect(stderr).toContain(`has the ${what} "t", which bulkgen did not make`);
      expect(stderr).not.toMatch(/\n {4}at /);
    }
  });

  test("is refused in the schedules too", async () => {
    expect((await run(at, ["schedule", "add", "night", "set.csv", ...yearly, "--sandbox"])).code).toBe(0);
    const db = openSqlite(join(at.folder, ".bulkgen", "schedules.db"));
    db.exec("CREATE TRIGGER t AFTER INSERT ON scheduled_runs BEGIN DELETE FROM schedules; END");
    db.close();
    for (const words of [["list"], ["run", "night"], ["start"], ["show"]]) {
      const { code, stderr } = await run(at, ["schedule", ...words]);
      expect([code, stderr]).toEqual([2, expect.stringContaining('has the trigger "t"')]);
    }
  });
});

describe("P26: nothing is written through a link that a folder brings along", () => {
  /** Every writer, and the names at which it could be misled. */
  const writers: [string, string[], string[]][] = [
    ["export --to", ["out.csv.part"], ["export", "--to", "out.csv"]],
    ["export --zip", ["out.zip.part"], ["export", "--zip", "out.zip", "--files-only"]],
    ["plan -o", ["plan.json.part"], ["plan", "set.csv", "-o", "plan.json"]],
    ["models --save", ["models.json", "models.json.part"], ["models", "--save", "models.json"]],
    ["gallery", ["sandbox-outputs/set/gallery.html"], ["gallery"]],
    [
      "problems.csv",
      ["sandbox-outputs/set/problems.csv"],
      ["run", "bad.csv", "--job", "set", "--skip-invalid", "--yes"],
    ],
    ["the lock's note", [".bulkgen/sandbox/run.lock.owner.json"], ["run", "more.csv", "--yes"]],
  ];

  test.each(writers)("%s", async (_, names, words) => {
    at.write("bad.csv", "id,model,prompt\na,aurora-image-mini,a cup\nb,no-such-model,a jug\n");
    at.write("more.csv", "id,model,prompt\nm,aurora-image-mini,a bowl\n");
    for (const name of names) {
      rmSync(join(at.folder, name), { force: true });
      symlinkSync(secret(), join(at.folder, name));
    }
    const { code, stderr } = await made(...words);
    expect(code, stderr).toBe(0);
    expect(readFileSync(secret(), "utf8")).toBe("s3cret\n");
  });

  test.each([".gitignore", "jobs", ".env", ".bulkgen"])("init, with a link %s", async (name) => {
    const elsewhere = join(at.root, "home", "elsewhere");
    mkdirSync(elsewhere);
    mkdirSync(join(at.folder, "new"));
    symlinkSync(name === "jobs" || name === ".bulkgen" ? elsewhere : secret(), join(at.folder, "new", name));
    const { code, stderr } = await run(at, ["init", "new", "--sandbox"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("by a symbolic link")]);
    expect(readFileSync(secret(), "utf8")).toBe("s3cret\n");
    expect(existsSync(join(elsewhere, "first.csv"))).toBe(false);
  });

  test.each(["state.db", "receipts.jsonl", "run.lock"])("a linked %s is refused", async (name) => {
    const path = join(at.folder, ".bulkgen", "sandbox", name);
    renameSync(path, join(at.root, "home", name));
    symlinkSync(join(at.root, "home", name), path);
    at.write("more.csv", "id,model,prompt\nm,aurora-image-mini,a bowl\n");
    const before = readFileSync(join(at.root, "home", name));
    const { code, stderr } = await made("run", "more.csv", "--yes");
    expect(code, stderr).not.toBe(0);
    expect(stderr).not.toMatch(/\n {4}at /);
    expect(readFileSync(join(at.root, "home", name)).equals(before)).toBe(true);
  });
});

describe("P26: a link in place of an output", () => {
  test("is not packed, and verify says that the file is missing", async () => {
    const file = join(at.folder, "sandbox-outputs", "set", "a.png");
    const bytes = readFileSync(file);
    rmSync(file);
    writeFileSync(join(at.root, "home", "same-size"), Buffer.alloc(bytes.length, "s3cret"));
    symlinkSync(join(at.root, "home", "same-size"), file);
    const packed = await made("export", "--zip", "out.zip", "--files-only");
    expect([packed.code, existsSync(join(at.folder, "out.zip"))]).toEqual([5, false]);
    const verified = await made("verify", "--read-data");
    expect(verified.code).not.toBe(0);
    expect(lstatSync(file).isSymbolicLink()).toBe(true);
  });
});
