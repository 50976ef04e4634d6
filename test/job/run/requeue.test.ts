import { afterEach, beforeEach, expect, test } from "vitest";
import { requeue } from "../../../src/job/run/run-job.js";
import { allRows, type Plan } from "../../../src/plan/plan.js";
import { openSqlite, type Sqlite } from "../../../src/sqlite.js";
import { media } from "../../archive/media.js";
import { newItem } from "../../store/item-fixture.js";
import { type ArchivedPlace, archivedPlace } from "../../upkeep/archived-place.js";

let place: ArchivedPlace;
let db: Sqlite;
beforeEach(async () => {
  place = await archivedPlace();
  db = openSqlite(place.workspace.stateFile);
});
afterEach(async () => {
  db.close();
  await place.close();
});

test("--missing pay gives an item up and submits it again in one step: a crash leaves both or neither", async () => {
  const { store, run } = place;
  await place.archive("a", [await media.png()]);
  const [item] = await store.items(run.id);
  if (item === undefined) throw new Error("no item");
  const { key, price } = item;
  const plan = { missing: [{ key }], items: [{ key, price, due: true }] } as unknown as Plan;
  const again = () => requeue(store, run, plan, { selection: allRows, onMissing: "pay" });

  db.exec(`CREATE TRIGGER crash BEFORE UPDATE OF state ON items WHEN NEW.state = 'planned'
    BEGIN SELECT RAISE(ABORT, 'the power is gone'); END`);
  await expect(again()).rejects.toThrow("the power is gone");
  expect(await store.item(item.id)).toMatchObject({ state: "archived", note: null });
  expect((await store.outputs(item.id)).map(({ file }) => file)).toEqual([expect.any(String)]);
  db.exec("DROP TRIGGER crash");
  await again();
  expect(await store.item(item.id)).toMatchObject({ state: "planned", price });
});

test("--only-failed publishes the input that the service could not read again, as `retry` does", async () => {
  const { store, run } = place;
  await store.enroll(run.id, [
    newItem("a", { inputs: { image_url: "cup.png" }, files: { image_url: "sha256:c0ffee" } }),
  ]);
  const [item] = await store.items(run.id);
  if (item === undefined) throw new Error("no item");
  await store.keepPublished("s3://team", "c0ffee", { url: "https://team.example/cup.png", until: null });
  const { id } = await store.intend(item.id, {
    runId: run.id,
    sentAt: 0,
    bodySha256: "00",
    spendLogId: null,
  });
  await store.conclude(id, "rejected", { message: "cannot read image_url", failureKind: "input" });
  const { key, price } = item;
  const plan = { missing: [], items: [{ key, price, due: true }] } as unknown as Plan;
  await requeue(store, run, plan, { selection: { ...allRows, onlyFailed: true }, onMissing: "report" });
  expect(await store.item(item.id)).toMatchObject({ state: "planned" });
  expect(await store.publishedAt("s3://team", "c0ffee")).toBeNull();
});
