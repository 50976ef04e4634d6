import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { databaseAddress } from "../../src/store/postgres/address.js";
import { lockPostgres, openPostgres } from "../../src/store/postgres/connect.js";
import { ManualClock } from "../manual-clock.js";
import { startPostgres, type TestPostgres } from "./postgres.js";

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.close());

/** A way to a workspace that can be cut: nothing passes any more, nobody is told, and no new connection is made. */
async function way() {
  const target = new URL(postgres.newWorkspace());
  const sockets = new Set<Socket>();
  const taken: Socket[] = [];
  const server = createServer((near) => {
    taken.push(near);
    const far = connect(Number(target.port), target.hostname);
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(target);
  url.port = `${(server.address() as AddressInfo).port}`;
  return {
    address: databaseAddress(url.href, { sandbox: false }),
    direct: target.href,
    cut() {
      server.close();
      for (const socket of sockets) {
        socket.unpipe();
        socket.pause();
      }
    },
    /** Resolves when this process has closed all its connections: an open one would keep it alive. */
    async closed() {
      for (const near of taken) {
        near.resume();
        if (!near.closed) await once(near, "close");
      }
    },
    end() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Lets time pass until the promise is settled. */
async function passing<Result>(clock: ManualClock, promise: Promise<Result>): Promise<Result> {
  let settled = false;
  const done = () => {
    settled = true;
  };
  promise.then(done, done);
  while (!settled) {
    clock.advance(20_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return promise;
}

const holder = { pid: 1, host: "one", run: null };

test("P2: on a network that was cut, who has the lock is told so and writes nothing more", async () => {
  const { address, closed, cut, end, direct } = await way();
  const clock = new ManualClock();
  const locked = await lockPostgres({ address, clock }, holder);
  const job = (name: string) =>
    locked?.atomic(function* () {
      return yield* locked.sql("INSERT INTO jobs (name, created_at) VALUES (?, 0)").insert(name);
    });
  await job("before");
  cut();
  await expect(passing(clock, Promise.resolve(job("during")))).rejects.toThrow("the database postgres://");
  await expect(job("after")).rejects.toThrow("the database postgres://");
  await locked?.release();
  await closed();
  expect(await postgres.query(direct, "SELECT name FROM jobs")).toEqual([{ name: "before" }]);
  end();
});

test("who reads is told so", async () => {
  const { address, closed, cut, end } = await way();
  const clock = new ManualClock();
  const { read, sql, close } = await openPostgres({ address, clock });
  const jobs = () =>
    read(function* () {
      return yield* sql("SELECT name FROM jobs").all();
    });
  expect(await jobs()).toEqual([]);
  cut();
  await expect(passing(clock, jobs())).rejects.toThrow("the database postgres://");
  await close();
  await closed();
  end();
});

test("a query that lasts long is waited for while the server is there", async () => {
  const { address, end, direct } = await way();
  const clock = new ManualClock();
  const { atomic, sql, close } = await openPostgres({ address, clock });
  // Writers take turns: this one waits until the other has ended.
  const lock = `hashtextextended('${address.schema}', 0)`;
  await postgres.query(direct, `SELECT pg_advisory_lock(${lock})`);
  const writing = atomic(function* () {
    return yield* sql("INSERT INTO jobs (name, created_at) VALUES (?, 0)").insert("after");
  });
  for (let looks = 0; looks < 100; looks++) {
    clock.advance(20_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await postgres.query(direct, `SELECT pg_advisory_unlock(${lock})`);
  await writing;
  expect(await postgres.query(direct, "SELECT name FROM jobs")).toEqual([{ name: "after" }]);
  await close();
  end();
});

test("the server lets go of a silent host after 25 s, whether or not an answer to it is under way", async () => {
  const { address, end } = await way();
  const { read, sql, close } = await openPostgres({ address, clock: new ManualClock() });
  const [seconds] = await read(function* () {
    return yield* sql(
      `SELECT CAST(current_setting('tcp_keepalives_idle') AS INTEGER)
         + CAST(current_setting('tcp_keepalives_interval') AS INTEGER) * CAST(current_setting('tcp_keepalives_count') AS INTEGER) AS silent,
         CAST(current_setting('tcp_user_timeout') AS INTEGER) / 1000 AS answering`,
    ).all();
  });
  expect(seconds).toEqual({ silent: 25, answering: 25 });
  await close();
  end();
});
