import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openSqlite } from "../../src/sqlite.js";
import { takeLock } from "../../src/store/lock.js";
import { databaseAddress } from "../../src/store/postgres/address.js";
import { lockPostgres } from "../../src/store/postgres/connect.js";
import { systemRandom } from "../../src/system.js";
import { migrateToFiles, migrateToServer } from "../../src/workspace/state-folder/migrate.js";
import { findWorkspace } from "../../src/workspace/workspace.js";
import { newPlace, type Place, run } from "../e2e/command.js";
import { type ScriptedService, startService } from "../e2e/service.js";
import { sheet } from "../e2e/sheet.js";
import { ManualClock } from "../manual-clock.js";
import { wrongSums } from "../store/wrong-sums.js";
import { startPostgres, type TestPostgres } from "./postgres.js";

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.close());

const items = 4;
const file = ".bulkgen/state.db";

/** A run that ended at its cap with half of its items, with its state in files. */
async function halfDone() {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(items, "plain-image"));
  const ended = await run(place, ["run", "set.csv", "--yes", "--max-credits", "4"], service);
  expect(ended, ended.stderr).toMatchObject({ code: 6 });
  return { service, place, url: postgres.newWorkspace() };
}

const stateOf = (place: Place) => join(place.folder, file);
const accountsOf = (place: Place) => join(place.root, "state", "bulkgen", "accounts.db");
const noteOf = (place: Place) => readFileSync(join(place.folder, ".bulkgen", "workspace.json"), "utf8");

/** Every row of both databases, by table. Numbers and names that belong to a place are left out. */
function rowsOf(place: Place): Record<string, unknown[]> {
  const found: Record<string, unknown[]> = {};
  for (const path of [stateOf(place), accountsOf(place)]) {
    const db = openSqlite(path, { readonly: true });
    const tables = db
      .prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'opened'",
      )
      .pluck()
      .all() as string[];
    for (const table of tables) found[table] = db.prepare(`SELECT * FROM ${table}`).all();
    db.close();
  }
  return found;
}

function ask(path: string, sql: string): void {
  const db = openSqlite(path);
  db.exec(sql);
  db.close();
}

const toServer = (place: Place, url: string, ...more: string[]) =>
  run(place, ["migrate", "--from", file, "--to", url, ...more]);
const toFiles = (place: Place, url: string, ...more: string[]) =>
  run(place, ["migrate", "--from", url, "--to", file, ...more]);
async function moves(moving: ReturnType<typeof toServer>): Promise<void> {
  const moved = await moving;
  expect(moved, moved.stderr).toMatchObject({ code: 0 });
}
const inDatabase = (service: ScriptedService, url: string) => ({
  env: { ...service.env, BULKGEN_DATABASE_URL: url },
});

describe.concurrent("a state that is moved from files to a database", () => {
  test("P2: is resumed there and pays nothing twice, and the folder says where it is", async () => {
    const { service, place, url } = await halfDone();
    const moved = await toServer(place, url);
    expect([moved.code, moved.stdout], moved.stderr).toEqual([
      0,
      expect.stringContaining("4 items, 2 paid requests"),
    ]);
    for (const query of wrongSums) expect(await postgres.query(url, query)).toEqual([]);
    expect([existsSync(stateOf(place)), noteOf(place)]).toEqual([
      false,
      expect.stringContaining('"database"'),
    ]);
    const without = await run(place, ["resume"], service);
    expect([without.code, without.stderr]).toEqual([2, expect.stringContaining("Set BULKGEN_DATABASE_URL")]);
    const resumed = await run(place, ["resume", "--max-credits", "8"], inDatabase(service, url));
    expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(items);
    const spent = await postgres.query(
      url,
      "SELECT workspace, count(*) AS paid FROM spend_log GROUP BY workspace",
    );
    expect(spent).toEqual([{ workspace: expect.stringMatching(/^postgres:/), paid: items }]);
  });

  test("and back is the same, row by row, and is resumed there", async () => {
    const { service, place, url } = await halfDone();
    const before = rowsOf(place);
    await moves(toServer(place, url));
    const back = await toFiles(place, url, "--json");
    expect([back.code, JSON.parse(back.stdout)]).toEqual([
      0,
      expect.objectContaining({ items, attempts: 2, spendLog: 2 }),
    ]);
    const after = rowsOf(place);
    // What is numbered anew goes on after the numbers that were used here.
    // The sums of the spend log are added up anew, and compared by the move itself.
    const unnumbered = ({ sequence: _, spent: __, ...tables }: Record<string, unknown[]>) =>
      JSON.parse(
        JSON.stringify(tables, (name, value) => {
          if (typeof value !== "number") return value;
          // PostgreSQL has no fractions of a millisecond.
          return /^(id|account_id|baseline|block)$|seq$/.test(name) ? 0 : Math.round(value);
        }),
      );
    expect(unnumbered(after)).toEqual(unnumbered(before));
    const entriesOf = (tables: Record<string, unknown[]>) =>
      (tables["attempts"] as { spend_log_id: number }[]).map((attempt) => attempt.spend_log_id);
    expect(entriesOf(after)).toEqual(entriesOf(before));
    const refused = await run(place, ["status"], inDatabase(service, url));
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringContaining("Unset BULKGEN_DATABASE_URL"),
    ]);
    const resumed = await run(place, ["resume", "--max-credits", "8"], service);
    expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(items);
    // The database can be used again.
    await moves(toServer(place, url));
    expect((await run(place, ["status"], inDatabase(service, url))).code).toBe(0);
  });

  test("and to a folder of another machine, whose accounts know nothing of it", async () => {
    const { service, place, url } = await halfDone();
    await moves(toServer(place, url));
    const elsewhere = newPlace();
    const moved = await toFiles(elsewhere, url);
    expect(moved, moved.stderr).toMatchObject({ code: 0 });
    expect(noteOf(elsewhere)).not.toContain("database");
    const resumed = await run(elsewhere, ["resume", "--max-credits", "8", "--yes"], service);
    expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(items);
  });
});

describe.concurrent("a move is refused, and changes nothing,", () => {
  test("while an item is being submitted", async () => {
    const { place, url } = await halfDone();
    ask(
      stateOf(place),
      "UPDATE items SET state = 'submitting' WHERE id = (SELECT min(id) FROM items WHERE state = 'planned')",
    );
    const refused = await toServer(place, url);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("1 item is being submitted")]);
    expect(await postgres.query(url, "SELECT 1 FROM jobs")).toEqual([]);
  });

  test("while a run has the lock, of the files or of the database", async () => {
    const { place, url } = await halfDone();
    const lock = takeLock(join(place.folder, ".bulkgen", "run.lock"));
    expect((await toServer(place, url)).code).toBe(9);
    lock?.release();
    const address = databaseAddress(url, { sandbox: false });
    const held = await lockPostgres(
      { address, clock: new ManualClock() },
      { pid: 1, host: "one", run: null },
    );
    const refused = await toServer(place, url);
    expect([refused.code, refused.stderr]).toEqual([
      9,
      expect.stringContaining("a run is using postgres://"),
    ]);
    await held?.release();
    expect(existsSync(stateOf(place))).toBe(true);
  });

  test("where the target has a state already", async () => {
    const [one, other] = [await halfDone(), await halfDone()];
    const moved = await toServer(one.place, one.url);
    expect(moved, moved.stderr).toMatchObject({ code: 0 });
    const refused = await toServer(other.place, one.url);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("has a state already")]);
    const back = await toFiles(other.place, one.url);
    expect([back.code, back.stderr]).toEqual([2, expect.stringContaining("has a state already")]);
  });

  test("where the account has paid requests in both places that the other does not know", async () => {
    const { service, place, url } = await halfDone();
    await moves(toServer(place, url));
    place.write("../other/set.csv", sheet(1, "plain-image"));
    place.write("../other/new.csv", sheet(1, "plain-image").replaceAll("picture", "drawing"));
    const other = join(place.root, "other");
    const ended = await run(place, ["run", "new.csv", "--yes"], { ...service, cwd: other });
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    // What was paid for before the move is known here all the same.
    const again = await run(place, ["run", "set.csv", "--yes"], { ...service, cwd: other });
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("paid again here")]);
    const refused = await toFiles(place, url);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("XDG_STATE_HOME")]);
    expect((await run(place, ["status"], inDatabase(service, url))).code).toBe(0);
  });

  test("where the places are not a file and a database", async () => {
    const place = newPlace();
    expect((await run(place, ["migrate", "--from", file, "--to", "x.db"])).code).toBe(2);
    const nothing = await toServer(place, postgres.newWorkspace());
    expect([nothing.code, nothing.stderr]).toEqual([2, expect.stringContaining("there is no state in")]);
  });
});

describe.concurrent("a move that is cut short", () => {
  class Crash extends Error {}
  const jobOf = (place: Place, url: string, at: string) => ({
    workspace: findWorkspace({ cwd: place.folder, named: place.folder, sandbox: false, env: place.env }),
    address: databaseAddress(url, { sandbox: false }),
    clock: new ManualClock(),
    random: systemRandom,
    onStep(step: string) {
      if (step === at) throw new Crash();
    },
  });

  test.each(["copied", "noted"])(
    "to a database after it was %s is finished by the same command",
    async (step) => {
      const { service, place, url } = await halfDone();
      await expect(migrateToServer(jobOf(place, url, step))).rejects.toThrow(Crash);
      // The database is not used yet, and until the folder says otherwise, its files are.
      expect((await run(place, ["status"], inDatabase(service, url))).code).toBe(2);
      expect((await run(place, ["status"], service)).code).toBe(step === "copied" ? 0 : 2);
      const again = await toServer(place, url);
      expect(again, again.stderr).toMatchObject({ code: 0 });
      const resumed = await run(place, ["resume", "--max-credits", "8"], inDatabase(service, url));
      expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
      expect(service.made).toHaveLength(items);
    },
  );

  test.each(["copied", "noted"])("to files after it was %s is finished by the same command", async (step) => {
    const { service, place, url } = await halfDone();
    await moves(toServer(place, url));
    await expect(migrateToFiles(jobOf(place, url, step))).rejects.toThrow(Crash);
    expect((await run(place, ["status"], service)).code).toBe(2);
    expect((await run(place, ["status"], inDatabase(service, url))).code).toBe(step === "copied" ? 0 : 2);
    const again = await toFiles(place, url);
    expect(again, again.stderr).toMatchObject({ code: 0 });
    const resumed = await run(place, ["resume", "--max-credits", "8"], service);
    expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(items);
  });

  test("after the folder of the files was emptied in between, leaves the database as it was", async () => {
    const { service, place, url } = await halfDone();
    await moves(toServer(place, url));
    rmSync(`${stateOf(place)}.moved`);
    expect((await run(place, ["status"], inDatabase(service, url))).code).toBe(0);
  });
});
