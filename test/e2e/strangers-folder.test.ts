import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { type FlagSet, nameOf } from "../../src/options/definition.js";
import { runFlags } from "../../src/options/run.js";
import { openSqlite } from "../../src/sqlite.js";
import { type Hook, startHook } from "../notify/receivers.js";
import { newPlace, type Place, run, started } from "./command.js";
import { aYearAgo, withSchedules, yearly } from "./due-schedule.js";
import { testKey } from "./leaked-key.js";
import { failedTask, type ScriptedService, startService } from "./service.js";
import { skippingClock } from "./skipping-clock.js";

/** A model of the sandbox, and one of the scripted service. */
const [model, theirs] = ["aurora-image-mini", "plain-image"];

/** A folder that came from somebody else, with this user's own key and service in the environment. */
let at: Place;
let hook: Hook;
let service: ScriptedService;

beforeEach(async () => {
  at = newPlace();
  hook = await startHook(200);
  service = await startService();
  at.write("set.csv", `id,model,prompt\na,${model},a cup\n`);
});

const trustFile = () => join(at.root, "state", "bulkgen", "trust.json");
const secrets = { AWS_SECRET_ACCESS_KEY: "wJalrXUtnFEMI" };

test("every setting says what the file of a folder may do with it", () => {
  const without = Object.entries(runFlags as FlagSet)
    .filter(([, { inFiles, fromFolder }]) => inFiles === undefined && fromFolder === undefined)
    .map(([attribute]) => nameOf(attribute));
  expect(without).toEqual([]);
  const asks = Object.entries(runFlags as FlagSet)
    .filter(([, { fromFolder = "free" }]) => fromFolder !== "free")
    .map(([attribute]) => nameOf(attribute))
    .toSorted();
  expect(asks).toEqual([
    "after-file",
    "after-set",
    "archive",
    "base-url",
    "models",
    "notify",
    "orphan-credits",
    "out",
    "publish",
    "smtp-from",
    "smtp-url",
  ]);
});

describe("settings that came with a folder", () => {
  const values: Record<string, string> = {
    notify: "mailto:thief@example.org",
    "smtp-url": "$AWS_SECRET_ACCESS_KEY",
    "smtp-from": "you@example.org",
    publish: "s3://theirs/inputs",
    archive: "s3://theirs/outputs",
    out: "../elsewhere",
    "orphan-credits": "1000",
    "after-file": "curl theirs.example",
    "after-set": "curl theirs.example",
  };

  const shown = (value: string) => (value.startsWith("../") ? join(at.root, value.slice(3)) : value);

  test.each(Object.entries(values))(
    "%s has no effect until the user has agreed to the value",
    async (name, value) => {
      at.write("bulkgen.config.yaml", `${name}: ${JSON.stringify(value)}\n`);
      for (const command of ["plan", "run"]) {
        const { code, stderr } = await run(at, [command, "set.csv", "--sandbox"], { env: secrets });
        expect(code).toBe(2);
        expect(stderr).toContain(
          `  ${name}: ${shown(value)}  (${join(at.folder, "bulkgen.config.yaml")}:1:1)\n`,
        );
        expect(stderr).toContain("Nothing was sent. Run `bulkgen trust` to look and agree.");
        expect(stderr).not.toContain(secrets.AWS_SECRET_ACCESS_KEY);
      }
      expect(existsSync(join(at.root, "elsewhere"))).toBe(false);
      // Others of the same name are asked about again.
      expect((await run(at, ["trust", "--yes"])).code).toBe(0);
      const asked = await run(at, ["plan", "set.csv", "--sandbox"], { env: secrets });
      expect(asked.stderr).not.toContain("may come from somebody else");
      at.write("bulkgen.config.yaml", `${name}: ${JSON.stringify(`${value}0`)}\n`);
      const other = await run(at, ["plan", "set.csv", "--sandbox"], { env: secrets });
      expect([other.code, other.stderr]).toEqual([2, expect.stringContaining(`${name}: ${shown(value)}0`)]);
    },
  );

  test("what the user says on the line or in the environment, and an output folder inside, need no question", async () => {
    at.write("bulkgen.config.yaml", "notify: https://theirs.example/hook\nout: pictures\n");
    const line = await run(at, ["plan", "set.csv", "--sandbox", "--notify", hook.url]);
    expect(line.code).toBe(0);
    const variable = await run(at, ["plan", "set.csv", "--sandbox"], { env: { BULKGEN_NOTIFY: hook.url } });
    expect(variable.code).toBe(0);
  });

  test("a mistake in the command sends nothing to anybody, whoever set the target", async () => {
    at.write("empty.csv", "id,model,prompt\n");
    at.write("bad.csv", "id,model,prompt\na,no-such-model,a cup\n");
    for (const manifest of ["nope.csv", "empty.csv", "bad.csv"]) {
      const words = ["run", manifest, "--yes", "--sandbox", "--notify", hook.url];
      expect((await run(at, words)).code).toBe(2);
    }
    expect((await run(at, ["run", "set.csv", "--notify", hook.url])).code).toBe(2);
    expect(hook.received).toEqual([]);
  });

  test("an agreed target gets its headers and never bulkgen's own key, whatever its variable is called", async () => {
    const target = (headers: object) => `notify: ${JSON.stringify([{ url: hook.url, headers }])}\n`;
    at.write("set.csv", `id,model,prompt\na,${theirs},a cup\n`);
    const env = { ...service.env, ...secrets, COPY: `Bearer ${testKey}` };
    for (const variable of ["$BULKGEN_API_KEY", "$COPY"]) {
      at.write("bulkgen.config.yaml", target({ x: variable }));
      expect((await run(at, ["trust", "--yes"], { env })).stdout).toContain(variable);
      const { code, stderr } = await run(at, ["run", "set.csv", "--yes"], { env });
      expect([code, stderr]).toEqual([2, expect.stringContaining("the API key")]);
    }
    expect(hook.received).toEqual([]);
    at.write("bulkgen.config.yaml", target({ y: "$AWS_SECRET_ACCESS_KEY" }));
    expect((await run(at, ["run", "set.csv", "--yes"], { env })).code).toBe(2);
    expect(hook.received).toEqual([]);
    expect((await run(at, ["trust", "--yes"], { env })).code).toBe(0);
    expect((await run(at, ["run", "set.csv", "--yes"], { env })).code).toBe(0);
    expect(hook.received.map(({ headers }) => headers["y"])).toEqual([secrets.AWS_SECRET_ACCESS_KEY]);
    expect(JSON.stringify(hook.received)).not.toContain(testKey);
  });

  test("a terminal asks, with the value in full and without control characters; a no sends nothing", async () => {
    at.write("bulkgen.config.yaml", `notify: "${hook.url}/\\e]0;x\\a${"long/".repeat(60)}"\n`);
    const words = ["plan", "set.csv", "--sandbox"];
    const refused = started(at, words, { keyboard: true });
    await refused.prints(/Agree to it\? \[y\/N\]/);
    expect(refused.stderr()).toContain(`notify: ${hook.url}/${"long/".repeat(60)}`);
    expect(refused.stderr()).not.toContain("\u001b]0;x");
    refused.type("n\n");
    expect((await refused.ended).code).toBe(2);
    const agreed = started(at, words, { keyboard: true });
    await agreed.prints(/Agree to it\? \[y\/N\]/);
    agreed.type("y\n");
    expect((await agreed.ended).code).toBe(0);
    expect((await run(at, words)).code).toBe(0);
  });

  test("bulkgen trust shows, agrees, lists and forgets; its record is the user's alone and holds no value", async () => {
    at.write("bulkgen.config.yaml", "notify: https://theirs.example/s3cret\n");
    const shown = await run(at, ["trust"]);
    expect([shown.code, shown.stdout]).toEqual([
      2,
      expect.stringContaining("notify: https://theirs.example/s3cret"),
    ]);
    expect(existsSync(trustFile())).toBe(false);
    expect((await run(at, ["trust", "--yes"])).stdout).toContain("agreed to 1 value");
    expect(statSync(trustFile()).mode & 0o777).toBe(0o600);
    expect(readFileSync(trustFile(), "utf8")).not.toContain("s3cret");
    expect((await run(at, ["trust", "--list"])).stdout).toMatch(
      new RegExp(`${at.folder}\n {2}notify, agreed `),
    );
    // The same files in another folder may come from somebody else again.
    renameSync(at.folder, `${at.folder}-moved`);
    const moved = { ...at, folder: `${at.folder}-moved` };
    expect((await run(moved, ["plan", "set.csv", "--sandbox"])).code).toBe(2);
    renameSync(`${at.folder}-moved`, at.folder);
    expect((await run(at, ["trust", "--forget"])).stdout).toContain("forgot 1 agreement");
    expect((await run(at, ["plan", "set.csv", "--sandbox"])).code).toBe(2);
    writeFileSync(trustFile(), '{"folders": 3}');
    const damaged = await run(at, ["plan", "set.csv", "--sandbox"]);
    expect([damaged.code, damaged.stderr]).toEqual([2, expect.stringContaining("trust.json is damaged")]);
  });

  test("S1: an address that is forgotten does not get the key again", async () => {
    const theirs = await startService();
    const { BULKGEN_BASE_URL: address, ...env } = theirs.env;
    at.write(".env", `BULKGEN_BASE_URL=${address}\n`);
    const account = () => run(at, ["account"], { env });
    expect((await run(at, ["account"], service)).code).toBe(0);
    expect(await account()).toMatchObject({ code: 2, stderr: expect.stringContaining("bulkgen trust") });
    expect((await run(at, ["trust", "--yes"], { env })).code).toBe(0);
    expect((await account()).code).toBe(0);
    const asked = theirs.asked.length;
    expect((await run(at, ["trust", "--forget"], { env })).stdout).toContain("forgot 1 agreement");
    expect(await account()).toMatchObject({ code: 2, stderr: expect.stringContaining("bulkgen trust") });
    expect((await run(at, ["trust"], { env })).stdout).toContain(`base-url: ${address}`);
    expect(theirs.asked).toHaveLength(asked);
    // The user's own service keeps the key.
    expect((await run(at, ["account"], service)).code).toBe(0);
  });

  test("doctor names them, and sends nothing to them", async () => {
    at.write("bulkgen.config.yaml", `notify: ${hook.url}\n`);
    const { stdout } = await run(at, ["doctor", "--json", "--sandbox"]);
    const { checks } = JSON.parse(stdout) as { checks: { name: string; got: string; todo?: string }[] };
    expect(checks.find(({ name }) => name === "trust")).toMatchObject({
      state: "warning",
      got: expect.stringContaining(`notify: ${hook.url}`),
      todo: "run `bulkgen trust` to look and agree",
    });
    expect(hook.received).toEqual([]);
  });
});

describe("files of elsewhere", () => {
  beforeEach(() => {
    mkdirSync(join(at.root, "home"), { recursive: true });
    writeFileSync(
      join(at.root, "home", "secret.csv"),
      `id,model,prompt\n//secret-token,${model},s3cret prompt\n`,
    );
    symlinkSync(join(at.root, "home", "secret.csv"), join(at.folder, "linked.csv"));
    symlinkSync(join(at.root, "home"), join(at.folder, "folder"));
  });

  test.each(["../home/secret.csv", "linked.csv", "folder/secret.csv", "ABSOLUTE"])(
    "a job's rows are not read from %s",
    async (name) => {
      const rows = name === "ABSOLUTE" ? join(at.root, "home", "secret.csv") : name;
      at.write("job.yaml", `name: j\nrows: ${rows}\n`);
      for (const words of [
        ["plan", "job.yaml"],
        ["run", "job.yaml", "--yes", "--notify", hook.url],
      ]) {
        const { code, stdout, stderr } = await run(at, [...words, "--sandbox"]);
        expect(code).toBe(2);
        expect(stderr).toContain("the rows' file cannot be used: it lies outside the manifest's folder");
        expect(stdout + stderr).not.toMatch(/s3cret|secret-token/);
      }
      expect(hook.received).toEqual([]);
      const piped = await run(at, ["plan", "-", "--sandbox"], { stdin: `name: j\nrows: ${rows}\n` });
      expect([piped.code, piped.stdout + piped.stderr]).toEqual([
        2,
        expect.not.stringMatching(/s3cret|secret-token/),
      ]);
    },
  );

  test("rows of the manifest's own folder are read, also through a link within it", async () => {
    symlinkSync("set.csv", join(at.folder, "newest.csv"));
    at.write("job.yaml", "name: j\nrows: newest.csv\n");
    expect((await run(at, ["plan", "job.yaml", "--sandbox"])).code).toBe(0);
  });
});

describe("a schedule that came with a folder", () => {
  const add = (words: string[] = []) =>
    run(at, ["schedule", "add", "night", "set.csv", ...yearly, "--sandbox", ...words]);
  const mark = () => join(at.root, "ran.txt");

  /** As if the folder had come from another machine. */
  const received = () => rmSync(trustFile(), { force: true });

  test("needs no question where its user added it, and does nothing anywhere else before they agree", async () => {
    expect((await add(["--notify-command", `touch ${mark()}`])).code).toBe(0);
    received();
    const listed = await run(at, ["schedule", "list"]);
    expect(listed.code).toBe(0);
    expect(listed.stdout).toContain("they do nothing until `bulkgen trust`");
    expect(listed.stdout).toContain(`touch ${mark()}`);
    for (const words of [
      ["schedule", "run", "night"],
      ["schedule", "start"],
    ]) {
      const { code, stderr } = await run(at, words);
      expect(code).toBe(2);
      expect(stderr).toContain("schedule night: '0 0 1 1 *' in UTC");
      expect(stderr).toContain("bulkgen trust");
    }
    // One changed flag is no agreement to the others.
    expect(await run(at, ["schedule", "edit", "night", "--max-credits", "1"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Nothing was changed"),
    });
    expect(existsSync(mark())).toBe(false);
    expect((await run(at, ["trust", "--yes"])).stdout).toContain(`touch ${mark()}`);
    expect((await run(at, ["schedule", "run", "night"])).code).toBe(0);
    expect(existsSync(mark())).toBe(true);
  });

  test("is asked about again when any part of it has changed", async () => {
    expect((await add()).code).toBe(0);
    const flags = JSON.stringify([["--sandbox"], ["--notify-command", `touch ${mark()}`]]);
    withSchedules(at, (db) => db.prepare("UPDATE schedules SET flags = ?").run(flags));
    const { code, stderr } = await run(at, ["schedule", "run", "night"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`touch ${mark()}`)]);
    expect(existsSync(mark())).toBe(false);
  });

  test("does not end a daemon that is running: it says so, starts nothing, and goes on", async () => {
    expect((await add(["--notify-command", `touch ${mark()}`])).code).toBe(0);
    const daemon = started(at, ["schedule", "start"]);
    await daemon.prints(/running the schedules/);
    received();
    withSchedules(at, (db) => db.exec(aYearAgo));
    await daemon.prints(/you have not agreed to it: `bulkgen trust` shows what it would run \(exit 2\)/);
    // What the user agrees to meanwhile runs.
    expect((await run(at, ["trust", "--yes"])).code).toBe(0);
    withSchedules(at, (db) => db.exec(`DELETE FROM scheduled_runs; ${aYearAgo}`));
    await daemon.prints(/\(exit 0\)/);
    expect(existsSync(mark())).toBe(true);
    daemon.interrupt();
    expect((await daemon.ended).code).toBe(0);
    expect(hook.received).toEqual([]);
  });
});

describe("a recorded run that came with a folder", () => {
  const words = ["resume", "--max-credits", "100"];
  const received = () => rmSync(trustFile(), { force: true });

  /** A run that has one of two items left. */
  async function unfinished(flags: string[] = []) {
    at.write("set.csv", `id,model,prompt\na,${theirs},a cup\nb,${theirs},a jug\n`);
    const run1 = ["run", "set.csv", "--yes", "--max-credits", "2", ...flags];
    expect((await run(at, run1, service)).code).toBe(6);
    expect(service.count("POST generate")).toBe(1);
  }

  function change(sql: string): void {
    const db = openSqlite(join(at.folder, ".bulkgen", "state.db"));
    db.exec(sql);
    db.close();
  }

  test("goes on without a question where it was begun", async () => {
    await unfinished();
    expect((await run(at, words, service)).code).toBe(0);
  });

  test.each([
    ["does not say who began it", "UPDATE runs SET options = json_remove(options, '$.beganBy')"],
    ["says that it was begun on this machine", "SELECT 1"],
  ])("that %s buys nothing without a yes", async (_, sql) => {
    await unfinished();
    change(sql);
    received();
    const { code, stderr } = await run(at, words, service);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining("spends up to 2 credits on 1 item. Add --yes"),
    ]);
    expect(service.count("POST generate")).toBe(1);
    expect((await run(at, [...words, "--yes"], service)).code).toBe(0);
  });

  test.each([
    ["archive: s3://theirs/outputs", `json_set(options, '$.archive', 's3://theirs/outputs')`],
    ["publish: https://theirs.example", `json_set(options, '$.publish', 'https://theirs.example')`],
  ])("with %s sends nothing before the user has agreed", async (value, sql) => {
    await unfinished();
    change(`UPDATE runs SET options = ${sql}`);
    const { code, stderr } = await run(at, [...words, "--yes"], service);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`${value}  (run 1 in `)]);
    expect(service.count("POST generate")).toBe(1);
    expect((await run(at, ["trust", "--yes"], service)).stdout).toContain(value);
    expect((await run(at, [...words, "--yes"], service)).stderr).not.toContain("may come from somebody else");
  });

  test("collects what was paid for, wherever its local inputs are published", async () => {
    at.write("set.csv", `id,model,prompt\na,${theirs},a cup\nb,${theirs},a jug\n`);
    let isDone = false;
    service.script(({ what, path }) => {
      const task = service.made.find((one) => path.endsWith(one.task));
      if (what !== "GET task" || task === undefined || isDone) return "serve";
      return { json: { ...failedTask(task), status: "processing", error: null, completed_at: null } };
    });
    const first = await run(at, ["run", "set.csv", "--yes", "--max-credits", "2"], service);
    expect([6, 8], first.stderr).toContain(first.code);
    change(`UPDATE runs SET options = json_set(options, '$.publish', 'https://theirs.example')`);
    received();
    isDone = true;
    // An overdue task is looked at rarely.
    skippingClock.pass(24 * 3_600_000);
    const { code, stderr } = await run(at, [...words, "--yes"], service);
    expect(code, stderr).toBe(10);
    expect(stderr).toContain("publish: https://theirs.example  (run 1 in ");
    expect(service.count("POST generate")).toBe(1);
    expect(at.files().filter((name) => name.endsWith(".png"))).toHaveLength(1);
  });

  test.each([
    ["out", "out_folder"],
    ["manifest", "manifest"],
  ])("with another place as its %s touches nothing there", async (name, column) => {
    await unfinished();
    const elsewhere = join(at.root, "elsewhere", "x.csv");
    change(`UPDATE runs SET ${column} = '${elsewhere}'`);
    const { code, stderr } = await run(at, [...words, "--yes"], service);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`  ${name}: ${elsewhere}  (run 1 in `)]);
    expect(existsSync(join(at.root, "elsewhere"))).toBe(false);
    expect(service.count("POST generate")).toBe(1);
  });

  test("with a folder of its own user's elsewhere goes on", async () => {
    await unfinished(["--out", join(at.root, "pictures")]);
    expect((await run(at, words, service)).code).toBe(0);
  });
});

describe("a saved plan that came with a folder", () => {
  test("names no target and no bucket before the user has agreed; one's own needs no question", async () => {
    const flags = ["--sandbox", "--notify", hook.url];
    expect((await run(at, ["plan", "set.csv", "-o", "plan.json", ...flags])).code).toBe(0);
    rmSync(trustFile());
    const refused = await run(at, ["run", "plan.json", "--yes"]);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(`notify: ${hook.url}`)]);
    expect(refused.stderr).toContain("Run `bulkgen trust plan.json`");
    expect(hook.received).toEqual([]);
    expect((await run(at, ["trust", "plan.json", "--yes"])).stdout).toContain(`notify: ${hook.url}`);
    expect((await run(at, ["run", "plan.json", "--yes"])).code).toBe(0);
    expect(hook.received).toHaveLength(1);
  });

  describe("reads no manifest and uses no workspace outside its folder before the user has agreed", () => {
    const outside = () => join(at.root, "home", "npmrc.csv");

    /** The plan of a sheet that may be planned, changed by somebody else. */
    async function changed(change: (saved: { manifest: string; workspace: string }) => object) {
      expect((await run(at, ["plan", "set.csv", "-o", "plan.json", "--sandbox"])).code).toBe(0);
      const saved = JSON.parse(at.read("plan.json"));
      at.write("plan.json", JSON.stringify({ ...saved, ...change(saved) }));
      writeFileSync(outside(), '_authToken=npm_s3cret\n"\n');
    }

    test.each([
      ["an absolute path", () => outside()],
      ["a path that leads up", () => `${at.folder}/../home/npmrc.csv`],
      ["a link to a file", () => join(at.folder, "linked.csv")],
      ["a link to a folder", () => join(at.folder, "linked", "npmrc.csv")],
      ["a path that no system takes", () => `/${"x".repeat(5_000)}`],
    ])("%s", async (_, path) => {
      await changed(() => ({ manifest: path() }));
      symlinkSync(outside(), join(at.folder, "linked.csv"));
      symlinkSync(join(at.root, "home"), join(at.folder, "linked"));
      for (const words of [
        ["run", "plan.json", "--yes"],
        ["run", "plan.json", "--yes", "--json"],
        ["trust", "plan.json"],
      ]) {
        const { code, stdout, stderr } = await run(at, words);
        expect([words, code]).toEqual([words, 2]);
        expect(stdout + stderr).toContain(`manifest: ${path()}  (the saved plan`);
        expect(stdout + stderr).not.toContain("s3cret");
      }
      expect((await run(at, ["trust", "plan.json", "--yes"])).code).toBe(0);
      expect((await run(at, ["run", "plan.json", "--yes"])).stderr).not.toContain("you have not agreed to");
    });

    test("a path that depends on where the command is typed", async () => {
      await changed(() => ({ manifest: "../home/npmrc.csv" }));
      const { code, stdout, stderr } = await run(at, ["run", "plan.json", "--yes"]);
      expect([code, stderr]).toEqual([2, expect.stringContaining("its manifest is missing or damaged")]);
      expect(stdout + stderr).not.toContain("s3cret");
    });

    test("a workspace, whose files decide what else lies outside", async () => {
      const theirs = join(at.root, "home", "theirs");
      mkdirSync(theirs);
      await changed(() => ({ workspace: theirs }));
      writeFileSync(join(theirs, "bulkgen.config.yaml"), "s3cret: {\n");
      const { code, stderr } = await run(at, ["run", "plan.json", "--yes"]);
      expect([code, stderr]).toEqual([2, expect.stringContaining(`  workspace: ${theirs}  (the saved plan`)]);
      expect(stderr).not.toContain("s3cret");
      expect((await run(at, ["run", "plan.json", "--yes", "--workspace", at.folder])).code).toBe(0);
    });

    test("one's own plan in another folder needs no question", async () => {
      mkdirSync(join(at.root, "plans"));
      const planned = ["plan", "set.csv", "--sandbox", "-o", "../plans/a.json"];
      expect((await run(at, planned)).code).toBe(0);
      const ended = await run(at, ["run", "../plans/a.json", "--yes"]);
      expect(ended.code, ended.stderr).toBe(0);
    });
  });
});
