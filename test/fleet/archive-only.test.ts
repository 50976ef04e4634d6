import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Bucket, bucketTarget, openBucket } from "../../src/bucket/bucket.js";
import { type BucketFront, bucketFront } from "../bucket/front.js";
import { s3Server } from "../bucket/s3-server.js";
import {
  eventually,
  newPlace,
  type Place,
  type Running,
  run,
  type Started,
  start,
  started,
} from "../e2e/command.js";
import { type Asked, type ScriptedService, startService } from "../e2e/service.js";
import { sheet } from "../e2e/sheet.js";
import { startPostgres, type TestPostgres } from "./postgres.js";

/** Hosts that share a database and a bucket, and no folder. */

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.close());

interface Hosts {
  place: Place;
  service: ScriptedService;
  url: string;
  /** Reaches the database and the service. */
  env: Record<string, string>;
  /** Reaches the bucket as well. */
  s3: Record<string, string>;
  bucket: Bucket;
  /** Lets the downloads go on that are held back. */
  release(): void;
}

async function hosts(items: number, { holds = false } = {}): Promise<Hosts> {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const service = await startService({
    async script({ what }: Asked): Promise<"serve"> {
      if (holds && what === "GET file") await released;
      return "serve";
    },
  });
  const place = newPlace();
  place.write("set.csv", sheet(items, "plain-image"));
  const url = postgres.newWorkspace();
  const s3 = await s3Server();
  const target = bucketTarget("s3://inputs/team") ?? { bucket: "", prefix: "" };
  const env = { ...service.env, BULKGEN_DATABASE_URL: url };
  return { place, service, url, env, s3, bucket: openBucket(target, s3), release };
}

const runArgs = ["run", "set.csv", "--yes", "--archive", "s3://inputs/team", "--archive-only"];

const workerArgs = (place: Place, name: string) => [
  "worker",
  "--only",
  "archive",
  "--downloads",
  "2",
  "--out",
  join(place.root, name),
];
const ready = /worker \d+ on \S+ is ready/;

/** A worker in this process that has a folder of its own. */
async function worker({ place, env }: Hosts, name: string, own: Record<string, string>): Promise<Started> {
  const working = started(place, workerArgs(place, name), { env: { ...env, ...own }, serves: true });
  await working.prints(ready);
  return working;
}

/** The same in a process of its own. */
async function workerProcess(
  { place, env }: Hosts,
  name: string,
  own: Record<string, string>,
): Promise<Running> {
  const working = start(place, workerArgs(place, name), { env: { ...env, ...own } });
  await working.prints(ready);
  return working;
}

async function drained(working: Running | Started): Promise<void> {
  if ("signal" in working) working.signal("SIGTERM");
  else working.interrupt();
  expect((await working.ended).code).toBe(0);
}

/** The files below a folder. */
function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name);
}

/** Uploads that brought bytes. */
function brought({ asked }: BucketFront): string[] {
  return asked.filter(({ method, copies }) => method === "PUT" && !copies).map(({ key }) => key);
}

const queueSchema = (url: string) => `${new URL(url).searchParams.get("schema")}_queue`;
const endLeases = ({ url }: Hosts) =>
  postgres.query(
    url,
    `UPDATE ${queueSchema(url)}.job SET heartbeat_on = now() - interval '1 hour' WHERE state = 'active'`,
  );

async function expectWhole({ bucket, place, service }: Hosts, files: readonly string[]): Promise<void> {
  expect((await bucket.list("set")).toSorted()).toEqual([...files, "index.jsonl"].toSorted());
  expect(readdirSync(join(place.folder, "outputs", "set"))).toEqual(["index.jsonl"]);
  const lines = place.read("outputs/set/index.jsonl").trimEnd().split("\n");
  const media = files.filter((file) => file.endsWith(".png"));
  expect(lines.map((line) => (JSON.parse(line) as { file: string }).file).toSorted()).toEqual(media);
  expect(service.made).toHaveLength(media.length);
}

describe("workers without the output folder", () => {
  test("bring the bytes to the bucket, where the run gives the names", async () => {
    const all = await hosts(3, { holds: true });
    const [ofRun, ofWorker] = [await bucketFront(all.s3), await bucketFront(all.s3)];
    const working = await worker(all, "away", ofWorker.env);
    const running = started(all.place, [...runArgs, "--no-work", "--sidecars"], {
      env: { ...all.env, ...ofRun.env },
    });
    await all.service.wasAsked("GET file", 2);
    // P21: the hosts' credentials are not in the database, nor in the queue.
    const schema = new URL(all.url).searchParams.get("schema");
    const tables = await postgres.query(
      all.url,
      "SELECT table_schema || '.' || table_name AS name FROM information_schema.tables WHERE table_schema LIKE $1 || '%'",
      [schema],
    );
    const found: unknown[] = [];
    for (const { name } of tables) {
      const secret = `SELECT '${name}' AS name FROM ${name} AS t WHERE t::text LIKE '%S3RVER%' OR t::text LIKE '%${all.service.key}%'`;
      found.push(...(await postgres.query(all.url, secret)));
    }
    expect([found, tables.length > 20]).toEqual([[], true]);
    all.release();
    const ended = await running.ended;
    expect([ended.code, ended.stderr]).toEqual([0, expect.stringContaining("3 archived")]);
    await drained(working);
    expect(brought(ofRun).toSorted()).toEqual([
      "team/set/a01.json",
      "team/set/a02.json",
      "team/set/a03.json",
      "team/set/index.jsonl",
    ]);
    expect(brought(ofWorker)).toHaveLength(3);
    expect(filesIn(join(all.place.root, "away"))).toEqual([]);
    await expectWhole(all, ["a01.json", "a01.png", "a02.json", "a02.png", "a03.json", "a03.png"]);
    const env = { ...all.env, ...all.s3 };
    expect((await run(all.place, ["verify", "--read-data"], { env })).code).toBe(0);
  });

  test("that lack the credentials, or the right to write, say so and leave their downloads to others", async () => {
    const all = await hosts(2);
    const forbidding = await bucketFront(all.s3, ({ method }) => (method === "PUT" ? 403 : "serve"));
    const env = { ...all.env, ...all.s3 };
    const running = started(all.place, [...runArgs, "--no-work"], { env });
    const without = await worker(all, "without", {});
    const refused = await without.ended;
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringMatching(
        /in a bucket that this host cannot use: s3:\/\/inputs\/team cannot be used: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY\. Its downloads go to other workers/,
      ),
    ]);
    const forbidden = await worker(all, "forbidden", forbidding.env);
    const ended = await forbidden.ended;
    expect([ended.code, ended.stderr]).toEqual([
      2,
      expect.stringMatching(/s3:\/\/inputs\/team refused the upload of .* check AWS_ACCESS_KEY_ID/),
    ]);
    expect(filesIn(join(all.place.root, "forbidden"))).toEqual([]);
    const right = await worker(all, "right", all.s3);
    const done = await running.ended;
    expect([done.code, done.stderr]).toEqual([
      0,
      expect.stringMatching(
        /the worker on \S+ cannot keep files in the bucket: s3:\/\/inputs\/team cannot be used/,
      ),
    ]);
    await drained(right);
    await expectWhole(all, ["a01.png", "a02.png"]);
  });

  test("leave one object where two of them had the same download", async () => {
    const all = await hosts(1);
    let goOn = () => {};
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const slow = await bucketFront(all.s3, async ({ method }): Promise<"serve"> => {
      if (method === "PUT") await held;
      return "serve";
    });
    const first = await workerProcess(all, "first", slow.env);
    const running = start(all.place, [...runArgs, "--no-work"], { env: { ...all.env, ...all.s3 } });
    await eventually(() => (brought(slow).length === 1 ? true : null));
    // It says nothing while its lease ends.
    first.signal("SIGSTOP");
    await endLeases(all);
    const second = await workerProcess(all, "second", all.s3);
    const ended = await running.ended;
    expect([ended.code, ended.stderr]).toEqual([0, expect.stringContaining("1 archived")]);
    await expectWhole(all, ["a01.png"]);
    const before = await all.bucket.find("set/a01.png");
    first.signal("SIGCONT");
    goOn();
    await Promise.all([drained(first), drained(second)]);
    await expectWhole(all, ["a01.png"]);
    expect(await all.bucket.find("set/a01.png")).toEqual(before);
    expect(all.service.count("GET file")).toBe(2);
  });
});

describe("a run on a host that is lost", () => {
  test("P2: is continued by a worker that has only the database and the bucket", async () => {
    const all = await hosts(3);
    let running: Running | null = null;
    let copies = 0;
    // Another file is archived; of the second the bucket has the name, and nobody else knows.
    const front = await bucketFront(all.s3, async (asked) => {
      if (!asked.copies || ++copies !== 2) return "serve";
      await eventually(async () => {
        const [row] = await postgres.query(
          all.url,
          "SELECT count(*) AS done FROM items WHERE state = 'archived'",
        );
        return Number(row?.["done"]) >= 1 || null;
      });
      return { served: () => running?.signal("SIGKILL") };
    });
    const downloads = await workerProcess(all, "away", all.s3);
    running = start(all.place, [...runArgs, "--no-work", "--downloads", "1"], {
      env: { ...all.env, ...front.env },
    });
    expect((await running.ended).signal).toBe("SIGKILL");
    rmSync(join(all.place.folder, "outputs"), { recursive: true });
    const standby = start(all.place, ["worker", "--downloads", "1"], { env: { ...all.env, ...all.s3 } });
    const [, exit] = await standby.prints(/run 1 ended: (\w+)/);
    expect(exit, standby.stderr()).toBe("done");
    await Promise.all([drained(standby), drained(downloads)]);
    await expectWhole(all, ["a01.png", "a02.png", "a03.png"]);
    const env = { ...all.env, ...all.s3 };
    expect((await run(all.place, ["verify", "--read-data"], { env })).code).toBe(0);
  });
});
