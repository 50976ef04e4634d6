import { test } from "vitest";
import { s3Server } from "../bucket/s3-server.js";
import { amount } from "../fuzz/amount.js";
import { stories } from "./story.js";
import { tell } from "./tell.js";
import { World } from "./world.js";

/** `STORIES=500 SEED=7 npm run fuzz` tells so many, others than before. */
const count = amount(1, Number(process.env["STORIES"] ?? 40));

test("P2: whatever a person does with sheets, runs and files, nothing is paid twice and nothing is lost", {
  tags: ["fuzz"],
  timeout: amount(300_000, 86_400_000),
}, async () => {
  const env = await s3Server();
  await tell(stories, count, () => World.open(env));
});
