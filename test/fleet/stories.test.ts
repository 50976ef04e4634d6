import { afterAll, beforeAll, test } from "vitest";
import { s3Server } from "../bucket/s3-server.js";
import { amount } from "../fuzz/amount.js";
import { migratingStories } from "../stories/story.js";
import { tell } from "../stories/tell.js";
import { World } from "../stories/world.js";
import { startPostgres, type TestPostgres } from "./postgres.js";

let postgres: TestPostgres;
beforeAll(async () => {
  // Stories have days of waiting in them.
  postgres = await startPostgres({ inBackground: true });
});
afterAll(() => postgres.close());

/** `FUZZ=1 STORIES=500 SEED=7` tells so many, others than before. */
const count = amount(2, Number(process.env["STORIES"] ?? 40));

test("P2: whatever a person does, with the state in a database or in files, nothing is paid twice and nothing is lost", {
  tags: ["long"],
  timeout: amount(300_000, 86_400_000),
}, async () => {
  const env = await s3Server();
  await tell(migratingStories, count, () => World.open(env, () => postgres.newWorkspace()));
});
