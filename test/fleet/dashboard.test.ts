import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type {
  AccountOverTime,
  DroppedSheet,
  FilePage,
  FleetStanding,
  ItemPage,
  ItemStory,
  ProgressOverTime,
  RunDetail,
  RunPage,
  Standing,
  WaitingPage,
} from "../../src/documents/page.js";
import { databaseAddress } from "../../src/store/postgres/address.js";
import { lockPostgres } from "../../src/store/postgres/connect.js";
import { openDashboard } from "../dashboard/place.js";
import { run, started } from "../e2e/command.js";
import { ManualClock } from "../manual-clock.js";
import { startPostgres, type TestPostgres } from "./postgres.js";

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres({ mustStop: true });
});
afterAll(() => postgres.close());

const sheet = "id,model,prompt\ncup,plain-image,a Cup\njar,plain-image,a jar\nbad,plain-image,refuse me\n";

/** The dashboard of a workspace in a database, with two pictures made and one refused. */
async function madeTwo() {
  const databaseUrl = postgres.newWorkspace();
  const dashboard = await openDashboard({
    databaseUrl,
    plan: "Pro",
    script: ({ body }) =>
      JSON.stringify(body ?? "").includes("refuse me")
        ? { status: 400, json: { error: { code: "INVALID_REQUEST", message: "not this" } } }
        : "serve",
  });
  const answer = await dashboard.ask("/api/sheets?name=autumn.csv", { method: "POST", body: sheet });
  const { file } = (await answer.json()) as DroppedSheet;
  const ended = await dashboard.act({ do: "start", choices: { file }, price: 6 });
  return { ...dashboard, databaseUrl, ended };
}

describe("the dashboard of a workspace in a database", () => {
  test("starts a sheet there, and shows its run, items, files and account as from files", async () => {
    const { ended, get, post, databaseUrl, service } = await madeTwo();
    expect(ended, ended.message).toMatchObject({ exit: 5 });
    expect(service.made).toHaveLength(2);
    const standing = await get<Standing>("/api/standing");
    expect(standing).toMatchObject({
      running: null,
      waiting: { held: 0, failed: 1, approval: 0 },
      problem: null,
      database: databaseAddress(databaseUrl, { sandbox: false }).shown,
    });
    const { runs } = await get<RunPage>("/api/runs");
    expect(runs).toMatchObject([
      {
        run: 1,
        job: "autumn",
        state: "finished",
        counts: { archived: 2, failed: 1 },
        credits: { spent: 4 },
        alive: false,
      },
    ]);
    expect(await get<RunDetail>("/api/runs/1")).toMatchObject({
      trouble: [{ state: "failed", items: 1, rowIds: ["bad"] }],
      canResume: false,
    });
    const page = await get<ItemPage>("/api/runs/1/items?state=archived");
    expect(page).toMatchObject({
      total: 2,
      items: [{ rowId: "cup", picked: false, files: 1 }, { rowId: "jar" }],
    });
    const story = await get<ItemStory>(`/api/items/${page.items[0]?.id}`);
    expect(story.attempts).toMatchObject([{ number: 1, price: 2, charged: 2, outcome: "accepted" }]);
    expect(story.events.map(({ to }) => to)).toEqual(["submitting", "processing", "ready", "archived"]);
    const { files } = await get<FilePage>("/api/files?text=cup");
    expect(files).toMatchObject([{ rowId: "cup", mime: "image/png" }]);
    const progress = await get<ProgressOverTime>("/api/runs/1/progress");
    expect(progress.archived.reduce((sum, { amount }) => sum + amount, 0)).toBe(2);
    expect(progress.requests.length).toBeGreaterThan(0);
    const { spent } = await get<AccountOverTime>("/api/account");
    expect(spent.reduce((sum, { amount }) => sum + amount, 0)).toBe(4);
    expect(await get<WaitingPage>("/api/waiting?what=failed")).toMatchObject({ items: [{ rowId: "bad" }] });
    expect(await post("/api/offer", { do: "redo", items: ["cup"], price: 0 })).toMatchObject({ credits: 2 });
  });

  test("shows which machine runs it, and that something has changed", async () => {
    const { get, databaseUrl } = await madeTwo();
    const before = await get<Standing>("/api/standing");
    expect((await get<Standing>("/api/standing")).change).toBe(before.change);
    const address = databaseAddress(databaseUrl, { sandbox: false });
    const held = await lockPostgres(
      { address, clock: new ManualClock() },
      { pid: 41, host: "render-2", run: 1 },
    );
    const during = await get<Standing>("/api/standing");
    expect(during.running).toMatchObject({ run: 1, pid: 41, host: "render-2", counts: { archived: 2 } });
    expect(during.change).not.toBe(before.change);
    await held?.atomic(function* () {
      yield* held.sql("UPDATE items SET note = 'changed' WHERE row_id = 'cup'").run();
    });
    expect((await get<Standing>("/api/standing")).change).not.toBe(during.change);
    await held?.release();
    expect((await get<Standing>("/api/standing")).running).toBeNull();
  });

  test("shows the run again after the database took no more connections for a while", async () => {
    const { get, databaseUrl } = await madeTwo();
    const address = databaseAddress(databaseUrl, { sandbox: false });
    const held = await lockPostgres(
      { address, clock: new ManualClock() },
      { pid: 41, host: "render-2", run: 1 },
    );
    // Of this database: a connection to it could not say so.
    const database = new URL(databaseUrl).pathname.slice(1);
    const letIn = async (isAllowed: boolean) => {
      const client = new pg.Client({ connectionString: databaseUrl.replace(/\/[^/]*$/, "/template1") });
      await client.connect();
      await client.query(`ALTER DATABASE ${database} ALLOW_CONNECTIONS ${isAllowed}`);
      await client.end();
    };
    await letIn(false);
    try {
      await expect(get<Standing>("/api/standing")).rejects.toThrow("not currently accepting connections");
    } finally {
      await letIn(true);
    }
    expect((await get<Standing>("/api/standing")).running).toMatchObject({ run: 1, host: "render-2" });
    await held?.release();
  });

  test("shows the workers, and what they have done", async () => {
    const { get, place, service, databaseUrl } = await madeTwo();
    expect(await get<FleetStanding>("/api/fleet")).toEqual({
      workers: [],
      waiting: 0,
      longestWaitMs: null,
      active: 0,
    });
    const how = { env: { ...service.env, BULKGEN_DATABASE_URL: databaseUrl } };
    const working = started(place, ["worker", "--only", "archive", "--downloads", "3"], {
      ...how,
      serves: true,
    });
    await working.prints(/is ready/);
    const again = await run(
      place,
      ["run", "sheets/autumn.csv", "--fresh", "--no-work", "--yes", "--skip-invalid"],
      how,
    );
    expect(again.code).toBe(5);
    // A worker says from time to time what it has done.
    for (let fleet: FleetStanding = null; fleet?.workers[0]?.done !== 2; )
      fleet = await get<FleetStanding>("/api/fleet");
    expect(await get<FleetStanding>("/api/fleet")).toMatchObject({
      workers: [{ downloads: 3, does: "archive", done: 2 }],
    });
    working.interrupt();
    expect((await working.ended).code).toBe(0);
  });

  test("says that the database is away, and goes on when it is back", async () => {
    const { get } = await madeTwo();
    await postgres.halt();
    expect((await get<Standing>("/api/standing")).problem).toMatch(/^the database postgres:.* To continue, /);
    await postgres.start();
    expect(await get<Standing>("/api/standing")).toMatchObject({ problem: null, waiting: { failed: 1 } });
  });
});
