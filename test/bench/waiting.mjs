/**
 * What a run costs while it only waits: an unlimited plan, and tasks of a model that is known to take half an hour, because
 * a first run has made two and the durations that it learned are set to that. When all are submitted, the processor time
 * of the command is measured for a while, and the requests that it makes are counted. Needs the build in dist/ and Linux's /proc.
 *
 *   node test/bench/waiting.mjs [--short] [--items N] [--seconds N]
 */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import sharp from "sharp";
import { ended, newFolder, numberOf, short, start, writeSheet } from "./setup.mjs";
import { usedBy } from "./watched-service.mjs";

const Sqlite = createRequire(import.meta.url)("better-sqlite3");
const items = numberOf("--items", short ? 50 : 10_000);
const seconds = numberOf("--seconds", short ? 1 : 60);
const aim = 0.01;
/** Tasks of the first run, which are done at once. */
const quick = 2;
const tookMs = 1_800_000;
/** After the last submit the run writes down what it did, and polls what it knows nothing of. */
const settleSeconds = short ? 1 : 20;

const picture = await sharp({ create: { width: 18, height: 18, channels: 3, background: "teal" } })
  .png()
  .toBuffer();
let made = 0;
let requests = 0;
const server = createServer(answer);
server.listen(0, "127.0.0.1");
await once(server, "listening");
const url = `http://127.0.0.1:${server.address().port}`;
const folder = newFolder("waiting");
try {
  await measure();
} finally {
  server.closeAllConnections();
  server.close();
}

async function measure() {
  await learn();
  const before = made;
  writeSheet(join(folder, "sheet.csv"), "id,model,prompt", items, (n) => `n-${n},slow-image,picture ${n}`);
  const command = start(folder, url, ["run", "sheet.csv", "--yes", "--quiet", "--lanes", "32"]);
  const exited = once(command, "exit");
  while (made - before < items) {
    await pause(0.2);
    if (command.exitCode !== null) throw new Error(`the run ended with ${command.exitCode}`);
  }
  await pause(settleSeconds);
  const [used, asked, began] = [usedBy(command.pid), requests, performance.now()];
  await pause(seconds);
  const after = usedBy(command.pid);
  const share = (after.cpuMs - used.cpuMs) / (performance.now() - began);
  console.log(
    `${items} tasks open: ${(100 * share).toFixed(2)} % of one core while the run waits, ${requests - asked} requests in ${seconds} s, ${after.megabytes.toFixed(0)} MB at most`,
  );
  if (share > aim) console.error(`waiting: the aim is ${100 * aim} % of a core`);
  command.kill("SIGKILL");
  await exited;
}

/** Makes two items, and takes it that many of their kind have taken half an hour each. */
async function learn() {
  writeFileSync(join(folder, "first.csv"), "id,model,prompt\na,slow-image,a\nb,slow-image,b\n");
  await ended(start(folder, url, ["run", "first.csv", "--yes", "--quiet"]));
  const db = new Sqlite(join(folder, "state/bulkgen/accounts.db"));
  db.prepare("UPDATE durations SET ms = ?").run(tookMs);
  const more = db.prepare(
    "INSERT INTO durations (origin, model, price_group, ms, at) SELECT origin, model, price_group, ms + ?, at FROM durations WHERE id = 1",
  );
  for (let n = 1; n <= 20; n++) more.run(1_000 * n);
  db.close();
}

function pause(time) {
  return new Promise((resolve) => setTimeout(resolve, 1_000 * time));
}

function answer(request, reply) {
  const path = request.url.split("?")[0];
  if (path.startsWith("/files/")) {
    reply.writeHead(200, { "content-type": "image/png", "content-length": picture.length });
    reply.end(picture);
    return;
  }
  requests++;
  request.resume();
  request.once("end", () => {
    const text = JSON.stringify(bodyOf(request.method, path));
    reply.writeHead(200, { "content-type": "application/json" });
    reply.end(text);
  });
}

function bodyOf(method, path) {
  const [model, category] = ["slow-image", "image"];
  const task = path.split("/api/v1/task/")[1];
  const now = Date.now();
  if (task) {
    const isDone = Number(task.slice(-12)) <= quick;
    return {
      ...{
        task_id: task,
        model,
        category,
        status: isDone ? "completed" : "processing",
        input: { prompt: "x" },
      },
      ...{
        output_urls: isDone ? [`${url}/files/${task}.png`] : null,
        error: null,
        credits_consumed: 1,
        created_at: new Date(now - tookMs).toISOString(),
      },
      completed_at: isDone ? new Date(now).toISOString() : null,
    };
  }
  if (method === "POST") {
    made++;
    const number = String(made).padStart(12, "0");
    return {
      ...{
        task_id: `00000000-0000-4000-8000-${number}`,
        external_task_id: `e-${made}`,
        status: "processing",
      },
      ...{ model, category, credits_consumed: 1, credits_remaining: 10_000_000 - made },
    };
  }
  if (path === "/api/v1/models") {
    const only = {
      model_key: model,
      model_name: "Slow",
      category,
      credits_cost: 1,
      input_type: "text",
      parameters: [],
    };
    return { models: [only], categories: { image: [model], video: [], audio: [] }, total: 1 };
  }
  return {
    user: { id: "11111111-1111-4111-8111-111111111111", email: "a@example.com", name: null },
    credits: { balance: 10_000_000 - made, used_this_key: made },
    subscription: {
      ...{ status: "active", plan: "Enterprise", credits_per_month: 10_000_000, billing_interval: "month" },
      ...{ current_period_end: "2099-01-01T00:00:00.000Z", cancel_at_period_end: false },
    },
    api_key: { id: "22222222-2222-4222-8222-222222222222", name: "bench", requests_count: requests },
  };
}
