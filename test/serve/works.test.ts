import { once } from "node:events";
import { copyFileSync, readdirSync } from "node:fs";
import { createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import sharp from "sharp";
import { expect, test } from "vitest";
import { taskFailureKind } from "../../src/core/failure.js";
import { settleUnknown } from "../../src/serve/works/person.js";
import { ComfyUi, pixel } from "../upstreams/comfyui.js";
import type { OpenAiUpstream } from "../upstreams/openai.js";
import { ReplicateUpstream } from "../upstreams/replicate.js";
import { afterwards, anybody, openAi, Place } from "./place.js";

const workflow = new URL("../providers/workflows/text-to-image.json", import.meta.url);

function pictures(upstream: OpenAiUpstream): string {
  return `
credit: { value: 0.01, currency: USD }
providers:
  vendor: { kind: openai, base_url: "${upstream.url}/v1", key_env: KEY, concurrency: 2, waiting: 3 }
models:
  - key: hero
    provider: vendor
    category: image
    credits: { base: 4, by: { quality: { high: 16 } } }
    params: { quality: [medium, high] }
    request: { model: gpt-image-2, quality: "{{ quality }}" }
`;
}

const program = (words: string, more = "") => `
models:
  - key: draw
    provider: { kind: command, timeout: 10s }
    category: image
    credits: 1
    command: ${words}
${more}`;

test("a job goes to its vendor once, its picture comes back by a signed address, and the price is that of the option", async () => {
  const upstream = await openAi();
  const place = await new Place(pictures(upstream)).open();
  const id = await place.generate({ model: "hero", prompt: "a kite", params: { quality: "high" } });
  const task = await place.finished(id);
  expect(task).toMatchObject({ error: null, status: "completed", credits_consumed: 16 });
  const { status, bytes, headers } = await place.bytes(task);
  expect([status, headers.get("content-type")]).toEqual([200, "image/png"]);
  const part = await place.bytes(task, { range: "bytes=1-3" });
  expect([part.status, part.bytes]).toEqual([206, bytes.subarray(1, 4)]);
  const etag = headers.get("etag") ?? "";
  expect((await place.bytes(task, { range: "bytes=0-0", "if-range": etag })).status).toBe(206);
  expect((await place.bytes(task, { range: "bytes=999999999-" })).status).toBe(416);
  expect(upstream.times("a kite")).toBe(1);
  const { credits } = await place.me();
  expect(credits.used_this_key).toBe(16);
});

test("what the vendor refuses fails, and its credits come back once, however often it is asked for", async () => {
  const upstream = await openAi();
  const place = await new Place(pictures(upstream)).open();
  const { balance } = (await place.me()).credits;
  const id = await place.generate({ model: "hero", prompt: "forbidden things" });
  const task = await place.finished(id);
  expect(task).toMatchObject({ status: "failed", credits_consumed: 0, output_urls: null });
  expect(task.error).toContain("safety system");
  await Promise.all([place.task(id), place.task(id), place.me()]);
  expect((await place.me()).credits).toMatchObject({ balance, used_this_key: 0 });
  expect(upstream.times("forbidden things")).toBe(0);
});

test.each(["drop", "empty", "html", "truncated", "wrong types"] as const)(
  "an answer that is lost (%s) is never told as a failure and never sent again, until a person says what became of it",
  async (after) => {
    const upstream = await openAi();
    const place = await new Place(pictures(upstream)).open();
    upstream.next("submit", { after });
    const id = await place.generate({ model: "hero", prompt: "a kite" });
    await place.until(() => place.stage(id) === "unknown");
    await place.restart();
    await place.until(() => place.clock.now() > Date.UTC(2026, 10, 28, 12, 20), 5_000);
    const task = await place.task(id);
    expect(task).toMatchObject({ status: "processing", output_urls: null });
    expect(task.note).toContain("The provider's answer was lost");
    expect(upstream.times("a kite")).toBe(1);
    // Others go on meanwhile.
    expect(await place.finished(await place.generate({ model: "hero", prompt: "a boat" }))).toMatchObject({
      status: "completed",
    });
    expect(settleUnknown(place.service, id, { kind: "failed" }, place.clock.now())).toBeNull();
    expect(await place.finished(id)).toMatchObject({ status: "failed", credits_consumed: 0 });
    expect(settleUnknown(place.service, id, { kind: "again" }, place.clock.now())).toContain(
      "is not in doubt: it is decided",
    );
  },
);

test("a person may have an unknown job sent again", async () => {
  const upstream = await openAi();
  const place = await new Place(pictures(upstream)).open();
  upstream.next("submit", { after: "drop" });
  const id = await place.generate({ model: "hero", prompt: "a kite" });
  await place.until(() => place.stage(id) === "unknown");
  expect(settleUnknown(place.service, id, { kind: "again" }, place.clock.now())).toBeNull();
  expect(await place.finished(id)).toMatchObject({ status: "completed" });
  expect(upstream.times("a kite")).toBe(2);
});

test("a job that a person has found is followed by its name where the provider can be asked; else it is in doubt again", async () => {
  const upstream = await new ReplicateUpstream().start();
  afterwards(() => upstream.stop());
  const { key } = upstream as unknown as { key: string };
  const models = `
providers: { vendor: { kind: replicate, base_url: "${upstream.url}", key_env: KEY } }
models:
  - { key: clip, provider: vendor, category: image, credits: 5, request: { model: acme/painter } }
`;
  const place = await new Place(models, { env: { KEY: key } }).open();
  upstream.next("submit", { after: "drop" });
  upstream.next("list", ...Array.from({ length: 500 }, () => ({ status: 503 })));
  const id = await place.generate({ model: "clip", prompt: "a kite" });
  await place.until(() => place.stage(id) === "unknown");
  const found = { kind: "found", ref: upstream.books[0]?.id ?? "" } as const;
  expect(settleUnknown(place.service, id, found, place.clock.now())).toBeNull();
  expect(await place.finished(id)).toMatchObject({ status: "completed" });
  expect(upstream.times("a kite")).toBe(1);

  const vendor = await openAi();
  const other = await new Place(pictures(vendor)).open();
  vendor.next("submit", { after: "drop" });
  const lost = await other.generate({ model: "hero", prompt: "a boat" });
  await other.until(() => other.stage(lost) === "unknown");
  expect(settleUnknown(other.service, lost, { kind: "found", ref: "x" }, other.clock.now())).toBeNull();
  await other.until(async () =>
    String((await other.task(lost)).note).includes("cannot be followed by the name x"),
  );
  expect(settleUnknown(other.service, lost, { kind: "failed" }, other.clock.now())).toBeNull();
  expect(vendor.times("a boat")).toBe(1);
});

test("a vendor that says later is waited for, and the job is sent once in the end", async () => {
  const upstream = await openAi();
  const place = await new Place(pictures(upstream)).open();
  upstream.next("submit", { status: 429, retryAfter: "20" }, { status: 429, retryAfter: "20" });
  const began = place.clock.now();
  const id = await place.generate({ model: "hero", prompt: "a kite" });
  expect(await place.finished(id)).toMatchObject({ status: "completed" });
  expect(place.clock.now() - began).toBeGreaterThanOrEqual(40_000);
  expect(upstream.times("a kite")).toBe(1);
});

test("a repeated Idempotency-Key gets the same task; another request with it is refused", async () => {
  const upstream = await openAi();
  const place = await new Place(pictures(upstream)).open();
  const body = { model: "hero", prompt: "a kite" };
  const once = { "idempotency-key": "attempt-1" };
  const all = await Promise.all([1, 2, 3].map(() => place.generate(body, once)));
  expect(new Set(all).size).toBe(1);
  expect(await place.generate(body, { "idempotency-key": "attempt-2" })).not.toBe(all[0]);
  const other = await place.call("POST", "/api/v1/generate", { ...body, prompt: "a boat" }, once);
  expect([other.status, other.body.error.code]).toEqual([409, "IDEMPOTENCY_KEY_REUSED"]);
  await place.finished(all[0] ?? "");
  await place.restart();
  expect(await place.generate(body, once)).toBe(all[0]);
  expect((await place.me()).credits.used_this_key).toBe(8);
  place.clock.advance(8 * 24 * 3_600_000);
  expect(await place.generate(body, once)).not.toBe(all[0]);
});

test("a model whose queue is full is refused alone, and says how many are before a task", async () => {
  const upstream = await openAi();
  const place = await new Place(
    pictures(upstream) +
      `
  - { key: draw, provider: { kind: command }, category: image, command: ["true", "--", "{{ prompt }}"] }
`,
  ).open();
  const asked = [upstream.hang()];
  const ids = [await place.generate({ model: "hero", prompt: "0" })];
  await asked[0];
  asked.push(upstream.hang());
  ids.push(await place.generate({ model: "hero", prompt: "1" }));
  await asked[1];
  for (let number = 2; number < 5; number++)
    ids.push(await place.generate({ model: "hero", prompt: `${number}` }));
  const full = await place.call("POST", "/api/v1/generate", { model: "hero", prompt: "5" });
  expect([full.status, full.body.error]).toMatchObject([429, { code: "RATE_LIMITED", scope: "model" }]);
  expect((await place.task(ids[4] ?? "")).queue).toMatchObject({ position: 2 });
  expect((await place.task(ids[0] ?? "")).queue).toBeUndefined();
  // The other model is not held up.
  expect(await place.finished(await place.generate({ model: "draw", prompt: "x" }))).toMatchObject({
    status: "failed",
    error: expect.stringContaining("without a file"),
  });
  place.clock.advance(10 * 60_000);
});

test("jobs of ComfyUI survive the end of the service at every stage, and are made once", async () => {
  const upstream = await new ComfyUi().listen();
  afterwards(() => upstream.stop());
  const place = new Place(`
providers: { house: { kind: comfyui, base_url: "${upstream.address}", concurrency: 1 } }
models:
  - { key: style, provider: house, category: image, credits: 1, params: { seed: number }, workflow: flow.json, bind: { prompt: 6.text, seed: 3.seed } }
`);
  copyFileSync(workflow, join(place.folder, "flow.json"));
  await place.open();
  upstream.holds = true;
  const accepted = await place.generate({ model: "style", prompt: "a kite" });
  const queued = await place.generate({ model: "style", prompt: "a boat" });
  await place.until(() => place.stage(accepted) === "accepted");
  expect(place.stage(queued)).toBe("queued");
  await place.restart();
  expect((await place.task(queued)).queue).toMatchObject({ position: 0 });
  upstream.start();
  upstream.finish();
  expect(await place.finished(accepted)).toMatchObject({ status: "completed" });
  await place.until(() => place.stage(queued) === "accepted");
  upstream.start();
  upstream.finish();
  upstream.holds = false;
  expect(await place.finished(queued)).toMatchObject({ status: "completed" });
  // The answer of the third is lost; the machine has it.
  upstream.trouble["POST /prompt"] = "drop";
  upstream.trouble["GET /history"] = 503;
  const lost = await place.generate({ model: "style", prompt: "a ship" });
  await place.until(() => place.stage(lost) === "unknown");
  expect((await place.task(lost)).note).toContain("being asked whether it has the job");
  await place.restart();
  delete upstream.trouble["POST /prompt"];
  delete upstream.trouble["GET /history"];
  expect(await place.finished(lost)).toMatchObject({ status: "completed" });
  expect(upstream.ledger).toHaveLength(3);
});

test("several machines of one provider work side by side, each on as many as it takes", async () => {
  const machines = [await new ComfyUi().listen(), await new ComfyUi().listen()];
  for (const machine of machines) {
    afterwards(() => machine.stop());
    machine.holds = true;
  }
  const place = new Place(`
providers: { house: { kind: comfyui, base_url: ["${machines[0]?.address}", "${machines[1]?.address}"] } }
models:
  - { key: style, provider: house, category: image, params: { seed: number }, workflow: flow.json, bind: { prompt: 6.text, seed: 3.seed } }
`);
  copyFileSync(workflow, join(place.folder, "flow.json"));
  await place.open();
  const ids: string[] = [];
  for (const prompt of ["a", "b", "c"]) ids.push(await place.generate({ model: "style", prompt }));
  await place.until(() => ids.slice(0, 2).every((id) => place.stage(id) === "accepted"));
  expect(place.stage(ids[2] ?? "")).toBe("queued");
  for (const machine of machines) machine.start();
  for (const machine of machines) machine.finish();
  expect(machines.map(({ ledger }) => ledger.length)).toEqual([1, 1]);
  for (const id of ids.slice(0, 2)) expect(await place.finished(id)).toMatchObject({ status: "completed" });
});

test("a provider that is followed by polls may fail to answer for a while; its late success is delivered and charged once", async () => {
  const upstream = await new ReplicateUpstream().start();
  afterwards(() => upstream.stop());
  const place = await new Place(
    `
providers: { vendor: { kind: replicate, base_url: "${upstream.url}", key_env: KEY } }
models:
  - { key: clip, provider: vendor, category: image, credits: 5, request: { model: acme/painter } }
`,
    { env: { KEY: (upstream as unknown as { key: string }).key } },
  ).open();
  upstream.polls = 3;
  upstream.next("poll", { status: 503 }, { status: 503 }, { after: "empty" }, { after: "html" });
  const id = await place.generate({ model: "clip", prompt: "a kite" });
  expect(await place.finished(id)).toMatchObject({ status: "completed", credits_consumed: 5 });
  expect(upstream.times("a kite")).toBe(1);
});

test("a program that is interrupted by the end of the service runs again, and one that takes too long fails", async () => {
  const place = await new Place(
    program(`[sh, -c, 'cp in.png "$0.png"; sleep 60', "{{ out }}", "--", "{{ prompt }}"]`),
  ).open();
  const id = await place.generate({ model: "draw", prompt: "a kite" });
  await place.until(() => place.stage(id) === "submitting");
  await place.close();
  place.rewrite(program(`["true", "--", "{{ prompt }}"]`));
  await place.open();
  // The job is the one that was taken then, whatever the file says now.
  const task = await place.finished(id);
  expect(task).toMatchObject({ status: "failed", error: expect.stringContaining("longer than 10 s") });
});

test("a broken models file leaves the old one in force; a good one is used at once", async () => {
  const place = await new Place(program(`["true", "--", "{{ prompt }}"]`)).open();
  const keys = async () => (await place.call("GET", "/api/v1/models")).body.categories.image;
  place.rewrite("models: [{ key: draw }]");
  await place.until(() => place.notes.some((note) => note.includes("stay in force")), 500);
  expect(await keys()).toEqual(["draw"]);
  place.rewrite(program(`["true", "--", "{{ prompt }}"]`).replace("key: draw", "key: sketch"));
  await place.until(async () => (await keys())[0] === "sketch", 500);
});

test.each([
  [
    "[sh, -c, 'echo no input, no params >&2; exit 3', --, '{{ prompt }}']",
    "the program failed with exit code 3",
  ],
  ["[sh, -c, 'exec sleep 600', --, '{{ prompt }}']", "the program took longer than 10 s"],
  ["[sh, -c, 'exit 0', --, '{{ prompt }}']", "the program ended without a file"],
])("%s is a failure of the provider, for clients and for whoever keeps the service", async (words, why) => {
  const place = await new Place(program(words)).open();
  const failed: string[] = [];
  place.service.onFailed = (task, error) => failed.push(`${task.id}: ${error}`);
  const id = await place.generate({ model: "draw", prompt: "x" });
  const { error } = await place.finished(id);
  expect(error).toContain(`The provider failed: ${why}`);
  expect(taskFailureKind(error)).toBe("provider");
  await place.until(() => failed.length > 0);
  expect(failed).toEqual([`${id}: ${error}`]);
});

test("budgets hold when 200 come at once", async () => {
  const upstream = await openAi();
  const place = await new Place(pictures(upstream).replace("waiting: 3", "waiting: 1000")).open();
  place.key = place.service.keys.create(
    { ...anybody, name: "ada", perMonth: 41, perDay: 30 },
    place.clock.now(),
  );
  const all = await Promise.all(
    Array.from({ length: 200 }, (_, number) =>
      place.call("POST", "/api/v1/generate", { model: "hero", prompt: `kite ${number}` }),
    ),
  );
  const taken = all.filter(({ status }) => status === 200);
  expect(taken).toHaveLength(7);
  const refused = all.find(({ status }) => status === 402);
  expect(refused?.body.error).toMatchObject({ code: "INSUFFICIENT_CREDITS" });
  expect(refused?.body.error.message).toContain("30 credits a day");
  expect((await place.me()).credits.balance).toBe(2);
  for (const { body } of taken) await place.finished(body.task_id);
  place.clock.advance(24 * 3_600_000);
  expect((await place.me()).credits.balance).toBe(13);
});

test("an upload is an input for its own account alone, and no address of a private network is read", async () => {
  const place = await new Place(program(`[cp, "{{ image }}", "{{ out }}.png"]`, "    input: image\n")).open();
  const { pixel } = await import("../upstreams/comfyui.js");
  const put = await place.call("PUT", "/api/v1/inputs", pixel, { "content-type": "image/png" });
  expect(put.status).toBe(200);
  const id = await place.generate({ model: "draw", image_url: put.body.url });
  const made = await place.finished(id);
  expect(made).toMatchObject({ status: "completed" });
  expect((await place.bytes(made)).bytes).toEqual(pixel);
  // An output is an input too.
  const again = await place.generate({ model: "draw", image_url: made.output_urls[0] });
  expect(await place.finished(again)).toMatchObject({ status: "completed" });
  const ada = place.key;
  place.key = place.service.keys.create({ ...anybody, name: "eve" }, place.clock.now());
  const stolen = await place.generate({ model: "draw", image_url: put.body.url });
  expect(await place.finished(stolen)).toMatchObject({
    status: "failed",
    error: "The input is no upload of this key.",
  });
  expect((await place.call("GET", `/api/v1/task/${id}`)).status).toBe(404);
  place.key = ada;
  for (const address of [
    "http://127.0.0.1:9/x.png",
    "https://127.0.0.1/x.png",
    "https://169.254.169.254/latest",
    "https://[::1]/x.png",
    "https://10.0.0.1/x.png",
    "file:///etc/passwd",
    "in.png",
    "https://user:secret@example.com/x.png",
  ]) {
    const answer = await place.call("POST", "/api/v1/generate", { model: "draw", image_url: address });
    expect([address, answer.status]).toEqual([address, 400]);
  }
});

test("a job that waits is cancelled at once, and its credits come back", async () => {
  const upstream = await openAi();
  const place = await new Place(pictures(upstream).replace("concurrency: 2", "concurrency: 1")).open();
  const asked = upstream.hang();
  await place.generate({ model: "hero", prompt: "0" });
  await asked;
  const id = await place.generate({ model: "hero", prompt: "1" });
  const answer = await place.call("POST", `/api/v1/task/${id}/cancel`);
  expect(answer.body).toEqual({ task_id: id, result: "cancelled" });
  expect(await place.task(id)).toMatchObject({
    status: "failed",
    error: "It was cancelled.",
    credits_consumed: 0,
  });
  expect((await place.call("POST", `/api/v1/task/${id}/cancel`)).body.result).toBe("too_late");
  expect((await place.me()).credits.used_this_key).toBe(4);
  place.clock.advance(10 * 60_000);
});

test("outputs are cleaned up after their time; the books stay", async () => {
  const upstream = await openAi();
  const place = await new Place(pictures(upstream)).open();
  const id = await place.generate({ model: "hero", prompt: "a kite" });
  await place.finished(id);
  place.clock.advance(8 * 24 * 3_600_000);
  await place.until(async () => (await place.bytes(await place.task(id))).status === 410, 60_000);
  expect((await place.task(id)).credits_consumed).toBe(4);
});

test("behind a proxy it answers under the proxy's name and under loopback names, and under no other", async () => {
  const place = await new Place(program('[cp, --, "{{ prompt }}", "{{ out }}"]'), {
    publicUrl: "https://models.example.com:8443/",
  }).open();
  expect(place.url).toBe("https://models.example.com:8443");
  const statusUnder = (host: string) =>
    new Promise((resolve, reject) => {
      const headers = { host, authorization: `Bearer ${place.key}` };
      get(`${place.ownUrl}/api/v1/me`, { headers }, (answer) => resolve(answer.resume().statusCode)).on(
        "error",
        reject,
      );
    });
  const hosts = [
    "models.example.com:8443",
    "models.example.com",
    "127.0.0.1",
    "localhost:1",
    "evil.example.com",
  ];
  expect(await Promise.all(hosts.map(statusUnder))).toEqual([200, 200, 200, 200, 421]);
});

test.each([
  ["a picture", [pixel], { status: "completed", credits_consumed: 2 }],
  ["two pictures", [pixel, pixel], { status: "completed", credits_consumed: 2 }],
  [
    "half of a picture",
    [pixel.subarray(0, 45)],
    { status: "failed", error: "The provider's picture is broken." },
  ],
  [
    "no picture",
    [Buffer.from("nothing")],
    { status: "failed", error: "The provider's answer is of no known kind, not image." },
  ],
  [
    "a picture and half of one",
    [pixel, pixel.subarray(0, 45)],
    { status: "failed", error: "The provider's picture is broken." },
  ],
])("%s in an answer is checked and delivered, or fails and costs nothing", async (_, images, ends) => {
  const answered = { images: images.map((image) => `data:image/png;base64,${image.toString("base64")}`) };
  const upstream = createServer((_, reply) =>
    reply.setHeader("content-type", "application/json").end(JSON.stringify(answered)),
  ).listen(0, "127.0.0.1");
  await once(upstream, "listening");
  afterwards(() => upstream.close());
  const { port } = upstream.address() as AddressInfo;
  const place = await new Place(`
providers: { vendor: { kind: http, base_url: "http://127.0.0.1:${port}" } }
models:
  - { key: hero, provider: vendor, category: image, credits: 2, submit: { post: /images, body: { text: "{{ prompt }}" }, outputs: "images[]" } }
`).open();
  const before = (await place.me()).credits.balance;
  const task = await place.finished(await place.generate({ model: "hero", prompt: "a kite" }));
  expect(task).toMatchObject(ends);
  expect((await place.me()).credits.balance).toBe(before - task.credits_consumed);
  if (task.status !== "completed") return;
  expect(task.output_urls).toHaveLength(images.length);
  expect((await place.bytes(task)).bytes).toEqual(pixel);
});

/** A vendor of jobs whose answers to a poll are these, in turn; the last one stays. */
async function vendorOf(...polls: unknown[]) {
  const made: string[] = [];
  let polled = 0;
  const server = createServer(async (request, response) => {
    const body = await text(request);
    if (request.method === "POST") made.push((JSON.parse(body) as { p: string }).p);
    const answer = () => polls[Math.min(polled++, polls.length - 1)];
    const said = request.method === "POST" ? { id: `j${made.length}` } : answer();
    if (request.url?.endsWith(".png")) response.end(pixel);
    else response.end(JSON.stringify(said));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  afterwards(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const models = (failed = "[failed]") => `
providers: { vendor: { kind: http, base_url: "${url}" } }
models:
  - key: pic
    provider: vendor
    category: image
    credits: 3
    submit: { post: /jobs, body: { p: "{{ prompt }}" }, poll: "/jobs/{{ ref }}" }
    poll: { running: [running], done: [done], failed: ${failed}, outputs: files, error: error }
`;
  return { url, made, models };
}

test("a job whose vendor says what no rule knows gives up its place after a while, and a corrected file ends it", async () => {
  const vendor = await vendorOf({ status: "expired" });
  const place = await new Place(vendor.models()).open();
  const [id, next] = [
    await place.generate({ model: "pic", prompt: "a kite" }),
    await place.generate({ model: "pic", prompt: "a boat" }),
  ];
  await place.until(async () => String((await place.task(id)).note).includes("is not understood"));
  await place.until(() => place.stage(id) === "unknown", 5_000);
  expect((await place.task(id)).note).toContain('says "expired", which no word of the description means');
  await place.until(() => vendor.made.length === 2);
  place.rewrite(vendor.models("[failed, expired]"));
  await place.until(() => place.notes.some((note) => note.includes("was read again")));
  expect(settleUnknown(place.service, id, { kind: "found", ref: "j1" }, place.clock.now())).toBeNull();
  await place.until(async () => (await place.task(id)).status === "failed", 5_000);
  expect(vendor.made).toEqual(["a kite", "a boat"]);
  await place.until(() => place.stage(next) === "unknown", 5_000);
});

test.each([
  ["files at a path of the vendor", [{ status: "done", files: ["/made/1.png"] }], { status: "completed" }],
  ["a failure whose reason is no text", [{ status: "failed", error: { a: [1] } }], { status: "failed" }],
  [
    "an odd answer in between",
    [{ status: 7 }, [], { status: "done", files: ["/1.png"] }],
    { status: "completed" },
  ],
] as const)("a vendor's answer is understood: %s", async (_, polls, expected) => {
  const vendor = await vendorOf(...polls);
  const place = await new Place(vendor.models()).open();
  const id = await place.generate({ model: "pic", prompt: "a kite" });
  expect(await place.finished(id)).toMatchObject(expected);
});

test("an input that has changed at its address is fetched anew for the next job", async () => {
  const upstream = await openAi();
  let bytes = await sharp({ create: { width: 8, height: 8, channels: 3, background: "red" } })
    .png()
    .toBuffer();
  const server = createServer((_, response) => response.end(bytes)).listen(0, "127.0.0.1");
  await once(server, "listening");
  afterwards(() => server.close());
  const models = `inputs: { allow: ["127.0.0.1"] }\n${pictures(upstream).replace("category: image", "category: image\n    input: text+image")}`;
  const place = await new Place(models).open();
  const image_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/cup.png`;
  const sent = async (prompt: string) => {
    const id = await place.generate({ model: "hero", prompt, image_url });
    expect(await place.finished(id)).toMatchObject({ status: "completed" });
    return upstream.asked.findLast(({ method }) => method === "POST")?.body.includes(bytes);
  };
  expect(await sent("one")).toBe(true);
  bytes = await sharp({ create: { width: 8, height: 8, channels: 3, background: "blue" } })
    .png()
    .toBuffer();
  expect(await sent("two")).toBe(true);
  await place.until(() => readdirSync(join(place.folder, "state", "inputs")).length === 0);
});
