/**
 * What `bulkgen serve` costs: processor time for each job of a provider that answers at once, what it adds to the time of a job,
 * and the processor time of thousands of jobs that a slow provider has. The service is a process of its own; client and providers
 * are this one. Needs the build in dist/ and Linux's /proc.
 *
 *   node test/bench/served.mjs [--short] [--jobs N] [--alone N] [--open N] [--seconds N]
 */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as rest } from "node:timers/promises";
import sharp from "sharp";
import { request } from "undici";
import { environmentOf, main, median, newFolder, numberOf, short, start } from "./setup.mjs";
import { usedBy } from "./watched-service.mjs";

const jobs = numberOf("--jobs", short ? 50 : 2_000);
const alone = numberOf("--alone", short ? 10 : 200);
const open = numberOf("--open", short ? 100 : 10_000);
const seconds = numberOf("--seconds", short ? 3 : 60);
const atOnce = 16;
const aims = { jobMs: 5, addedMs: 30, openPercent: 2 };

const picture = await sharp({ create: { width: 64, height: 64, channels: 3, background: "#06c" } })
  .png()
  .toBuffer();
const providers = createServer(answer);
/** Jobs of the slow provider, and how often it was asked for one. */
const slow = { taken: 0, asked: 0 };
providers.listen(0, "127.0.0.1");
await once(providers, "listening");
const upstream = `http://127.0.0.1:${providers.address().port}`;

const folder = newFolder("served");
writeFileSync(
  join(folder, "models.yaml"),
  `providers:
  quick: { kind: http, base_url: "${upstream}", concurrency: ${atOnce} }
  slow: { kind: http, base_url: "${upstream}", concurrency: 100000 }
models:
  - key: quick
    provider: quick
    category: image
    credits: 1
    submit: { post: /quick, body: { text: "{{ prompt }}" }, outputs: "images[]" }
  - key: slow
    provider: slow
    category: image
    credits: 1
    submit: { post: /slow, body: { text: "{{ prompt }}" }, ref: id, poll: "/slow/{{ ref }}" }
    poll: { status: state, running: [working], done: [finished], outputs: "files[].url" }
`,
);
command("trust", "--models", "models.yaml", "--yes");
const { key } = JSON.parse(
  command("serve", "keys", "create", "bench", "--plan", "Enterprise", "--json").stdout.toString(),
);
const service = start(folder, upstream, ["serve", "models.yaml", "--json"], { stdout: "pipe" });
const { url } = JSON.parse((await once(service.stdout, "data")).toString());
const authorization = { authorization: `Bearer ${key}` };
try {
  // A service runs for long: V8 has compiled what is used.
  await many(short ? 2 * atOnce : 500);
  await reportJobs();
  await reportAlone();
  await reportOpen();
} finally {
  service.kill();
  providers.closeAllConnections();
  providers.close();
}

async function reportJobs() {
  const [began, before] = [performance.now(), usedBy(service.pid).cpuMs];
  await many(jobs);
  const ms = (usedBy(service.pid).cpuMs - before) / jobs;
  const rate = (1_000 * jobs) / (performance.now() - began);
  console.log(
    `${jobs} jobs, ${atOnce} at once: ${ms.toFixed(1)} ms of processor time for each (aim: ${aims.jobMs}); ${rate.toFixed(0)} a second`,
  );
}

/** One after the other, in turn with the provider alone. */
async function reportAlone() {
  const [through, direct] = [[], []];
  for (let n = 0; n < alone; n++) {
    direct.push(await timed(() => sent("POST", `${upstream}/quick`, { text: `alone ${n}` })));
    through.push(await timed(() => made("quick", `alone ${n}`)));
  }
  const added = median(through) - median(direct);
  console.log(
    `a job alone takes ${median(through).toFixed(0)} ms, ${added.toFixed(0)} ms more than its provider (aim: ${aims.addedMs})`,
  );
}

async function reportOpen() {
  await inLanes(open, (n) => generated("slow", `slow ${n}`));
  while (slow.taken < open) await rest(100);
  // What the submits have left to be done.
  await rest(short ? 500 : 5_000);
  const [began, before, asked] = [performance.now(), usedBy(service.pid).cpuMs, slow.asked];
  await rest(1_000 * seconds);
  const ms = performance.now() - began;
  const { cpuMs, megabytes } = usedBy(service.pid);
  console.log(
    `${open} open jobs: ${((100 * (cpuMs - before)) / ms).toFixed(2)} % of a core over ${(ms / 1_000).toFixed(0)} s (aim: ${aims.openPercent}), ${((1_000 * (slow.asked - asked)) / ms).toFixed(1)} polls a second, ${megabytes.toFixed(0)} MB at most`,
  );
}

/** What a provider answers: one with a picture at once, the other that it works, for ever. */
async function answer(asked, reply) {
  for await (const _ of asked);
  const say = (body) => reply.setHeader("content-type", "application/json").end(JSON.stringify(body));
  if (asked.url === "/quick") return say({ images: [picture.toString("base64")] });
  if (asked.method === "POST") return say({ id: `job-${++slow.taken}` });
  slow.asked++;
  return say({ state: "working" });
}

function command(...words) {
  const env = environmentOf(folder, upstream);
  const ended = spawnSync(process.execPath, [main, ...words], { cwd: folder, env });
  if (ended.status !== 0) throw new Error(`${words.join(" ")}: ${ended.stderr}`);
  return ended;
}

/** All are asked for, and then each is waited for: most are done by the time that they are polled. */
async function many(count) {
  const ids = [];
  await inLanes(count, async (n) => ids.push(await generated("quick", `many ${n}`)));
  await inLanes(count, (n) => fetched(ids[n], 1_000));
}

async function inLanes(count, work) {
  let next = 0;
  const lane = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
}

async function generated(model, prompt) {
  const { task_id: id } = await sent("POST", `${url}/api/v1/generate`, { model, prompt });
  return id;
}

/** Makes a job and waits for its picture. */
async function made(model, prompt) {
  await fetched(await generated(model, prompt), 5);
}

/** Waits for the picture of a task, and polls it again after so many ms. */
async function fetched(id, pauseMs) {
  for (;;) {
    const task = await sent("GET", `${url}/api/v1/task/${id}`);
    if (task.status === "failed") throw new Error(task.error);
    if (task.status === "completed") return (await request(task.output_urls[0])).body.arrayBuffer();
    await rest(pauseMs);
  }
}

async function sent(method, address, body) {
  const { statusCode, body: said } = await request(address, {
    method,
    headers: { ...authorization, ...(body ? { "content-type": "application/json" } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const text = await said.text();
  if (statusCode !== 200) throw new Error(`${address} answered ${statusCode}: ${text}`);
  return JSON.parse(text);
}

async function timed(work) {
  const began = performance.now();
  await work();
  return performance.now() - began;
}
