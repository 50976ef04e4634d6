import {
  appendFileSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { expectArchived } from "./archive.js";
import { newPlace, type Place, run, start, started } from "./command.js";
import { type Scripted, type ScriptedService, startService } from "./service.js";
import { ids, sheet } from "./sheet.js";

const items = 6;
const begin = ["run", "set.csv", "--yes", "--lanes", "1"];
const stateOf = (place: Place, name = "") => join(place.folder, ".bulkgen", name);
const prompts = (service: ScriptedService) => service.made.map(({ prompt }) => prompt).toSorted();
const allPrompts = ids(items).map((id) => `a picture of ${id}`);

const refusal = { status: 400, json: { error: { code: "CONTENT_POLICY", message: "no" } } };

/** A workspace whose run was interrupted: some items archived, some at the service, some not submitted. */
async function interrupted(): Promise<{ place: Place; service: ScriptedService }> {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(items, "plain-image"));
  service.script(async ({ what, before }): Promise<Scripted> => {
    if (what === "POST generate" && before === 3) {
      running.interrupt();
      await running.prints(/interrupted: /);
    }
    return "serve";
  });
  const running = started(place, begin, service);
  expect((await running.ended).code).toBe(130);
  service.script(() => "serve");
  return { place, service };
}

describe.concurrent("a workspace whose database", () => {
  test.each<[name: string, damage: (place: Place) => void, told: RegExp, offer: RegExp]>([
    [
      "is gone",
      (place) => rmSync(stateOf(place, "state.db")),
      /state\.db is missing, but .*receipts\.jsonl records paid requests.*--rebuild.*Nothing was sent/,
      /state\.db is missing; 4 items can be restored from receipts and archive\.\n.*this would make a database, and /,
    ],
    [
      "is damaged",
      (place) => writeFileSync(stateOf(place, "state.db"), "no database ".repeat(400)),
      /state\.db: file is not a database; .*`bulkgen doctor --rebuild`/,
      /state\.db cannot be read; 4 items can be restored .*The old database is kept beside it\.\n.*this would replace the database, and /,
    ],
  ])("%s is rebuilt from receipts and archive, and nothing is paid twice", async (_, damage, told, offer) => {
    const { place, service } = await interrupted();
    const paid = service.made.length;
    damage(place);
    // A crash cut the last line short, and somebody's editor spoiled another.
    appendFileSync(stateOf(place, "receipts.jsonl"), '\u0000\n{"type":"intent","key":"k1:');
    for (const args of [begin, ["resume"]]) {
      const refused = await run(place, args, service);
      expect(refused, args[0]).toMatchObject({ code: 2, stdout: "" });
      expect(refused.stderr).toMatch(told);
      expect(refused.stderr).not.toMatch(/\bat .*\.c?js:\d+/);
    }
    expect((await run(place, ["doctor"], service)).code).toBe(2);

    const asked = await run(place, ["doctor", "--rebuild"]);
    expect(asked).toMatchObject({ code: 2, stdout: "" });
    expect(asked.stderr).toMatch(offer);
    expect(asked.stderr).toMatch(/Add --yes to agree\. Nothing was changed\./);
    const rebuilt = await run(place, ["doctor", "--rebuild", "--yes"]);
    expect(rebuilt.code, rebuilt.stderr).toBe(0);
    expect(rebuilt.stdout).toMatch(/^items +4: /m);
    expect(rebuilt.stdout).toMatch(/^unread +2 lines/m);
    expect(rebuilt.stdout).toMatch(/^next +`bulkgen resume`/m);
    const before = readdirSync(stateOf(place)).filter((name) => name.startsWith("state.db.before-"));
    expect(before.length > 0).toBe(told.source.includes("not a database"));

    const resumed = await run(place, ["resume"], service);
    expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
    expect(resumed.stderr).not.toContain("of 0 credits");
    expect(service.made).toHaveLength(paid);
    const last = await run(place, begin, service);
    expect(last, last.stderr).toMatchObject({ code: 0 });
    expect(last.stdout).toMatch(/6 of 6 items/);
    expect(prompts(service)).toEqual(allPrompts);
    expectArchived(join(place.folder, "outputs", "set"), ids(items));
  });
});

describe.concurrent("a workspace whose database is older than its receipts", () => {
  test.each<[name: string, make: () => Promise<{ place: Place; service: ScriptedService }>]>([
    ["for having lost its log", withoutLog],
    ["for having been restored", restored],
    ["for having been emptied after it was rebuilt", emptiedAfterRebuild],
    ["for having been restored from before it was rebuilt", restoredAfterRebuild],
  ])("P2: %s is refused, told by doctor, rebuilt, and pays for nothing twice", async (_, make) => {
    const { place, service } = await make();
    const paid = service.made.length;
    for (const args of [begin, ["plan", "set.csv"], ["resume"]]) {
      const refused = await run(place, args, service);
      expect(refused, `${args[0]}: ${refused.stderr}`).toMatchObject({ code: 2, stdout: "" });
    }
    const { stderr } = await run(place, begin, service);
    expect(stderr).toMatch(
      /state\.db is older than .*receipts\.jsonl: it does not know the paid request of \d{4}-.* for a0\d;.*--rebuild.*Nothing was sent/,
    );
    const doctor = await run(place, ["doctor"], service);
    expect(doctor.code).toBe(2);
    expect(doctor.stdout.replace(/\s+/g, " ")).toContain("does not know the paid request of");
    expect(service.made).toHaveLength(paid);

    await rebuild(place);
    for (let again = 0; again < 2; again++) {
      const end = await run(place, begin, service);
      // What was cut off by the kill is settled, or waits for a person.
      expect([0, 8, 10], end.stderr).toContain(end.code);
    }
    expect(prompts(service)).toEqual([...new Set(prompts(service))]);
  });
});

describe.concurrent("P2: a workspace that was restored with its receipts", () => {
  /** Interrupted, copied, continued to its end, and put back as it was copied. */
  async function restoredWhole() {
    const { place, service } = await interrupted();
    const copy = join(place.folder, "backup");
    cpSync(stateOf(place), copy, { recursive: true });
    expect((await run(place, ["resume"], service)).code).toBe(0);
    expect(service.made).toHaveLength(items);
    rmSync(stateOf(place), { recursive: true });
    renameSync(copy, stateOf(place));
    return { place, service };
  }

  test("is refused, rebuilt from the archive, and pays for nothing twice", async () => {
    const { place, service } = await restoredWhole();
    for (const args of [begin, ["plan", "set.csv"], ["resume"], ["redo", "a01", "--yes"]]) {
      const refused = await run(place, args, service);
      expect(refused, `${args[0]}: ${refused.stderr}`).toMatchObject({ code: 2, stdout: "" });
      expect(refused.stderr).toMatch(
        /the history in \S+\.bulkgen is older than \S+accounts\.db: it does not know the paid request of \d{4}-\S+ \(task \S+\); .*Nothing was sent.*--rebuild/,
      );
    }
    const doctor = await run(place, ["doctor", "--json"], service);
    expect(doctor.code).toBe(2);
    expect(
      JSON.parse(doctor.stdout).checks.find(({ name }: { name: string }) => name === "history"),
    ).toMatchObject({
      state: "problem",
      got: expect.stringMatching(/is older than \S+accounts\.db: it does not know the paid request of/),
      todo: expect.stringMatching(/^bring the newer one back\. .*`bulkgen doctor --rebuild`/),
    });
    await rebuild(place);
    expect((await run(place, ["doctor"], service)).code).toBe(0);
    const end = await run(place, begin, service);
    expect(end, end.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(items);
  });

  test("on another machine, whose spend log is another one, is refused for the files that it does not know", async () => {
    const { place, service } = await restoredWhole();
    rmSync(join(place.env["XDG_STATE_HOME"] ?? "", "bulkgen"), { recursive: true });
    const refused = await run(place, begin, service);
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain("2 of 6 items are in the archive");
    expect(service.made).toHaveLength(items);
    await rebuild(place);
    expect((await run(place, begin, service)).code).toBe(0);
    expect(service.made).toHaveLength(items);
  });

  test("without a file that its archive had since fetches that again after a rebuild", async () => {
    const { place, service } = await restoredWhole();
    const file = join(place.folder, "outputs", "set", "a06.png");
    rmSync(file);
    await rebuild(place);
    const end = await run(place, [...begin, "--missing", "fetch"], service);
    expect(end, end.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(items);
    expect(existsSync(file)).toBe(true);
  });
});

/** Killed in the middle, and its write-ahead log gone: what was in it alone is forgotten. */
async function withoutLog(): Promise<{ place: Place; service: ScriptedService }> {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(items, "plain-image"));
  service.script(({ what, before }): Scripted => {
    if (what === "POST generate" && before === 3) running.signal("SIGKILL");
    return "serve";
  });
  const running = start(place, begin, service);
  expect((await running.ended).signal).toBe("SIGKILL");
  service.script(() => "serve");
  for (const end of ["-wal", "-shm"]) rmSync(stateOf(place, `state.db${end}`));
  return { place, service };
}

/** Gone on with after a backup was taken, which is put back. */
async function restored(): Promise<{ place: Place; service: ScriptedService }> {
  const { place, service } = await interrupted();
  const backup = readFileSync(stateOf(place, "state.db"));
  expect((await run(place, ["resume"], service)).code).toBe(0);
  replaceDatabase(place, backup);
  return { place, service };
}

async function emptiedAfterRebuild(): Promise<{ place: Place; service: ScriptedService }> {
  const { place, service } = await interrupted();
  await rebuild(place);
  replaceDatabase(place, "");
  return { place, service };
}

async function restoredAfterRebuild(): Promise<{ place: Place; service: ScriptedService }> {
  const { place, service } = await interrupted();
  const backup = readFileSync(stateOf(place, "state.db"));
  expect((await run(place, ["resume"], service)).code).toBe(0);
  await rebuild(place);
  replaceDatabase(place, backup);
  return { place, service };
}

async function rebuild(place: Place): Promise<void> {
  expect((await run(place, ["doctor", "--rebuild", "--yes"])).code).toBe(0);
}

function replaceDatabase(place: Place, content: string | Buffer): void {
  writeFileSync(stateOf(place, "state.db"), content);
  for (const end of ["-wal", "-shm"]) rmSync(stateOf(place, `state.db${end}`), { force: true });
}

describe.concurrent("bad input", () => {
  test("a workspace without receipts continues from its database", async () => {
    const { place, service } = await interrupted();
    const history = async () => {
      const { checks } = JSON.parse((await run(place, ["doctor", "--json"], service)).stdout);
      return checks.find(({ name }: { name: string }) => name === "history");
    };
    expect(await history()).toMatchObject({ state: "ok" });
    rmSync(stateOf(place, "receipts.jsonl"));
    expect(await history()).toMatchObject({
      state: "warning",
      got: expect.stringMatching(/receipts\.jsonl is missing: only .*state\.db records what was paid for/),
      todo: expect.stringContaining("The next run starts new receipts"),
    });
    const resumed = await run(place, ["resume"], service);
    expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
    expect(prompts(service)).toEqual(allPrompts);
    expect(existsSync(stateOf(place, "receipts.jsonl"))).toBe(true);
    expect(await history()).toMatchObject({ state: "ok" });
  });

  test("there is nothing to rebuild in a folder that is no workspace, or has neither receipts nor archive", async () => {
    const place = newPlace();
    const none = await run(place, ["doctor", "--rebuild", "--yes"]);
    expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining("nothing to rebuild from") });
    expect(place.files()).toEqual([]);
    const nowhere = await run(place, ["doctor", "--rebuild", "--yes", "--workspace", "nowhere"]);
    expect(nowhere).toMatchObject({ code: 2, stderr: expect.stringContaining("no workspace in") });
    expect(existsSync(join(place.folder, "nowhere"))).toBe(false);
    place.write(".bulkgen/note", "");
    const empty = await run(place, ["doctor", "--rebuild", "--yes"]);
    expect(empty).toMatchObject({ code: 2, stderr: expect.stringContaining("nothing to rebuild from") });
  });
});

describe("after a rebuild", () => {
  async function twoRuns() {
    const service = await startService();
    const place = newPlace();
    const command = (...args: string[]) => run(place, args, service);
    for (const name of ["one", "two", "three"]) {
      place.write(`${name}.csv`, sheet(1, "plain-image").replaceAll("a picture", `${name}: a picture`));
      expect((await command("run", `${name}.csv`, "--yes")).code).toBe(0);
    }
    const exported = async () => {
      const { stdout } = await command("export", "--format", "json");
      return (JSON.parse(stdout) as Record<string, unknown>[]).map((row) => row["external_task_id"]);
    };
    return { place, command, exported };
  }

  test("runs keep the numbers that people know, and the next one has a higher number", async () => {
    const { place, command } = await twoRuns();
    // The first job is run again: its newest request is what counts.
    place.write("one.csv", sheet(2, "plain-image").replaceAll("a picture", "one: a picture"));
    expect((await command("run", "one.csv", "--yes")).code).toBe(0);
    rmSync(stateOf(place, "state.db"));
    expect((await command("doctor", "--rebuild", "--yes")).code).toBe(0);
    const jobs = async () => {
      const { runs } = JSON.parse((await command("status", "--all", "--json")).stdout) as {
        runs: { run: number; job: string }[];
      };
      return runs.map(({ run: number, job }) => `${number} ${job}`);
    };
    expect(await jobs()).toEqual(["2 two", "3 three", "4 one"]);
    place.write("two.csv", sheet(2, "plain-image").replaceAll("a picture", "two: a picture"));
    expect((await command("run", "two.csv", "--yes")).code).toBe(0);
    expect(await jobs()).toContain("5 two");
  });

  test("what a person agrees to pay for is made", async () => {
    const { place, service } = await interrupted();
    const command = (...args: string[]) => run(place, args, service);
    service.script(({ what }) => (what === "POST generate" ? refusal : "serve"));
    expect((await command("resume")).code).toBe(5);
    service.script(() => "serve");
    rmSync(stateOf(place, "state.db"));
    expect((await command("doctor", "--rebuild", "--yes")).code).toBe(0);
    const paid = service.made.length;
    service.script(({ what }) => (what === "POST generate" ? refusal : "serve"));
    const refused = await command("retry", "--yes");
    expect(refused, refused.stderr).toMatchObject({ code: 5 });
    expect(refused.stdout).toContain("then `bulkgen run set.csv`;");
    service.script(() => "serve");
    const retried = await command("retry", "--yes");
    expect(retried, retried.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(paid + 2);
    expect((await command("status")).stdout).toMatch(/^options +lost; --max-credits 12$/m);
    const redone = await command("redo", "a01", "a02", "--yes");
    expect(redone, redone.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(paid + 4);
    expect((await command("status")).stdout).toMatch(/^run +2 of set \(set\.csv\): finished\nstarted /);
  });

  test("P16: files that it found lost or damaged are repaired, under their own names", async () => {
    const service = await startService();
    const place = newPlace();
    const command = (...args: string[]) => run(place, args, service);
    const archive = join(place.folder, "outputs", "set");
    place.write("set.csv", sheet(items, "plain-image"));
    expect((await command(...begin)).code).toBe(0);
    rmSync(join(archive, "a01.png"));
    writeFileSync(join(archive, "a02.png"), "damaged");
    expect((await command("doctor", "--rebuild", "--yes")).code).toBe(0);
    const repaired = await command("verify", "--repair", "--clean", "--yes");
    expect(repaired, repaired.stdout).toMatchObject({ code: 0 });
    expect(repaired.stdout).toMatch(/^repaired +2 files at no cost$/m);
    rmSync(join(archive, "_quarantine"), { recursive: true });
    expectArchived(archive, ids(items));
    expect(service.made).toHaveLength(items);
  });

  test("an export has the provider's task ids, as the index has them", async () => {
    const { place, command, exported } = await twoRuns();
    const before = await exported();
    expect(before).toEqual([expect.stringMatching(/./)]);
    rmSync(join(place.folder, ".bulkgen"), { recursive: true });
    expect((await command("doctor", "--rebuild", "--yes")).code).toBe(0);
    expect((await command("run", "three.csv", "--yes")).code).toBe(0);
    expect(await exported()).toEqual(before);
  });
});

test("verify --repair sets a damaged file aside if its output was downloaded to another folder after a rebuild", async () => {
  const service = await startService();
  const place = newPlace();
  const command = (...args: string[]) => run(place, args, service);
  place.write("set.csv", sheet(1, "plain-image"));
  expect((await command("run", "set.csv", "--yes")).code).toBe(0);
  expect((await command("redo", "a01", "--yes")).code).toBe(0);
  const folder = join(place.folder, "outputs", "set");
  appendFileSync(join(folder, "a01-v2.png"), "damage");
  expect((await command("doctor", "--rebuild", "--yes")).code).toBe(0);
  expect((await command("run", "set.csv", "--yes", "--out", "elsewhere")).code).toBe(0);
  expect((await command("verify")).code).toBe(5);
  const repaired = await command("verify", "--read-data", "--repair", "--json");
  expect(repaired, repaired.stdout).toMatchObject({ code: 0 });
  expect(JSON.parse(repaired.stdout)).toMatchObject({ sound: true, repaired: 1 });
  expect(readdirSync(folder)).toEqual(["_quarantine", "a01.png", "index.jsonl"]);
  expect(existsSync(join(place.folder, "elsewhere", "set", "a01-v2.png"))).toBe(true);
  expect(service.made).toHaveLength(2);
});
