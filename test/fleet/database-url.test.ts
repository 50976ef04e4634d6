import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { databaseAddress } from "../../src/store/postgres/address.js";
import { lockPostgres } from "../../src/store/postgres/connect.js";
import { openWorkspace } from "../../src/store/workspace/workspace.js";
import { newPlace, type Place, run, started } from "../e2e/command.js";
import { ManualClock } from "../manual-clock.js";
import { intentLine } from "../receipt-line.js";
import { startPostgres, type TestPostgres } from "./postgres.js";

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.close());

describe("a workspace whose state is in a PostgreSQL database", () => {
  let at: Place;
  let url: string;
  const sheet = (...rows: string[]) =>
    writeFileSync(join(at.folder, "set.csv"), `id,model,prompt\n${rows.join("\n")}\n`);
  const bulkgen = (...args: string[]) =>
    run(at, [...args, "--sandbox"], { env: { BULKGEN_DATABASE_URL: url } });

  beforeEach(() => {
    at = newPlace();
    url = postgres.newWorkspace();
  });

  test("is run, watched and exported like one in files, and pays nothing twice", async () => {
    sheet("a,aurora-image-mini,a cup", "b,aurora-image-mini,a jug");
    const made = await bulkgen("run", "set.csv", "--yes", "--events");
    expect([made.code, made.stderr]).toEqual([0, expect.stringContaining("2 archived")]);
    const told = made.stdout.trimEnd().split("\n");
    expect(
      told.map((line) => (JSON.parse(line) as { event: string }).event).filter((name) => name === "archived"),
    ).toHaveLength(2);
    const again = await bulkgen("run", "set.csv", "--yes", "--json");
    expect(JSON.parse(again.stdout)).toMatchObject({ credits: { spent: 0 } });
    const status = await bulkgen("status", "--json");
    expect(JSON.parse(status.stdout)).toMatchObject({ counts: { archived: 2 } });
    expect((await bulkgen("status", "--all")).stdout).toContain("set");
    expect((await bulkgen("find", "cup")).stdout).toContain("a.png");
    const exported = await bulkgen("export");
    expect([exported.code, exported.stderr]).toEqual([0, ""]);
    expect((await bulkgen("verify")).code).toBe(0);
    expect(
      await postgres.query(`${url}_sandbox`, "SELECT state, count(*) AS items FROM items GROUP BY state"),
    ).toEqual([{ state: "archived", items: 2 }]);
  });

  test("is locked for all machines while one runs it, and those who ask are told which", async () => {
    sheet("a,aurora-image-mini,a cup");
    await bulkgen("run", "set.csv", "--yes");
    const address = databaseAddress(url, { sandbox: true });
    const clock = new ManualClock();
    const held = await lockPostgres({ address, clock }, { pid: 41, host: "render-2", run: 1 });
    const status = JSON.parse((await bulkgen("status", "--json")).stdout);
    expect(status).toMatchObject({ alive: true });
    const refused = await bulkgen("run", "set.csv", "--yes", "--fresh");
    expect([refused.code, refused.stderr]).toEqual([9, expect.stringContaining("another run is using")]);
    await held?.release();
    expect((await bulkgen("run", "set.csv", "--yes")).code).toBe(0);
  });

  test("P1: who has lost the connection of its lock can write nothing more", async () => {
    const address = databaseAddress(url, { sandbox: false });
    const clock = new ManualClock();
    const first = await lockPostgres({ address, clock }, { pid: 1, host: "one", run: null });
    const job = (name: string) =>
      first?.atomic(function* () {
        return yield* first.sql("INSERT INTO jobs (name, created_at) VALUES (?, 0)").insert(name);
      });
    await job("before");
    await postgres.query(
      url,
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'bulkgen 1@one'",
    );
    const second = await lockPostgres({ address, clock }, { pid: 2, host: "two", run: null });
    expect(second).not.toBeNull();
    await expect(job("after")).rejects.toThrow("the database postgres://");
    expect(await postgres.query(url, "SELECT name FROM jobs")).toEqual([{ name: "before" }]);
    await second?.release();
    await first?.release().catch(() => undefined);
  });

  test("a folder whose state is in a database is refused without its address, which is told without a password", async () => {
    sheet("a,aurora-image-mini,a cup");
    const env = { BULKGEN_DATABASE_URL: url.replace("bulkgen@", "bulkgen:secret@") };
    // Nothing answers at the service's address, but the folder is known by then.
    const service = ["--base-url", "http://127.0.0.1:9", "--unreachable-wait", "1s"];
    const key = { BULKGEN_API_KEY: `bk_${"0".repeat(32)}` };
    await run(at, ["run", "set.csv", "--yes", ...service], { env: { ...env, ...key } });
    const identity = readFileSync(join(at.folder, ".bulkgen", "workspace.json"), "utf8");
    expect(identity).toContain("bulkgen@127.0.0.1");
    expect(identity).not.toContain("secret");
    const refused = await run(at, ["run", "set.csv", "--yes", ...service], { env: key });
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("Set BULKGEN_DATABASE_URL")]);
    rmSync(join(at.folder, ".bulkgen"), { recursive: true });
  });

  test("P2: a run whose connection is lost ends so that resume goes on, and pays nothing twice", async () => {
    sheet("a,aurora-image-mini,a cup", "b,aurora-image-mini,a jug", "c,aurora-image-mini,a bowl");
    const command = ["run", "set.csv", "--yes", "--events", "--lanes", "1", "--sandbox"];
    const running = started(at, command, { env: { BULKGEN_DATABASE_URL: url } });
    await running.prints(/"event":"submitted"/);
    await postgres.query(
      url,
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'bulkgen %@% run 1'",
    );
    const ended = await running.ended;
    expect([ended.code, ended.stderr]).toEqual([
      8,
      expect.stringContaining("then `bulkgen resume 1 --sandbox`"),
    ]);
    const resumed = await bulkgen("resume", "--json");
    expect([resumed.code, resumed.stderr]).toEqual([0, expect.anything()]);
    expect(
      await postgres.query(
        `${url}_sandbox`,
        "SELECT item_id, count(task_id) AS paid FROM attempts GROUP BY item_id ORDER BY 1",
      ),
    ).toEqual([1, 2, 3].map((item_id) => ({ item_id, paid: 1 })));
  });

  test("a workspace whose state is in files stays there until it is moved", async () => {
    sheet("a,aurora-image-mini,a cup");
    const state = join(at.folder, ".bulkgen", "state.db");
    await openWorkspace({ stateFile: state, root: at.folder }, new ManualClock()).close();
    const refused = await run(at, ["pause"], { env: { BULKGEN_DATABASE_URL: url } });
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringMatching(
        /the state of .* is in .*state\.db, not in the database postgres:.*`bulkgen migrate --from [^ ]*state\.db`/,
      ),
    ]);
    const here = await run(at, ["pause"], {});
    expect(here.stderr).not.toContain("is in the database");
    // A note that names a database without the state must not put the file aside.
    const note = {
      id: "1",
      state: null,
      host: hostname(),
      why: null,
      database: databaseAddress(url, { sandbox: false }).shown,
    };
    writeFileSync(join(at.folder, ".bulkgen", "workspace.json"), JSON.stringify(note));
    for (const ends of [
      ["--from", state, "--to", url],
      ["--from", url, "--to", state],
    ]) {
      const moved = await run(at, ["migrate", ...ends], {});
      expect([moved.code, moved.stderr]).toEqual([2, expect.stringContaining("has no state")]);
      expect(existsSync(state)).toBe(true);
    }
  });

  test("doctor counts its request where the runs count theirs, and knows the history there", async () => {
    sheet("a,aurora-image-mini,a cup");
    const env = {
      BULKGEN_DATABASE_URL: url,
      BULKGEN_BASE_URL: "http://127.0.0.1:9",
      BULKGEN_API_KEY: `svc_${"a".repeat(32)}`,
    };
    const told = JSON.parse((await run(at, ["doctor", "--json"], { env })).stdout) as {
      checks: { name: string; got: string }[];
    };
    const shown = databaseAddress(url, { sandbox: false }).shown;
    const got = new Map(told.checks.map((check) => [check.name, check.got]));
    expect([got.get("history"), got.get("accounts")]).toEqual([shown, shown]);
    expect(await postgres.query(url, "SELECT count(*) AS keys FROM keys")).toEqual([{ keys: 1 }]);
  });

  const doctor = async (env: Record<string, string>) => {
    const service = { BULKGEN_BASE_URL: "http://127.0.0.1:9", BULKGEN_API_KEY: `svc_${"a".repeat(32)}` };
    const ended = await run(at, ["doctor", "--json"], { env: { ...service, ...env } });
    expect(ended.stderr).toBe("");
    const { checks } = JSON.parse(ended.stdout) as {
      checks: Record<"name" | "state" | "got" | "todo", string>[];
    };
    return Object.fromEntries(checks.map((check) => [check.name, check]));
  };

  test("doctor says that a database takes no writes, and that it asks the service nothing for that reason", async () => {
    const role = `reader_${process.pid}`;
    await postgres.query(url, `CREATE ROLE ${role} SUPERUSER LOGIN`);
    await postgres.query(url, `ALTER ROLE ${role} SET default_transaction_read_only = on`);
    // Made by one that may write.
    await run(at, ["status"], { env: { BULKGEN_DATABASE_URL: url } });
    const { history, accounts, service } = await doctor({
      BULKGEN_DATABASE_URL: url.replace("bulkgen@", `${role}@`),
    });
    await postgres.query(url, `DROP ROLE ${role}`);
    expect([history?.state, accounts?.state]).toEqual(["ok", "problem"]);
    expect(accounts?.got).toContain("which takes no writes now");
    expect(service?.got).toBe("no request can be counted without the database");
  });

  test("doctor sends nobody to a rebuild of a state that is in a database, and makes none", async () => {
    mkdirSync(join(at.folder, ".bulkgen"));
    const { shown } = databaseAddress(url, { sandbox: false });
    const note = { id: "1", state: null, host: hostname(), why: null, database: shown };
    writeFileSync(join(at.folder, ".bulkgen", "workspace.json"), JSON.stringify(note));
    writeFileSync(join(at.folder, ".bulkgen", "receipts.jsonl"), `${JSON.stringify(intentLine)}\n`);
    for (const env of [{}, { BULKGEN_DATABASE_URL: url }]) {
      const { history } = await doctor(env);
      expect([history?.state, history?.todo]).toEqual([
        "problem",
        expect.stringMatching(/^set BULKGEN_DATABASE_URL/),
      ]);
      const rebuilt = await run(at, ["doctor", "--rebuild", "--yes"], { env });
      expect([rebuilt.code, rebuilt.stderr]).toEqual([
        2,
        expect.stringContaining(`in the database ${shown}`),
      ]);
      expect(existsSync(join(at.folder, ".bulkgen", "state.db"))).toBe(false);
    }
  });

  test("P2: a database that does not know what this folder has paid for is refused", async () => {
    sheet("a,aurora-image-mini,a cup");
    mkdirSync(join(at.folder, ".bulkgen"));
    writeFileSync(join(at.folder, ".bulkgen", "receipts.jsonl"), `${JSON.stringify(intentLine)}\n`);
    const refused = await run(at, ["resume"], { env: { BULKGEN_DATABASE_URL: url } });
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringContaining("it does not know the paid request of 2026-01-05T09:00:00.000Z for a"),
    ]);
  });

  test("one that is not there is said so, without its password", async () => {
    sheet("a,aurora-image-mini,a cup");
    const env = { BULKGEN_DATABASE_URL: "postgres://bulkgen:secret@127.0.0.1:9/none" };
    const gone = await run(at, ["run", "set.csv", "--yes", "--sandbox"], { env });
    expect([gone.code, gone.stderr]).toEqual([
      4,
      expect.stringMatching(/the database postgres:\/\/bulkgen@127\.0\.0\.1:9\/none: .*see that it runs/),
    ]);
    const wrong = await run(at, ["status", "--database-url", "mysql://x/y"], {});
    expect([wrong.code, wrong.stderr]).toEqual([
      2,
      expect.stringContaining("expected postgres://USER:PASSWORD@HOST"),
    ]);
  });

  test("an address that was mistyped is not remembered: the folder can be used without it, or with the right one", async () => {
    sheet("a,aurora-image-mini,a cup");
    const service = ["--base-url", "http://127.0.0.1:9", "--unreachable-wait", "1s"];
    const key = { BULKGEN_API_KEY: `svc_${"0".repeat(32)}` };
    const made = (env: Record<string, string>) =>
      run(at, ["run", "set.csv", "--yes", ...service], { env: { ...key, ...env } });
    const gone = { BULKGEN_DATABASE_URL: "postgres://bulkgen@127.0.0.1:9/none" };
    const noted = () => readFileSync(join(at.folder, ".bulkgen", "workspace.json"), "utf8");
    expect((await made(gone)).stderr).toContain("see that it runs");
    expect(noted()).not.toContain("postgres");
    expect((await made({ BULKGEN_DATABASE_URL: url })).stderr).toContain("cannot be reached");
    const { shown } = databaseAddress(url, { sandbox: false });
    expect(noted()).toContain(shown);
    // Nor does another one take its place before it is known to be the right one.
    expect((await made(gone)).stderr).toContain("see that it runs");
    expect(noted()).toContain(shown);
    writeFileSync(join(at.folder, ".bulkgen", "receipts.jsonl"), `${JSON.stringify(intentLine)}\n`);
    const other = await made({ BULKGEN_DATABASE_URL: postgres.newWorkspace() });
    expect([other.code, other.stderr]).toEqual([
      2,
      expect.stringContaining(`the database of this folder, ${shown}`),
    ]);
    expect(noted()).toContain(shown);
  });

  test.each(["p@ss/w0rd", "s#w0rd", "s?w0rd", "s/w0rd", "p@ss#w0rd", "p@ss?w0rd"])(
    "P21: of a password with signs that are not encoded, %s, nothing is shown",
    async (password) => {
      const env = { BULKGEN_DATABASE_URL: `postgres://bulkgen:${password}@127.0.0.1:9/none` };
      const refused = await run(at, ["status"], { env });
      expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("@ as %40")]);
      expect(refused.stderr).not.toContain("w0rd");
    },
  );
});
