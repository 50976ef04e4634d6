import { afterEach, beforeEach, expect, test } from "vitest";
import { openSqlite } from "../../src/sqlite.js";
import { carryOn, openWorld, picture, start, type World } from "./harness.js";

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

test("a failure of the provider and its retry are one step: a crash leaves both or neither", async () => {
  const run = await start(world, [picture("bad", 0, { prompt: "a [[provider-error]] of sorts" })]);
  const db = openSqlite(`${world.folder}/state.db`);
  db.exec(`CREATE TRIGGER crash BEFORE UPDATE OF state ON items WHEN OLD.state = 'failed'
    BEGIN SELECT RAISE(ABORT, 'the power is gone'); END`);
  await expect(carryOn(world, run)).rejects.toThrow("the power is gone");
  const states = async () =>
    (await world.store.items(run.id)).map(({ state, failures }) => [state, failures]);
  expect(await states()).toEqual([["processing", 0]]);
  db.exec("DROP TRIGGER crash");
  db.close();
  await carryOn(world, run, { retries: 1 });
  expect(await states()).toEqual([["failed", 2]]);
});
