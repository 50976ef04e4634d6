/**
 * Items a second where nothing limits: an unlimited plan, tasks that are done at once, pictures of 1 kB. The whole command
 * (`bulkgen run`, submit, poll, download, archive) against a bare undici loop with the same three requests that keeps
 * nothing, and against a plain script: p-queue, three commits an item with `synchronous=FULL`, one file with its sync. All
 * run in processes of their own and take turns; the service is a process too. Needs the build in dist/. `--bullmq` adds
 * the script's work as jobs of BullMQ, its Redis writing its log every second and at every change; it needs `redis-server`
 * on the PATH and BullMQ (`npm install --no-save bullmq ioredis`), which nothing else here uses.
 *
 *   node test/bench/throughput.mjs [--short] [--items N] [--lanes N] [--service-us N] [--bullmq]
 */
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ended, median, newFolder, numberOf, short, start, startService, writePictures } from "./setup.mjs";

const self = fileURLToPath(import.meta.url);
const items = numberOf("--items", short ? 50 : 3_000);
const lanes = numberOf("--lanes", 32);
/** Processor time of the service for each request (µs): it is nobody's service that takes none. */
const requestUs = numberOf("--service-us", 0);
const key = `svc_${"b".repeat(32)}`;

const withBullmq = process.argv.includes("--bullmq");
/** Redis's `appendfsync`: how often its log of changes reaches the disk. */
const syncs = withBullmq ? ["everysec", "always"] : [];

const titles = {
  bare: "bare undici loop",
  script: "p-queue script",
  bulkgen: "bulkgen run",
  "bullmq-everysec": "BullMQ, a sync every second",
  "bullmq-always": "BullMQ, a sync a change",
};

const roles = { serve, bare, script, bullmq };
const role = roles[process.argv[2]];
if (role) await role(...process.argv.slice(3));
else await measure();

/**
 * A service that accepts everything at once; each task is completed at its first poll, and its file begins after so long.
 * Each request takes it so much processor time.
 */
async function serve(fileMs = "0", requestUs = "0") {
  const { default: sharp } = await import("sharp");
  const noise = Buffer.from(Array.from({ length: 18 * 18 * 3 }, (_, at) => (at * 7_919) % 251));
  const picture = await sharp(noise, { raw: { width: 18, height: 18, channels: 3 } })
    .png()
    .toBuffer();
  const model = {
    model_key: "plain-image",
    model_name: "Plain",
    category: "image",
    credits_cost: 1,
    input_type: "text",
    parameters: [],
  };
  let [made, requests] = [0, 0];
  /** When each task was made, and done. */
  const doneAt = new Map();
  const taskOf = (number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
  const answers = {
    "GET /api/v1/me": () => ({
      user: { id: "11111111-1111-4111-8111-111111111111", email: "a@example.com", name: null },
      credits: { balance: 10_000_000 - made, used_this_key: made },
      subscription: {
        status: "active",
        plan: "Enterprise",
        credits_per_month: 10_000_000,
        billing_interval: "month",
        current_period_end: "2099-01-01T00:00:00.000Z",
        cancel_at_period_end: false,
      },
      api_key: { id: "22222222-2222-4222-8222-222222222222", name: "bench", requests_count: requests },
    }),
    "GET /api/v1/models": () => ({
      models: [model],
      categories: { image: ["plain-image"], video: [], audio: [] },
      total: 1,
    }),
    "POST /api/v1/generate": () => ({
      task_id: begun(taskOf(++made)),
      external_task_id: `e-${made}`,
      status: "processing",
      model: "plain-image",
      category: "image",
      credits_consumed: 1,
      credits_remaining: 10_000_000 - made,
    }),
  };
  const begun = (task) => {
    doneAt.set(task, new Date().toISOString());
    return task;
  };
  const work = () => {
    const until = process.hrtime.bigint() + BigInt(requestUs) * 1_000n;
    while (process.hrtime.bigint() < until);
  };
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, reply) => {
    work();
    const path = request.url.split("?")[0];
    if (path.startsWith("/files/")) {
      const send = () => {
        reply.writeHead(200, { "content-type": "image/png", "content-length": picture.length });
        reply.end(picture);
      };
      if (Number(fileMs) > 0) setTimeout(send, Number(fileMs));
      else send();
      return;
    }
    requests++;
    const task = path.split("/api/v1/task/")[1] ?? path.split("/api/v1/tasks/")[1];
    const answer = task
      ? {
          task_id: task,
          model: "plain-image",
          category: "image",
          status: "completed",
          input: { prompt: "x" },
          output_urls: [`http://127.0.0.1:${server.address().port}/files/${task}/1.png`],
          error: null,
          credits_consumed: 1,
          created_at: doneAt.get(task),
          completed_at: doneAt.get(task),
        }
      : (answers[`${request.method} ${path}`]?.() ?? null);
    request.resume();
    request.once("end", () => {
      const text = JSON.stringify(answer ?? { error: { code: "NOT_FOUND", message: path } });
      reply.writeHead(answer ? 200 : 404, { "content-type": "application/json" });
      reply.end(text);
    });
  });
  server.listen(0, "127.0.0.1", () => process.send(`http://127.0.0.1:${server.address().port}`));
}

/** The three requests of one item; the bytes of its picture. */
async function threeRequests(request, url, prompt) {
  const headers = { "x-api-key": key };
  const post = await request(`${url}/api/v1/generate`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ model: "plain-image", prompt }),
  });
  const { task_id: task } = await post.body.json();
  return {
    task,
    poll: async () => {
      const { body } = await request(`${url}/api/v1/task/${task}`, { headers });
      const { output_urls: urls } = await body.json();
      const file = await request(urls[0]);
      return Buffer.from(await file.body.arrayBuffer());
    },
  };
}

async function bare(url, count) {
  const { request } = await import("undici");
  let left = Number(count);
  const lane = async () => {
    while (left-- > 0) await (await threeRequests(request, url, `picture ${left}`)).poll();
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

async function script(url, count, folder) {
  const [{ request }, { default: PQueue }, { default: Sqlite }] = await Promise.all([
    import("undici"),
    import("p-queue"),
    import("better-sqlite3"),
  ]);
  const db = new Sqlite(join(folder, "state.db"));
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.exec("CREATE TABLE items (id INTEGER PRIMARY KEY, prompt TEXT, state TEXT, task TEXT, file TEXT)");
  const insert = db.prepare("INSERT INTO items (id, prompt, state) VALUES (?, ?, 'submitting')");
  const accepted = db.prepare("UPDATE items SET state = 'processing', task = ? WHERE id = ?");
  const saved = db.prepare("UPDATE items SET state = 'archived', file = ? WHERE id = ?");
  const queue = new PQueue({ concurrency: lanes });
  for (let id = 1; id <= Number(count); id++) {
    queue.add(async () => {
      insert.run(id, `picture ${id}`);
      const { task, poll } = await threeRequests(request, url, `picture ${id}`);
      accepted.run(task, id);
      const path = join(folder, `${id}.png`);
      await save(path, await poll());
      saved.run(path, id);
    });
  }
  await queue.onIdle();
}

async function save(path, bytes) {
  const file = await open(`${path}.part`, "wx");
  await file.write(bytes);
  await file.sync();
  await file.close();
  await rename(`${path}.part`, path);
}

/** The script's work as jobs: the task's id is kept in the job, and what it returns is its file. */
async function bullmq(url, count, folder, socket) {
  const [{ request }, { Queue, Worker }] = await Promise.all([import("undici"), import("bullmq")]);
  const connection = { path: socket, maxRetriesPerRequest: null };
  const queue = new Queue("items", { connection });
  const jobs = Array.from({ length: Number(count) }, (_, at) => ({
    name: "item",
    data: { prompt: `picture ${at}` },
  }));
  while (jobs.length > 0) await queue.addBulk(jobs.splice(0, 1_000));
  const work = async (job) => {
    const { task, poll } = await threeRequests(request, url, job.data.prompt);
    await job.updateData({ ...job.data, task });
    const path = join(folder, `${job.id}.png`);
    await save(path, await poll());
    return path;
  };
  let left = Number(count);
  const worker = new Worker("items", work, { connection, concurrency: lanes });
  await new Promise((resolve, reject) => {
    worker.on("completed", () => --left === 0 && resolve());
    worker.on("failed", (_, error) => reject(error));
  });
  await worker.close();
  await queue.close();
}

/** A Redis of its own for one turn. */
async function withRedis(folder, appendfsync, act) {
  const socket = join(folder, "redis.sock");
  const settings = { port: "0", unixsocket: socket, dir: folder, save: "", appendonly: "yes", appendfsync };
  const words = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const redis = spawn("redis-server", words, { stdio: "ignore" });
  await once(redis, "spawn");
  try {
    while (!existsSync(socket)) await new Promise((resolve) => setTimeout(resolve, 20));
    await act(socket);
  } finally {
    redis.kill();
    await once(redis, "exit");
  }
}

async function measure() {
  const url = await startService("throughput", 0, requestUs);
  const folder = newFolder("throughput");
  const rounds = short ? 1 : 3;
  const rates = {};
  const flags = ["--lanes", `${lanes}`];
  for (let round = 0; round < rounds; round++) {
    const place = (name) => {
      const path = join(folder, `${name}-${round}`);
      mkdirSync(path);
      return path;
    };
    const turns = [
      ["bare", () => ended(fork(self, ["bare", url, `${items}`, ...flags]))],
      ["script", () => ended(fork(self, ["script", url, `${items}`, place("script"), ...flags]))],
      ["bulkgen", () => ours(url, place("bulkgen"))],
      ...syncs.map((sync) => [`bullmq-${sync}`, () => queued(url, place(`bullmq-${sync}`), sync, flags)]),
    ];
    for (const [name, act] of turns) {
      const began = process.hrtime.bigint();
      await act();
      rates[name] ??= [];
      rates[name].push(items / (Number(process.hrtime.bigint() - began) / 1e9));
    }
  }
  const served = requestUs > 0 ? `, ${requestUs} µs a request at the service` : "";
  console.log(
    `${items} items of 1 kB, ${lanes} lanes${served}; items a second by the clock, medians of ${rounds}`,
  );
  const own = median(rates.bulkgen);
  for (const [name, values] of Object.entries(rates)) {
    const rate = median(values);
    const ratio = name === "bulkgen" ? "" : `bulkgen has ${(own / rate).toFixed(3)} of it`;
    console.log(`${titles[name].padEnd(28)} ${rate.toFixed(0).padStart(6)}/s   ${ratio}`.trimEnd());
  }
}

function queued(url, place, sync, flags) {
  return withRedis(place, sync, (socket) =>
    ended(fork(self, ["bullmq", url, `${items}`, place, socket, ...flags])),
  );
}

async function ours(url, place) {
  writePictures(join(place, "sheet.csv"), items);
  const words = [
    "run",
    "sheet.csv",
    "--yes",
    "--quiet",
    "--json",
    "--lanes",
    `${lanes}`,
    "--downloads",
    "16",
  ];
  const log = await open(join(place, "stdout"), "w");
  await ended(start(place, url, words, { node: profiled(), stdout: log.fd }));
  await log.close();
  const { counts } = JSON.parse(readFileSync(join(place, "stdout"), "utf8"));
  if (counts.archived !== items) throw new Error(`archived ${counts.archived} of ${items}`);
}

/** `BENCH_PROFILE=FOLDER` writes a processor profile of the command there. */
function profiled() {
  const folder = process.env.BENCH_PROFILE;
  return folder ? ["--cpu-prof", `--cpu-prof-dir=${folder}`] : [];
}
