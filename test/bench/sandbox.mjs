// The sandbox against a bare hono server that answers a constant: requests a second, memory over many requests, and
// how long the event loop is held up while media are made. Both servers run in processes of their own and take turns
// within one run, so that a busy machine slows both alike. Needs the build in dist/.
//
//   node test/bench/sandbox.mjs [--short]
import { fork } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { median, newFolder, short } from "./setup.mjs";

const self = fileURLToPath(import.meta.url);
const connections = 64;
const rounds = short ? 1 : 15;
const requestsARound = short ? 100 : 6_000;
const memoryRequests = short ? 80 : 200_000;
const mediaJobs = short ? 2 : 100;
/** What is made: of every category. */
const jobs = [
  { model: "aurora-image", params: { size: "large" } },
  { model: "voice-clear" },
  { model: "score-music" },
  { model: "reel-text", params: { duration: "2" } },
];

if (process.argv[2] === "serve") await serve(process.argv[3], process.argv[4]);
else await measure();

// --- the servers, each in its own process -------------------------------------------------------------------------

async function serve(which, file) {
  const { url, key } = which === "sandbox" ? await sandbox(file) : await bare();
  const delay = monitorEventLoopDelay({ resolution: 5 });
  process.on("message", (asked) => {
    if (asked === "start delay") delay.enable();
    globalThis.gc?.();
    const { rss, heapUsed } = process.memoryUsage();
    process.send({
      cpu: process.cpuUsage(),
      rss,
      heapUsed,
      p99: delay.percentile(99) / 1e6,
      max: delay.max / 1e6,
    });
  });
  process.send({ url, key });
}

async function sandbox(file) {
  const { serveSandbox } = await import("../../dist/sandbox/serve.js");
  const { systemClock, systemRandom } = await import("../../dist/system.js");
  const options = { file, plan: "Enterprise", credits: 1e9, taskMs: { min: 1, max: 1 } };
  return serveSandbox({ clock: systemClock, random: systemRandom, ...options });
}

async function bare() {
  const [{ serve: listen }, { Hono }] = await Promise.all([import("@hono/node-server"), import("hono")]);
  const app = new Hono();
  const constant = { task_id: "00000000-0000-4000-8000-000000000000", status: "processing" };
  app.post("/api/v1/generate", (context) => context.json(constant));
  app.get("/api/v1/task/:taskId", (context) => context.json(constant));
  return new Promise((resolve) => {
    listen({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) =>
      resolve({ url: `http://127.0.0.1:${port}`, key: "none" }),
    );
  });
}

async function start(which, file = "") {
  const child = fork(self, ["serve", which, file], { execArgv: ["--expose-gc"] });
  const [{ url, key }] = await once(child, "message");
  const ask = async (what) => {
    child.send(what);
    return (await once(child, "message"))[0];
  };
  return { url, key, port: Number(new URL(url).port), ask, stop: () => child.kill() };
}

// --- the caller: as lean as it can be, so that the servers are what is measured ------------------------------------

/** Sends `count` requests over `connections` sockets and resolves with the seconds it took and the last body. */
async function load(port, count, makeRequest) {
  let sent = 0;
  let last = "";
  const begun = performance.now();
  const one = () =>
    new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1");
      socket.setNoDelay(true);
      let text = "";
      const next = () => {
        if (sent++ >= count) return socket.end(resolve);
        socket.write(makeRequest());
      };
      socket.setEncoding("latin1");
      socket.on("connect", next);
      socket.on("error", reject);
      socket.on("data", (chunk) => {
        text += chunk;
        const head = text.indexOf("\r\n\r\n");
        if (head < 0) return;
        const length = Number(/content-length: (\d+)/i.exec(text)?.[1]);
        if (text.length < head + 4 + length) return;
        if (!text.startsWith("HTTP/1.1 200")) return reject(new Error(text));
        last = text.slice(head + 4);
        text = "";
        next();
      });
    });
  await Promise.all(Array.from({ length: Math.min(connections, count) }, one));
  return { seconds: (performance.now() - begun) / 1_000, last };
}

function generate({ key }) {
  const body = JSON.stringify({
    model: "aurora-image",
    prompt: "A lighthouse at dawn",
    params: { style: "dusk" },
  });
  const head = `POST /api/v1/generate HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\n`;
  return () => `${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

function task({ key }, id) {
  return () => `GET /api/v1/task/${id} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\n\r\n`;
}

// --- what is measured ---------------------------------------------------------------------------------------------

async function measure() {
  const served = await start("sandbox", join(newFolder("sandbox"), "state.db"));
  const hono = await start("hono");
  try {
    const { last } = await load(served.port, 1, generate(served));
    const id = JSON.parse(last).task_id;
    await compare("generate", served, hono, (server) => generate(server));
    await compare("task", served, hono, (server) => task(server, id));
    await memory(served, id);
    await media();
  } finally {
    served.stop();
    hono.stop();
  }
}

async function compare(name, served, hono, requestOf) {
  const rates = { sandbox: [], hono: [] };
  const cpu = { sandbox: [], hono: [] };
  for (let round = -1; round < rounds; round++) {
    for (const [which, server] of [
      ["sandbox", served],
      ["hono", hono],
    ]) {
      const before = (await server.ask("facts")).cpu;
      const { seconds } = await load(server.port, requestsARound, requestOf(server));
      const after = (await server.ask("facts")).cpu;
      // The first round warms up.
      if (round < 0) continue;
      rates[which].push(requestsARound / seconds);
      cpu[which].push((after.user + after.system - before.user - before.system) / requestsARound);
    }
  }
  const ratios = rates.sandbox.map((rate, round) => rate / rates.hono[round]);
  console.log(
    `${name}: sandbox ${Math.round(median(rates.sandbox))}/s, bare hono ${Math.round(median(rates.hono))}/s, ` +
      `ratio ${median(ratios).toFixed(2)} (goal 0.50); CPU ${median(cpu.sandbox).toFixed(0)} µs against ` +
      `${median(cpu.hono).toFixed(0)} µs a request`,
  );
}

async function memory(served, id) {
  const steps = 4;
  const sizes = [];
  for (let step = 0; step < steps; step++) {
    await load(served.port, memoryRequests / steps / 2, generate(served));
    await load(served.port, memoryRequests / steps / 2, task(served, id));
    sizes.push(await served.ask("facts"));
  }
  const mebibytes = (bytes) => (bytes / 2 ** 20).toFixed(1);
  const heaps = sizes.map(({ heapUsed }) => mebibytes(heapUsed)).join(" → ");
  const rss = sizes.map(({ rss }) => mebibytes(rss)).join(" → ");
  console.log(
    `memory over ${memoryRequests} requests, by quarters: heap ${heaps} MiB, resident ${rss} MiB (goal flat)`,
  );
}

async function media() {
  const server = await start("sandbox", join(newFolder("media"), "state.db"));
  const headers = { authorization: `Bearer ${server.key}`, "content-type": "application/json" };
  const post = (body) =>
    fetch(`${server.url}/api/v1/generate`, { method: "POST", headers, body: JSON.stringify(body) });
  const ids = [];
  for (let n = 0; n < mediaJobs; n++) {
    const answer = await (
      await post({ ...jobs[n % jobs.length], prompt: `Number ${n} of the bench` })
    ).json();
    ids.push(answer.task_id);
  }
  await server.ask("start delay");
  const begun = performance.now();
  let bytes = 0;
  await Promise.all(
    ids.map(async (id) => {
      const found = await (await fetch(`${server.url}/api/v1/task/${id}`, { headers })).json();
      const file = await fetch(found.output_urls[0]);
      if (file.status !== 200) throw new Error(`${file.status} ${await file.text()}`);
      bytes += (await file.arrayBuffer()).byteLength;
    }),
  );
  const seconds = (performance.now() - begun) / 1_000;
  const { p99, max } = await server.ask("facts");
  console.log(
    `event loop while ${mediaJobs} media are made (${seconds.toFixed(1)} s, ${(bytes / 2 ** 20).toFixed(1)} MiB): ` +
      `p99 ${p99.toFixed(1)} ms, longest ${max.toFixed(1)} ms (goal p99 below 50 ms)`,
  );
  server.stop();
}
