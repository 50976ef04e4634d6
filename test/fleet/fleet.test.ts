import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nodeDisk } from "../../src/archive/disk/node-disk.js";
import { undiciDownloads } from "../../src/archive/download/download.js";
import { openArchive } from "../../src/archive/save.js";
import { openHandOut } from "../../src/fleet/hand-out.js";
import { dropQueue, openQueue, type Queue } from "../../src/fleet/queue.js";
import { Daemon, type DaemonEvent } from "../../src/schedule/daemon.js";
import type { ScheduledRunEnd } from "../../src/schedule/scheduled-run.js";
import { openSqlite } from "../../src/sqlite.js";
import { databaseAddress } from "../../src/store/postgres/address.js";
import { claimOnServer } from "../../src/store/postgres/scheduled-runs.js";
import { openSchedules } from "../../src/store/schedules.js";
import { systemClock } from "../../src/system.js";
import { eventually, newPlace, type Place, type Running, run, start, started } from "../e2e/command.js";
import { type Asked, type ScriptedService, startService } from "../e2e/service.js";
import { sheet } from "../e2e/sheet.js";
import { ManualClock } from "../manual-clock.js";
import { startPostgres, type TestPostgres } from "./postgres.js";

let postgres: TestPostgres;
/** One that may be stopped: the same, unless it is somebody else's. */
let ours: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
  ours = process.env["TEST_DATABASE_URL"] === undefined ? postgres : await startPostgres({ mustStop: true });
});
afterAll(async () => {
  await postgres.close();
  if (ours !== postgres) await ours.close();
});

interface Fleet {
  place: Place;
  service: ScriptedService;
  url: string;
  how: { env: Record<string, string> };
  /** Lets the requests that wait at the service go on, and those that come. */
  release(): void;
  /** Downloads that have reached the service. */
  downloads(): number;
}

const downloads = ({ what }: Asked) => what === "GET file";

/** A sheet with so many items, and a service that holds some requests back until they are released. */
async function newFleet(
  items: number,
  { holds = () => false, on = postgres }: { holds?: (asked: Asked) => boolean; on?: TestPostgres } = {},
): Promise<Fleet> {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const service = await startService({
    async script(asked: Asked): Promise<"serve"> {
      if (holds(asked)) await released;
      return "serve";
    },
  });
  const place = newPlace();
  place.write("set.csv", sheet(items, "plain-image"));
  const url = on.newWorkspace();
  const how = { env: { ...service.env, BULKGEN_DATABASE_URL: url } };
  return { place, service, url, how, release, downloads: () => service.count("GET file") };
}

const runArgs = ["run", "set.csv", "--yes"];
const workerArgs = ["worker", "--only", "archive", "--downloads", "2"];
const ready = /worker \d+ on \S+ is ready/;

/** A worker in this process. */
async function worker({ place, how }: Fleet, ...args: string[]) {
  const working = started(place, [...workerArgs, ...args], { ...how, serves: true });
  await working.prints(ready);
  return working;
}

/** A worker in a process of its own. */
async function workerProcess({ place, how }: Fleet, ...args: string[]): Promise<Running> {
  const working = start(place, args.length === 0 ? workerArgs : args, how);
  await working.prints(ready);
  return working;
}

const queueSchema = (url: string) => `${new URL(url).searchParams.get("schema")}_queue`;
/** The leases of jobs end now, and not some seconds later. */
const endLeases = ({ url }: Fleet) =>
  postgres.query(
    url,
    `UPDATE ${queueSchema(url)}.job SET heartbeat_on = now() - interval '1 hour' WHERE state = 'active'`,
  );

/** Whether the archive has each item once, and nothing else. */
function expectWhole({ place, service }: Fleet, items: number): void {
  const folder = join(place.folder, "outputs", "set");
  const lines = place.read("outputs/set/index.jsonl").trimEnd().split("\n");
  const files = readdirSync(folder).filter((name) => name !== "index.jsonl");
  expect(lines.map((line) => (JSON.parse(line) as { file: string }).file).toSorted()).toEqual(
    files.toSorted(),
  );
  expect(files).toHaveLength(items);
  expect(service.made).toHaveLength(items);
}

describe("a fleet", () => {
  test("archives with workers that see the folder elsewhere, and the run gives the names", async () => {
    const fleet = await newFleet(6);
    const mount = join(fleet.place.root, "mount");
    symlinkSync(join(fleet.place.folder, "outputs"), mount);
    const working = await worker(fleet, "--out", mount);
    const ended = await run(fleet.place, [...runArgs, "--no-work"], fleet.how);
    expect([ended.code, ended.stderr]).toEqual([0, expect.stringContaining("6 archived")]);
    expectWhole(fleet, 6);
    // A worker says only from time to time how many downloads it has.
    const seen = await eventually(async () => {
      const { stdout } = await run(fleet.place, ["fleet", "--json"], fleet.how);
      return stdout.includes('"busy":0') ? stdout : null;
    });
    expect(JSON.parse(seen)).toMatchObject({
      workers: [{ downloads: 2, does: "archive", busy: 0 }],
      waiting: 0,
      active: 0,
      lockOwner: null,
    });
    expect((await run(fleet.place, ["fleet"], fleet.how)).stdout).toContain("no run is in progress");
    working.interrupt();
    expect((await working.ended).code).toBe(0);
    expect((await run(fleet.place, ["verify"], fleet.how)).code).toBe(0);
    expect((await run(fleet.place, ["fleet"], fleet.how)).stdout).toContain("no workers");
  });

  test("P23: a job that names a folder outside of the outputs is not carried out", async () => {
    const fleet = await newFleet(1);
    const outside = join(fleet.place.root, "outside");
    mkdirSync(outside);
    writeFileSync(join(outside, "proof"), "");
    const working = await worker(fleet);
    const queue = (await openQueue(databaseAddress(fleet.url, { sandbox: false }), systemClock)) as Queue;
    try {
      const index = { item: "a", key: "a", task: "t", external_task: null, model: "m", prompt: null };
      const request = {
        url: `${fleet.service.env["BULKGEN_BASE_URL"]}/files/a.png`,
        name: "a",
        category: "image",
        outputNumber: 1,
        outputCount: 1,
        index: { ...index, params: {}, inputs: {}, credits: null, created: null, completed: null },
      };
      const baseUrl = `${fleet.service.env["BULKGEN_BASE_URL"]}`;
      for (const folder of ["../../outside", "set/../../../outside"]) {
        const id = await queue.put({ version: 1, folder, proof: "proof", bucket: null, baseUrl, request });
        const kind = await eventually(async () => (await queue.collect([id])).ended.get(id)?.kind ?? null);
        expect(kind).toBe("elsewhere");
      }
    } finally {
      await queue.close();
    }
    expect([readdirSync(outside), fleet.downloads()]).toEqual([["proof"], 0]);
    working.interrupt();
    await working.ended;
  });

  test("waits for a worker where the run itself does not download", async () => {
    const fleet = await newFleet(2);
    const running = started(fleet.place, [...runArgs, "--no-work"], fleet.how);
    await fleet.service.wasAsked("GET task", 2);
    expect(fleet.downloads()).toBe(0);
    const working = await worker(fleet);
    const ended = await running.ended;
    expect(ended.code).toBe(0);
    expect(
      ended.stderr.match(
        /no worker that downloads is there, so downloads wait: `bulkgen worker` starts one/g,
      ),
    ).toHaveLength(1);
    working.interrupt();
    await working.ended;
    expectWhole(fleet, 2);
  });

  test("sends a worker away whose folder is another one", async () => {
    const fleet = await newFleet(2);
    const wrong = await worker(fleet, "--out", join(fleet.place.root, "wrong"));
    const running = started(fleet.place, [...runArgs, "--no-work"], fleet.how);
    const ended = await wrong.ended;
    expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining("is not the output folder")]);
    const right = await worker(fleet);
    expect((await running.ended).code).toBe(0);
    right.interrupt();
    await right.ended;
    expectWhole(fleet, 2);
  });

  test("loses nothing with its queue", async () => {
    const fleet = await newFleet(3, { holds: downloads });
    const running = started(fleet.place, runArgs, fleet.how);
    await fleet.service.wasAsked("GET file", 3);
    await dropQueue(databaseAddress(fleet.url, { sandbox: false }));
    fleet.release();
    const ended = await running.ended;
    expect([ended.code, ended.stderr]).toEqual([0, expect.stringContaining("3 archived")]);
    expectWhole(fleet, 3);
  });

  test("needs a database", async () => {
    const place = newPlace();
    const refused = await run(place, ["worker", "--only", "archive"]);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("BULKGEN_DATABASE_URL")]);
    place.write("set.csv", sheet(1, "aurora-image-mini"));
    const alone = await run(place, [...runArgs, "--no-work", "--sandbox"]);
    expect([alone.code, alone.stderr]).toEqual([
      2,
      expect.stringContaining("--no-work needs --database-url"),
    ]);
  });

  test("refuses a worker that stands by without a key, also before the first run", async () => {
    const { place, how, url } = await newFleet(1);
    const { BULKGEN_BASE_URL = "" } = how.env;
    for (const key of [{}, { BULKGEN_API_KEY: "svc_short" }]) {
      const env = { BULKGEN_DATABASE_URL: url, BULKGEN_BASE_URL, ...key };
      const refused = await run(place, ["worker"], { env });
      expect([refused.code, refused.stderr]).toEqual([
        "BULKGEN_API_KEY" in key ? 3 : 2,
        expect.stringMatching(/an API key|the API key.*wrong form/),
      ]);
      expect(refused.stderr).toContain("With --only archive a worker needs neither.");
    }
  });

  test("P21: refuses a worker with the key of another account, which is not in the database", async () => {
    const fleet = await newFleet(1);
    expect((await run(fleet.place, runArgs, fleet.how)).code).toBe(0);
    const other = await startService();
    const env = { ...fleet.how.env, ...other.env };
    // The key was used at the other address until now.
    expect((await run(fleet.place, ["worker"], { env })).stderr).toContain("has been used at");
    const refused = await run(fleet.place, ["worker", "--trust-address"], { env });
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("belong to another account")]);
    const schema = new URL(fleet.url).searchParams.get("schema");
    const tables = await postgres.query(
      fleet.url,
      "SELECT table_schema || '.' || table_name AS name FROM information_schema.tables WHERE table_schema LIKE $1 || '%'",
      [schema],
    );
    expect(tables.length).toBeGreaterThan(20);
    for (const { name } of tables)
      expect(
        await postgres.query(
          fleet.url,
          `SELECT 1 FROM ${name} AS t WHERE t::text LIKE '%${fleet.service.key}%'`,
        ),
      ).toEqual([]);
  });
});

describe("the queue", () => {
  const job = {
    version: 1 as const,
    folder: "set",
    proof: "p",
    bucket: null,
    baseUrl: "http://127.0.0.1:9",
    request: {} as never,
  };
  async function opened(): Promise<{ queue: Queue; url: string }> {
    const url = postgres.newWorkspace();
    const queue = await openQueue(databaseAddress(url, { sandbox: false }), systemClock);
    if (queue === null) throw new Error("pg-boss is not installed");
    return { queue, url };
  }

  test("gives a job whose lease has ended to another, and refuses the first one's outcome", async () => {
    const { queue, url } = await opened();
    const id = await queue.put(job);
    const [first] = await queue.take(1);
    if (first === undefined) throw new Error("expected a job");
    expect(await queue.take(1)).toEqual([]);
    expect(await queue.renew(first)).toBe(true);
    await postgres.query(url, `UPDATE ${queueSchema(url)}.job SET heartbeat_on = now() - interval '1 hour'`);
    const second = await eventually(async () => {
      await queue.tidy();
      return (await queue.take(1))[0] ?? null;
    });
    expect(second.id).toBe(id);
    expect(await queue.renew(first)).toBe(false);
    expect(await queue.complete(first, { kind: "expired", status: 1 })).toBe(false);
    expect(await queue.complete(second, { kind: "expired", status: 2 })).toBe(true);
    expect((await queue.collect([id])).ended.get(id)).toEqual({ kind: "expired", status: 2 });
    expect((await queue.collect([id])).lost).toEqual([id]);
    await queue.close();
  });

  test("is made again where it was dropped, by whoever uses it next", async () => {
    const { queue, url } = await opened();
    const id = await queue.put(job);
    await postgres.query(url, `DROP SCHEMA ${queueSchema(url)} CASCADE`);
    expect((await queue.collect([id])).lost).toEqual([id]);
    expect(await queue.take(1)).toEqual([]);
    await queue.put(job);
    expect(await queue.take(1)).toHaveLength(1);
    await queue.close();
  });
});

describe("`bulkgen fleet rebuild`", () => {
  test("replaces the queue under a run and its worker, which go on", async () => {
    const fleet = await newFleet(4, { holds: downloads });
    const working = await worker(fleet);
    const running = started(fleet.place, [...runArgs, "--no-work"], fleet.how);
    await eventually(async () => fleet.downloads() === 2 || null);
    const rebuilt = await run(fleet.place, ["fleet", "rebuild"], fleet.how);
    expect([rebuilt.code, rebuilt.stdout]).toEqual([0, expect.stringContaining("made anew")]);
    fleet.release();
    expect((await running.ended).code).toBe(0);
    expectWhole(fleet, 4);
    working.interrupt();
    await working.ended;
  });

  test("replaces a queue that cannot be opened", async () => {
    const { place, how, url } = await newFleet(1);
    expect((await run(place, ["fleet"], how)).code).toBe(0);
    // As a newer pg-boss leaves it.
    await postgres.query(url, `UPDATE ${queueSchema(url)}.version SET version = 9999`);
    await postgres.query(url, `DROP TABLE ${queueSchema(url)}.job CASCADE`);
    expect((await run(place, ["fleet"], how)).code).not.toBe(0);
    expect((await run(place, ["fleet", "rebuild", "--json"], how)).stdout).toBe('{"queue":"rebuilt"}\n');
    expect((await run(place, ["fleet"], how)).code).toBe(0);
  });

  test("needs a database", async () => {
    const { code, stderr } = await run(newPlace(), ["fleet", "rebuild"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("set BULKGEN_DATABASE_URL")]);
  });
});

describe("a download that is handed out", () => {
  test("ends with the run's interruption, also while it is on its way into the queue", async () => {
    const queue = await openQueue(databaseAddress(postgres.newWorkspace(), { sandbox: false }), systemClock);
    if (queue === null) throw new Error("pg-boss is not installed");
    const disk = { disk: nodeDisk, download: undiciDownloads({ baseUrl: "http://127.0.0.1:9" }).download };
    const clock = new ManualClock();
    const archive = openArchive({
      ...disk,
      clock,
      inspect: async () => ({ kind: "ok" }) as never,
      version: "1",
    });
    const interrupt = new AbortController();
    const put = async (job: Parameters<Queue["put"]>[0]) => {
      const id = await queue.put(job);
      interrupt.abort();
      return id;
    };
    const handOut = await openHandOut({
      queue: Object.assign(Object.create(queue), { put }) as Queue,
      archive,
      outFolder: newPlace().folder,
      proof: "p",
      bucket: null,
      hasProof: async () => true,
      baseUrl: "http://127.0.0.1:9",
      clock,
      log: { info: () => {}, warn: () => {} } as never,
      startWorker: null,
      onOffer: () => {},
    });
    const save = handOut.save(
      { url: "http://127.0.0.1:9/out", jobFolder: newPlace().folder, name: "a", index: {} } as never,
      interrupt.signal,
    );
    // No worker is there.
    expect(await save).toMatchObject({ kind: "try_again" });
    await handOut.close();
    await queue.close();
  });
});

describe("a worker's process", () => {
  test("that is killed in the middle of a download loses it to another", { tags: ["long"] }, async () => {
    const fleet = await newFleet(2, { holds: downloads });
    const killed = await workerProcess(fleet);
    const running = started(fleet.place, [...runArgs, "--no-work"], fleet.how);
    await fleet.service.wasAsked("GET file", 2);
    killed.signal("SIGKILL");
    await killed.ended;
    const other = await workerProcess(fleet);
    fleet.release();
    await endLeases(fleet);
    expect((await running.ended).code).toBe(0);
    other.signal("SIGTERM");
    expect((await other.ended).code).toBe(0);
    // The next run removes what the killed worker left.
    expect((await run(fleet.place, runArgs, fleet.how)).code).toBe(0);
    expectWhole(fleet, 2);
  });

  test("that is stopped past its lease is not heard when it goes on, and leaves nothing", {
    tags: ["long"],
  }, async () => {
    const fleet = await newFleet(2, { holds: downloads });
    const stopped = await workerProcess(fleet);
    const running = started(fleet.place, [...runArgs, "--no-work"], fleet.how);
    await fleet.service.wasAsked("GET file", 2);
    stopped.signal("SIGSTOP");
    await endLeases(fleet);
    const other = await workerProcess(fleet);
    fleet.release();
    expect((await running.ended).code).toBe(0);
    stopped.signal("SIGCONT");
    for (const each of [stopped, other]) {
      each.signal("SIGTERM");
      expect((await each.ended).code).toBe(0);
    }
    expectWhole(fleet, 2);
    expect((await run(fleet.place, ["verify"], fleet.how)).code).toBe(0);
  });

  test("finishes what it has at SIGTERM", async () => {
    const fleet = await newFleet(2, { holds: downloads });
    const drained = await workerProcess(fleet);
    const running = started(fleet.place, [...runArgs, "--no-work"], fleet.how);
    await fleet.service.wasAsked("GET file", 2);
    drained.signal("SIGTERM");
    await drained.prints(/finishing the downloads in progress/);
    fleet.release();
    expect((await drained.ended).code).toBe(0);
    expect((await running.ended).code).toBe(0);
    expect(fleet.downloads()).toBe(2);
    expectWhole(fleet, 2);
  });

  test("P2: stands by, and goes on with a run whose process was killed", async () => {
    const fleet = await newFleet(4, { holds: downloads });
    const running = start(fleet.place, [...runArgs, "--lanes", "1"], fleet.how);
    await fleet.service.wasAsked("GET file", 1);
    const standby = await workerProcess(fleet, "worker", "--downloads", "2");
    running.signal("SIGKILL");
    await running.ended;
    fleet.release();
    const [, exit] = await standby.prints(/run 1 ended: (\w+)/);
    expect(exit, standby.stderr()).toBe("done");
    standby.signal("SIGTERM");
    expect((await standby.ended).code).toBe(0);
    expectWhole(fleet, 4);
  });

  test("goes on with a run with its own number of lanes", async () => {
    // A process submits one item until it knows what its like is charged.
    let served = 1;
    let isKilled = false;
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const fleet = await newFleet(5);
    const error = { code: "RATE_LIMITED", message: "later" };
    fleet.service.script(async ({ what }) => {
      if (what !== "POST generate" || served-- > 0) return "serve";
      if (!isKilled) return { status: 429, json: { error }, headers: { "retry-after": "5" } };
      await released;
      return "serve";
    });
    const running = start(fleet.place, [...runArgs, "--lanes", "1"], fleet.how);
    await fleet.service.wasAsked("POST generate", 2);
    await eventually(async () => {
      const rows = await postgres.query(fleet.url, "SELECT state FROM items ORDER BY state");
      return rows.map(({ state }) => state).join() === "archived,planned,planned,planned,planned" || null;
    });
    running.signal("SIGKILL");
    await running.ended;
    isKilled = true;
    served = 1;
    const before = fleet.service.count("POST generate");
    const standby = await workerProcess(fleet, "worker", "--lanes", "3");
    await fleet.service.wasAsked("POST generate", before + 4);
    release();
    const [, exit] = await standby.prints(/run 1 ended: (\w+)/);
    expect(exit, standby.stderr()).toBe("done");
    standby.signal("SIGTERM");
    expect((await standby.ended).code).toBe(0);
    expectWhole(fleet, 5);
  });

  test("P2: stands by for what needs the key, and leaves the downloads to others", async () => {
    const fleet = await newFleet(4, { holds: downloads });
    const running = start(fleet.place, [...runArgs, "--lanes", "1", "--no-work"], fleet.how);
    const downloading = await workerProcess(fleet, "worker", "--only", "archive", "--downloads", "1");
    await fleet.service.wasAsked("GET file", 1);
    const standby = start(fleet.place, ["worker", "--only", "submit,poll"], fleet.how);
    await standby.prints(/stands by for a run whose process is gone, and takes no downloads/);
    const seen = await run(fleet.place, ["fleet"], fleet.how);
    expect(seen.stdout).toMatch(/: stands by for a run whose process is gone, since .*\n/);
    running.signal("SIGKILL");
    await running.ended;
    fleet.release();
    const [, exit] = await standby.prints(/run 1 ended: (\w+)/);
    expect(exit, standby.stderr()).toBe("done");
    for (const worker of [standby, downloading]) worker.signal("SIGTERM");
    expect((await standby.ended).code).toBe(0);
    expect((await downloading.ended).code).toBe(0);
    expectWhole(fleet, 4);
  });

  test("P2: lives on when the database is stopped and started, and goes on with the run that could not", {
    tags: ["long"],
  }, async () => {
    const fleet = await newFleet(4, { holds: downloads, on: ours });
    const running = start(fleet.place, [...runArgs, "--lanes", "1"], fleet.how);
    await fleet.service.wasAsked("GET file", 1);
    const standby = await workerProcess(fleet, "worker", "--downloads", "2");
    await ours.halt();
    fleet.release();
    const ended = await running.ended;
    expect([ended.code, ended.stderr]).toEqual([8, expect.stringContaining("see that it runs")]);
    expect(ended.stderr).toContain("then `bulkgen resume 1`");
    for (const args of [runArgs, workerArgs]) {
      const refused = await run(fleet.place, args, fleet.how);
      expect([args[0], refused.code, refused.stderr]).toEqual([
        args[0],
        4,
        expect.stringMatching(/^bulkgen: the database postgres:.*see that it runs/m),
      ]);
    }
    await ours.start();
    const [, exit] = await standby.prints(/run 1 ended: (\w+)/);
    expect(exit, standby.stderr()).toBe("done");
    standby.signal("SIGTERM");
    expect((await standby.ended).code).toBe(0);
    expectWhole(fleet, 4);
  });
});

describe("a database that takes no more writes", () => {
  const readOnly = async (url: string, isOn: boolean) => {
    await ours.query(url, `ALTER SYSTEM SET default_transaction_read_only = ${isOn}`);
    await ours.query(url, "SELECT pg_reload_conf()");
    await eventually(async () => {
      const [row] = await ours.query(url, "SHOW default_transaction_read_only");
      return row?.["default_transaction_read_only"] === (isOn ? "on" : "off") || null;
    });
  };

  test("P2: ends the run, which is resumed when it takes them again; workers wait for it", async () => {
    const fleet = await newFleet(3, {
      on: ours,
      holds: (asked) => downloads(asked) || (asked.what === "POST generate" && asked.before === 2),
    });
    const working = await worker(fleet);
    const running = started(fleet.place, [...runArgs, "--no-work"], fleet.how);
    await fleet.service.wasAsked("GET file", 2);
    await fleet.service.wasAsked("POST generate", 3);
    await readOnly(fleet.url, true);
    try {
      fleet.release();
      const ended = await running.ended;
      expect([ended.code, ended.stderr]).toEqual([8, expect.stringContaining("this one is read-only")]);
      expect(ended.stderr).toContain("then `bulkgen resume 1`");
      for (const args of [["resume"], workerArgs]) {
        const refused = await run(fleet.place, args, fleet.how);
        expect([args[0], refused.code, refused.stderr]).toEqual([
          args[0],
          4,
          expect.stringMatching(/^bulkgen: the database postgres:.*this one is read-only/m),
        ]);
      }
      // To read needs no write.
      expect((await run(fleet.place, ["status"], fleet.how)).code).toBe(0);
    } finally {
      await readOnly(fleet.url, false);
    }
    const resumed = await run(fleet.place, ["resume", "--no-work"], fleet.how);
    expect([resumed.code, resumed.stderr]).toEqual([0, expect.stringContaining("3 archived")]);
    working.interrupt();
    const { code, stderr } = await working.ended;
    expect(code).toBe(0);
    expect(stderr.match(/waiting for the database: no downloads can be taken/g)).toHaveLength(1);
    expectWhole(fleet, 3);
  });

  test("P6: an answer that it could not take is found in the folder of its run, also after another folder went on", async () => {
    const fleet = await newFleet(1, { on: ours, holds: ({ what }) => what === "POST generate" });
    const running = started(fleet.place, runArgs, fleet.how);
    await fleet.service.wasAsked("POST generate", 1);
    await readOnly(fleet.url, true);
    try {
      fleet.release();
      expect((await running.ended).code).toBe(8);
    } finally {
      await readOnly(fleet.url, false);
    }
    const elsewhere = await run(newPlace(), ["resume", "--yes", "--settle", "wait"], fleet.how);
    expect([elsewhere.code, elsewhere.stderr]).toEqual([10, expect.stringContaining("1 held")]);
    const status = await run(fleet.place, ["status"], fleet.how);
    const answer = "its answer is in the receipts of this folder, not in the database: `bulkgen resume`";
    expect(status.stdout).toContain(answer);
    expect(status.stdout).toMatch(
      /^next +`bulkgen resume( \d+)?` takes the answers? of a held item from the receipts/m,
    );
    expect(status.stdout).not.toContain("--resubmit");
    const resumed = await run(fleet.place, ["resume"], fleet.how);
    expect([resumed.code, resumed.stderr]).toEqual([0, expect.stringContaining("1 archived")]);
    expect(fleet.service.made).toHaveLength(1);
  });

  test("gives the queue back when it takes them again, even if it was dropped meanwhile", async () => {
    const url = ours.newWorkspace();
    const queue = (await openQueue(databaseAddress(url, { sandbox: false }), systemClock)) as Queue;
    await ours.query(url, `DROP SCHEMA ${queueSchema(url)} CASCADE`);
    await readOnly(url, true);
    try {
      await expect(queue.take(1)).rejects.toThrow("read-only transaction");
    } finally {
      await readOnly(url, false);
    }
    expect(await queue.take(1)).toEqual([]);
    await queue.close();
  });
});

describe("the daemons of several hosts", () => {
  const minute = 60_000;
  const nine = Date.UTC(2026, 10, 20, 9);

  /** A daemon of a host that has the same schedule as the others, in a file of its own. */
  async function host(
    name: string,
    {
      url,
      now = nine - minute,
      seenUntil = nine - minute,
    }: { url(): string; now?: number; seenUntil?: number },
  ) {
    const clock = new ManualClock(now);
    const schedules = openSchedules(":memory:", clock);
    const flags = [["--edition", "{{ time }}"] as const];
    const schedule = { name: "hourly", manifest: "set.csv", cron: "0 * * * *", zone: "UTC", flags };
    await schedules.add({ ...schedule, missed: "once", seenUntil, pausedAt: null });
    const stop = new AbortController();
    const began: string[] = [];
    const notifications: DaemonEvent[] = [];
    const end = { run: 1, credits: null, archived: 1, failed: 0, held: 0, resumeAt: null };
    const ended: ScheduledRunEnd = { ...end, exit: 0, note: "1 of 1 archived" };
    const daemon = new Daemon({
      whatToDo: () => "",
      schedules,
      clock,
      log: { debug() {}, info() {}, warn() {}, error() {} },
      claimForAll: ({ name: schedule }, dueAt) => {
        const address = databaseAddress(url(), { sandbox: false });
        return claimOnServer({ address, clock }, { schedule, dueAt, daemon: name });
      },
      launch({ words }) {
        began.push(words.find((word) => word.startsWith("--edition")) ?? "");
        return { ended: Promise.resolve(ended), stop() {} };
      },
      notify: (_, notification) => notifications.push(notification),
    });
    const over = daemon.go(stop.signal);
    const runs = async () => (await schedules.scheduledRuns("hourly", 9)).toReversed();
    return {
      clock,
      daemon,
      began,
      notifications,
      runs,
      /** Waits until the due time is on record here as something that is over. */
      has: (dueAt: number) =>
        eventually(async () => {
          const found = (await runs()).find((run) => run.dueAt === dueAt);
          return found === undefined || found.state === "running" ? null : found;
        }),
      async end() {
        stop.abort();
        await over;
        schedules.close();
      },
    };
  }

  test("begin a scheduled run once, though their clocks are five minutes apart", async () => {
    const workspace = postgres.newWorkspace();
    const url = () => workspace;
    const ahead = await host("ahead", { url, now: nine + 4 * minute });
    expect(await ahead.has(nine)).toMatchObject({ state: "ended", exit: 0 });
    const behind = await host("behind", { url });
    behind.clock.advance(minute);
    expect(await behind.has(nine)).toMatchObject({
      state: "skipped",
      note: "the daemon on ahead has it",
    });
    // The next one is the other's if that is first.
    behind.clock.advance(60 * minute);
    expect(await behind.has(nine + 60 * minute)).toMatchObject({ state: "ended" });
    ahead.clock.advance(60 * minute);
    expect(await ahead.has(nine + 60 * minute)).toMatchObject({ note: "the daemon on behind has it" });
    expect([ahead.began, behind.began]).toEqual([["--edition=09:00"], ["--edition=10:00"]]);
    expect([...ahead.notifications, ...behind.notifications]).toEqual([]);
    await ahead.end();
    await behind.end();
  });

  test("do not catch up, or report as missed, what another one had while they were off", async () => {
    const workspace = postgres.newWorkspace();
    const url = () => workspace;
    const on = await host("on", { url });
    for (const hours of [0, 1, 2]) {
      on.clock.advance(hours === 0 ? minute : 60 * minute);
      await on.has(nine + hours * 60 * minute);
    }
    const off = await host("off", { url, now: nine + 130 * minute });
    await off.has(nine);
    await off.has(nine + 120 * minute);
    expect((await off.runs()).map(({ state }) => state)).toEqual(["skipped", "skipped", "skipped"]);
    expect([on.began.length, off.began, off.notifications]).toEqual([3, [], []]);
    await on.end();
    await off.end();
  });

  test("ask the database of the workspace that the schedule's run would use", async () => {
    const place = newPlace();
    place.write("set.csv", sheet(1));
    const env = { BULKGEN_DATABASE_URL: postgres.newWorkspace() };
    const when = ["--cron", "0 0 1 1 *", "--tz", "UTC", "--sandbox"];
    const added = await run(place, ["schedule", "add", "yearly", "set.csv", ...when], { env });
    expect([added.code, added.stderr]).toEqual([0, ""]);
    const db = openSqlite(join(place.folder, ".bulkgen", "schedules.db"));
    db.exec(`UPDATE schedules SET seen_until = seen_until - ${366 * 24 * 60 * minute}`);
    db.close();
    const address = databaseAddress(env.BULKGEN_DATABASE_URL, { sandbox: true });
    const dueAt = [0, 1].map((years) => Date.UTC(new Date().getUTCFullYear() - years, 0, 1));
    const claim = { schedule: "yearly", dueAt, daemon: "render-2 (/srv/autumn)" };
    expect((await claimOnServer({ address, clock: new ManualClock() }, claim)).size).toBe(0);
    const daemon = started(place, ["schedule", "start"], { env, serves: true });
    await daemon.prints(/is skipped: the daemon on render-2 \(\/srv\/autumn\) has it/);
    daemon.interrupt();
    expect((await daemon.ended).code).toBe(0);
    const shown = JSON.parse((await run(place, ["schedule", "show", "yearly", "--json"], { env })).stdout);
    expect(shown.scheduledRuns).toMatchObject([{ state: "skipped" }]);
  });

  test("begin nothing while the database is away, say so once, and begin when it is back", async () => {
    let url = "postgres://bulkgen@127.0.0.1:9/none";
    const one = await host("one", { url: () => url });
    one.clock.advance(minute);
    await eventually(async () => one.daemon.trouble);
    expect(await one.runs()).toEqual([]);
    url = postgres.newWorkspace();
    await eventually(async () => {
      one.clock.advance(10_000);
      return (await one.runs()).length > 0 || null;
    });
    expect(await one.has(nine)).toMatchObject({ state: "ended" });
    expect(one.began).toEqual(["--edition=09:00"]);
    expect(one.notifications).toMatchObject([
      { event: "trouble", message: expect.stringContaining("see that it runs") },
    ]);
    await one.end();
  });
});
