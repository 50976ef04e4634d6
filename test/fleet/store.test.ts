import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type Clock, followingClock } from "../../src/clock.js";
import { credits } from "../../src/core/money.js";
import { plainReason, reasonKinds } from "../../src/core/reason.js";
import { DatabaseTrouble } from "../../src/store/open.js";
import { type DatabaseAddress, databaseAddress } from "../../src/store/postgres/address.js";
import { holderOf, openPostgres } from "../../src/store/postgres/connect.js";
import { translated } from "../../src/store/postgres/dialect.js";
import { lockSharedStore, openSharedAccounts, openSharedStore } from "../../src/store/postgres/ports.js";
import { openNews, openSteps } from "../../src/workspace/state.js";
import { eventually } from "../e2e/process.js";
import { ManualClock } from "../manual-clock.js";
import { newItem, runStart } from "../store/item-fixture.js";
import { storeSuites } from "../store/suites/all.js";
import { wrongSums } from "../store/wrong-sums.js";
import { startPostgres, type TestPostgres } from "./postgres.js";

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.close());

let opened: { url: string; close(): Promise<void> }[] = [];
afterEach(async () => {
  const ended = opened;
  opened = [];
  for (const { close } of ended) await close();
  for (const url of new Set(ended.map((each) => each.url)))
    for (const query of wrongSums) expect(await postgres.query(url, query)).toEqual([]);
});

/** The commit of a job of that name fails, not its insert. */
const refusedAtTheEnd = `
  CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
  CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON jobs DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.name = 'refused') EXECUTE FUNCTION refuse()`;

const addressOf = (url: string): DatabaseAddress => databaseAddress(url, { sandbox: false });

async function openAt(url: string, clock: Clock = new ManualClock()) {
  const address = addressOf(url);
  const store = await openSharedStore({ address, root: "/place", clock });
  opened.push({ url, close: () => store.close() });
  const accounts = await openSharedAccounts({ address, clock });
  opened.push({ url, close: () => accounts.close() });
  return { store, accounts };
}
type SharedWorkspace = Awaited<ReturnType<typeof openAt>>;

/** One workspace for all that every database has to do, emptied for each test: to make one takes longer than most tests. */
class SuiteWorkspace {
  readonly url = postgres.newWorkspace();
  /** The clock of the test that has the workspace now. */
  private clock: Clock = new ManualClock();
  private readonly connected = this.connect();

  /** Hands the workspace to the next test. */
  async emptied(clock: Clock): Promise<SharedWorkspace> {
    this.clock = clock;
    const { store, accounts } = await this.connected;
    await postgres.empty(this.url);
    opened.push({ url: this.url, close: async () => undefined });
    return { store, accounts };
  }

  async close(): Promise<void> {
    const { store, accounts } = await this.connected;
    await Promise.all([store.close(), accounts.close()]);
  }

  private async connect(): Promise<SharedWorkspace> {
    const address = addressOf(this.url);
    const clock: Clock = {
      now: () => this.clock.now(),
      monotonic: () => this.clock.monotonic(),
      sleep: (ms, signal) => this.clock.sleep(ms, signal),
    };
    const store = await openSharedStore({ address, root: "/place", clock });
    return { store, accounts: await openSharedAccounts({ address, clock }) };
  }
}

describe("on PostgreSQL", () => {
  let workspace: SuiteWorkspace;
  beforeAll(() => {
    workspace = new SuiteWorkspace();
  });
  afterAll(() => workspace.close());

  // Each case of a property makes an account: over a network that takes its time.
  storeSuites(async (clock) => {
    const { url } = workspace;
    const place = { stateFile: "", root: "/place", database: addressOf(url) };
    return {
      ...(await workspace.emptied(clock)),
      async openSteps() {
        const steps = await openSteps(place, clock);
        opened.push({ url, close: () => steps.close() });
        return steps;
      },
      async newsOf(runId) {
        const news = await openNews(place, runId, clock);
        opened.push({ url, close: () => news.close() });
        return news;
      },
      ask: (sql) => postgres.query(url, sql),
    };
  }, 200);
});

describe("a workspace on PostgreSQL", () => {
  test("is made once, when several processes open it at the same time", async () => {
    const url = postgres.newWorkspace();
    const all = await Promise.all([1, 2, 3, 4].map(() => openAt(url)));
    const jobs = await Promise.all(all.map(({ store }) => store.job("demo")));
    expect(new Set(jobs.map(({ id }) => id)).size).toBe(1);
  });

  test("is one of many in a database, each in its schema", async () => {
    const [one, other] = [await openAt(postgres.newWorkspace()), await openAt(postgres.newWorkspace())];
    await one.store.startRun((await one.store.job("demo")).id, runStart);
    expect(await other.store.runs()).toEqual([]);
  });

  test("P19: upgrades the schema of version 1 with all that it has", async () => {
    const url = postgres.newWorkspace();
    const before = (await openAt(url)).accounts;
    const { id } = await before.accountOf("https://service.example", "f1");
    await before.charged(id, '["paint",[]]', credits(3));
    await postgres.query(url, "DELETE FROM transitions WHERE event = 'given_up'");
    await postgres.query(url, "ALTER TABLE items DROP COLUMN accepts");
    await postgres.query(url, "DROP TABLE list_prices, left_out, workspaces, same_services, foreign_known");
    await postgres.query(url, "ALTER TABLE keys DROP COLUMN foreign_credits");
    await postgres.query(url, "ALTER TABLE spend_log DROP COLUMN repeated_seq");
    await postgres.query(url, "UPDATE schema_version SET version = 1");
    const { accounts } = await openAt(url);
    for (const price of [2, 4]) {
      expect(await accounts.highestCharges(id)).toEqual(new Map([['["paint",[]]', credits(3)]]));
      await accounts.listed(id, new Map([["paint", credits(price)]]));
    }
    expect(await accounts.highestCharges(id)).toEqual(new Map());
  });

  test("refuses the schema of a newer bulkgen, and a name that is no schema", async () => {
    const url = postgres.newWorkspace();
    await openAt(url);
    await postgres.query(url, "UPDATE schema_version SET version = 99");
    await expect(openAt(url)).rejects.toThrow("expected schema 6 or older, got 99; update bulkgen");
    expect(() => addressOf(url.replace(/schema=.*/, "schema=x;drop"))).toThrow("expected a schema of");
    // The driver would take it in place of the schema.
    expect(() => addressOf(`${url}&options=-c%20work_mem%3D1MB`)).toThrow("an address without ?options=");
  });

  test("keeps what a service says with a NUL in it, which PostgreSQL has no room for", async () => {
    const { store } = await openAt(postgres.newWorkspace());
    const { id: runId } = await store.startRun((await store.job("demo")).id, runStart);
    await store.enroll(runId, [newItem("a", { prompt: "a\0cup" })]);
    expect(await store.items(runId)).toMatchObject([{ prompt: "a\ufffdcup" }]);
  });

  test("P1: nothing of a transaction is left when its connection is lost, and the next one has another", async () => {
    const url = postgres.newWorkspace();
    const { store } = await openAt(url);
    const { id } = await store.startRun((await store.job("demo")).id, runStart);
    const items = (function* () {
      yield newItem("a");
      throw new Error("the sheet cannot be read");
    })();
    await expect(store.enroll(id, items)).rejects.toThrow("the sheet cannot be read");
    expect(await store.items(id)).toEqual([]);
    await postgres.query(
      url,
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'bulkgen'",
    );
    await store.enroll(id, [newItem("a")]).catch(() => store.enroll(id, [newItem("a")]));
    expect(await store.items(id)).toHaveLength(1);
  });

  test("P1: writes that come in together share a transaction", async () => {
    const { atomic, sql, close } = await openPostgres({
      address: addressOf(postgres.newWorkspace()),
      clock: new ManualClock(),
    });
    const job = (name: string) =>
      atomic(function* () {
        yield* sql("INSERT INTO jobs (name, created_at) VALUES (?, 0)").run(name);
        return yield* sql("SELECT CAST(pg_current_xact_id() AS TEXT)").value();
      });
    const [first, second, third] = await Promise.all([job("first"), job("second"), job("third")]);
    // The first began at once; the others came in meanwhile.
    expect(second).not.toBe(first);
    expect(third).toBe(second);
    await close();
  });

  test("P1: of writes that share a transaction, one that fails undoes only itself", async () => {
    const url = postgres.newWorkspace();
    const { atomic, sql, close } = await openPostgres({ address: addressOf(url), clock: new ManualClock() });
    const job = (name: string, fails = false) =>
      atomic(function* () {
        yield* sql("INSERT INTO jobs (name, created_at) VALUES (?, 0)").run(name);
        if (fails) throw new Error(`${name} fails`);
      });
    const ends = await Promise.allSettled([
      job("first"),
      job("second"),
      job("bad", true),
      job("second"),
      job("last"),
    ]);
    expect(ends.map((end) => (end.status === "rejected" ? end.reason.message : "stored"))).toEqual([
      "stored",
      "stored",
      "bad fails",
      // Its query is not waited for: what it asks next, or its end, has the reason.
      expect.stringContaining("jobs_name"),
      "stored",
    ]);
    expect(await postgres.query(url, "SELECT name FROM jobs ORDER BY name")).toEqual([
      { name: "first" },
      { name: "last" },
      { name: "second" },
    ]);
    await close();
  });

  test("P1: items that can be read only once are stored whole beside a write that fails", async () => {
    const { store } = await openAt(postgres.newWorkspace());
    const { id } = await store.startRun((await store.job("demo")).id, runStart);
    function* once() {
      yield newItem("a");
      yield newItem("b");
    }
    const [, enrolled, failed] = await Promise.allSettled([
      store.setRun(id, { requests: 1 }),
      store.enroll(id, once()),
      store.apply(99, "intended", {}),
    ]);
    expect([enrolled?.status, failed?.status]).toEqual(["fulfilled", "rejected"]);
    expect(await store.items(id)).toMatchObject([newItem("a"), newItem("b")].map(({ key }) => ({ key })));
  });

  test("P1: where the end of a shared transaction fails, nobody is told that it was stored", async () => {
    const url = postgres.newWorkspace();
    const { atomic, sql, close } = await openPostgres({ address: addressOf(url), clock: new ManualClock() });
    await postgres.query(url, refusedAtTheEnd);
    const job = (name: string) =>
      atomic(function* () {
        yield* sql("INSERT INTO jobs (name, created_at) VALUES (?, 0)").run(name);
      });
    const ends = await Promise.allSettled(["first", "second", "refused", "fourth"].map(job));
    expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "rejected"]);
    await job("fifth");
    expect(await postgres.query(url, "SELECT name FROM jobs ORDER BY name")).toEqual([
      { name: "fifth" },
      { name: "first" },
    ]);
    await close();
  });

  test("P1: where a connection is lost before the end, what shared its transaction is stored over another", async () => {
    const url = postgres.newWorkspace();
    const { atomic, sql, close } = await openPostgres({ address: addressOf(url), clock: new ManualClock() });
    const job = (name: string, isCut = false) =>
      atomic(function* () {
        yield* sql("INSERT INTO jobs (name, created_at) VALUES (?, 0)").run(name);
        if (isCut) yield* sql("SELECT pg_terminate_backend(pg_backend_pid())").run();
      });
    const ends = await Promise.allSettled([job("first"), job("second"), job("third", true), job("fourth")]);
    expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected", "fulfilled"]);
    expect(await postgres.query(url, "SELECT name FROM jobs ORDER BY name")).toEqual([
      { name: "first" },
      { name: "fourth" },
      { name: "second" },
    ]);
    await close();
  });

  test("who has the lock says why its run waits, and until when, however long the name of its host is", async () => {
    const address = addressOf(postgres.newWorkspace());
    const holder = { pid: 4_194_304, host: `${"studio-".repeat(8)}2`, run: 1_234_567 };
    const locked = await lockSharedStore({ address, root: "/place", clock: new ManualClock() }, holder);
    for (const kind of reasonKinds)
      for (const until of [null, Date.UTC(2036, 1, 1)]) {
        const reason = plainReason(kind, until);
        await locked?.says({ ...holder, reason });
        expect(await holderOf(address)).toMatchObject({ pid: holder.pid, run: holder.run, reason });
      }
    await locked?.says({ ...holder, reason: null });
    expect(await holderOf(address)).toMatchObject({ host: holder.host.slice(0, 32), reason: null });
    await locked?.release();
  });

  test("P18: a process whose lock is lost can neither write nor read", async () => {
    const url = postgres.newWorkspace();
    const holder = { pid: 1, host: "here", run: null };
    const locked = await lockSharedStore(
      { address: addressOf(url), root: "/place", clock: new ManualClock() },
      holder,
    );
    if (locked === null) throw new Error("expected the lock");
    expect(await locked.store.runs()).toEqual([]);
    await postgres.query(
      url,
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'bulkgen 1@%'",
    );
    // The news is on its way.
    await eventually(() =>
      locked.store.runs().then(
        () => null,
        () => true as const,
      ),
    );
    await expect(locked.store.runs()).rejects.toThrow(DatabaseTrouble);
    await expect(locked.store.job("demo")).rejects.toThrow(DatabaseTrouble);
    await locked.release();
  });

  test("P2: of many who intend the same item at once, one may submit it", async () => {
    const url = postgres.newWorkspace();
    const workers = await Promise.all([1, 2, 3].map(() => openAt(url)));
    const [{ store }] = workers as [SharedWorkspace];
    const { id: runId } = await store.startRun((await store.job("demo")).id, runStart);
    await store.enroll(runId, [newItem("a")]);
    const [item] = await store.items(runId);
    const intent = { runId, sentAt: 0, bodySha256: "00", spendLogId: null };
    const tries = [...workers, ...workers].map((each) => each.store.intend(item?.id ?? 0, intent));
    const ended = await Promise.allSettled(tries);
    expect(ended.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(await postgres.query(url, "SELECT count(*) AS attempts FROM attempts")).toEqual([{ attempts: 1 }]);
  });

  test("a transaction changes the sums of a run a few times for thousands of items, as each change leaves a version behind", async () => {
    const url = postgres.newWorkspace();
    const { store } = await openAt(url);
    const run = await store.startRun((await store.job("demo")).id, runStart);
    const items = Array.from({ length: 2_000 }, (_, position) => newItem(`row ${position}`, { position }));
    await store.enroll(run.id, items);
    await store.enroll(run.id, items);
    const pages =
      "SELECT pg_relation_size('run_states') / 8192 AS states, pg_relation_size('run_groups') / 8192 AS groups";
    expect(await postgres.query(url, pages)).toEqual([{ states: 1, groups: 1 }]);
  });

  test("P9: the quota of an account is one, whichever process reserves", async () => {
    const url = postgres.newWorkspace();
    const clock = new ManualClock();
    const workers = await Promise.all([1, 2, 3].map(() => openAt(url, clock)));
    const [{ accounts }] = workers as [SharedWorkspace];
    const { id } = await accounts.accountOf("https://service.example", "f1");
    await accounts.setLimits(id, { perMinute: 5, perDay: null });
    const caller = { accountId: id, fingerprint: "f1" };
    // Connections are made first, so that all transactions begin together.
    const ready = workers.flatMap((each) => Array.from({ length: 10 }, () => each.accounts.quota(id)));
    await Promise.all(ready);
    const asked = Array.from({ length: 30 }, (_, index) =>
      workers[index % 3]?.accounts.reserve(caller, "task"),
    );
    const given = (await Promise.all(asked)).filter((reservation) => reservation?.ticket);
    expect(given.length).toBeLessThanOrEqual(5);
    expect(given.length).toBeGreaterThan(0);
  });
});

describe("machines whose clocks are wrong", () => {
  const dayMs = 86_400_000;

  function machine(aheadMs: number): Clock {
    return followingClock(new ManualClock(Date.now() + aheadMs));
  }

  test("go by the database's clock", async () => {
    const url = postgres.newWorkspace();
    const shown = async () => {
      const [row] = await postgres.query(url, "SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now");
      return Number(row?.["now"]);
    };
    const clocks = [machine(2 * dayMs), machine(-2 * dayMs)];
    const workers = await Promise.all(clocks.map((clock) => openAt(url, clock)));
    const before = await shown();
    for (const { store } of workers) await store.job("demo");
    const after = await shown();
    for (const clock of clocks) {
      expect(clock.now()).toBeGreaterThanOrEqual(Math.floor(before));
      expect(clock.now()).toBeLessThanOrEqual(after);
    }
  });

  test("P9: count the requests of the day alike, so one that is days ahead does not send them again", async () => {
    const url = postgres.newWorkspace();
    const [right, ahead] = await Promise.all([openAt(url, machine(0)), openAt(url, machine(2 * dayMs))]);
    const { id } = await right.accounts.accountOf("https://service.example", "f1");
    await right.accounts.setLimits(id, { perMinute: null, perDay: 2 });
    const caller = { accountId: id, fingerprint: "f1" };
    const tickets = async ({ accounts }: SharedWorkspace) => {
      const { ticket } = await accounts.reserve(caller, "task");
      return ticket === null || ticket === undefined ? 0 : 1;
    };
    expect([await tickets(right), await tickets(right), await tickets(right)]).toEqual([1, 1, 0]);
    expect(await tickets(ahead)).toBe(0);
  });
});

describe("a query in PostgreSQL's words", () => {
  const said = (text: string) => translated(text).pieces.join("$");

  test.each([
    ["SELECT max(id) FROM runs", "SELECT max(id) FROM runs"],
    [
      "UPDATE a SET b = max(b, min(?, 1 + (SELECT max(c) FROM d)))",
      "UPDATE a SET b = greatest(b, least($, 1 + (SELECT max(c) FROM d)))",
    ],
    ["SELECT row_id AS rowId FROM items ORDER BY +id", 'SELECT row_id AS "rowId" FROM items ORDER BY id'],
    ["SELECT a + b FROM c WHERE d = @runId", "SELECT a + b FROM c WHERE d = $"],
    [
      "SELECT CAST(value AS INTEGER) FROM json_each(@ids)",
      "SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST($ AS JSON)) AS each (value)",
    ],
  ])("%s", (text, expected) => expect(said(text)).toBe(expected));
});
