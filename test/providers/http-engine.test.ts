import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { httpKinds } from "../../src/providers/http/kinds.js";
import type { JsonObject, ModelSettings, ProviderSettings } from "../../src/providers/provider.js";
import { retryAfterMs } from "../../src/providers/send.js";
import { png } from "../upstreams/upstream.js";
import {
  finished,
  jobOf,
  kindNamed,
  never,
  openKind,
  outcomeOf,
  pictureIn,
  settingsOf,
} from "./http-kinds.js";

let folder = "";
const open: (() => void | Promise<void>)[] = [];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "bulkgen-http-"));
});
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Seen {
  method: string;
  path: string;
  headers: NodeJS.Dict<string | string[]>;
  body: string;
}
type Said = { status?: number; headers?: Record<string, string>; body?: unknown };

/** A server that says what it is told to, one answer after the other and the last one for ever. */
async function serverThat(...answers: Said[]) {
  const seen: Seen[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    seen.push({ method: request.method ?? "", path: request.url ?? "", headers: request.headers, body });
    const said = answers[Math.min(seen.length, answers.length) - 1] ?? {};
    response.writeHead(said.status ?? 200, { "content-type": "application/json", ...said.headers });
    response.end(Buffer.isBuffer(said.body) ? said.body : JSON.stringify(said.body ?? {}));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  open.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { seen, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

function provider(url: string, over: Partial<ProviderSettings> & { key?: string | null } = {}) {
  const opened = openKind("http", { key: "secret-key", addresses: [url], folder, ...over });
  open.push(() => opened.provider.close?.());
  return opened;
}

const model = { category: "image", request: {} } as const;

function described(details: JsonObject, prompt = "a red fox", more: Parameters<typeof jobOf>[2] = {}) {
  return jobOf(model, prompt, { ...more, details });
}

const answered = { body: { images: [png.toString("base64")] } };
const atOnce = { post: "/make", outputs: "images[]" };

describe("a body", () => {
  async function sent(body: JsonObject, more: Parameters<typeof jobOf>[2] = {}, request: JsonObject = {}) {
    const { seen, url } = await serverThat(answered);
    const job = described({ submit: { ...atOnce, body }, request }, "a red fox", more);
    await finished(provider(url).provider, job);
    return JSON.parse(seen[0]?.body ?? "null") as JsonObject;
  }

  it("has text where the description has text, and numbers where it wants numbers", async () => {
    const params = { seed: "7", fast: "true", duration: "5", steps: "" };
    const body = {
      a: "{{ seed }}",
      b: { number: "{{ seed }}" },
      c: { boolean: "{{ fast }}" },
      d: "{{ duration }} s",
      e: 3,
      f: null,
      g: { number: "{{ steps }}" },
    };
    expect(await sent(body, { params })).toEqual({ a: "7", b: 7, c: true, d: "5 s", e: 3, f: null });
  });

  it("leaves out what is nothing but a name without a value, with what contains nothing else", async () => {
    const body = {
      a: "{{ nothing }}",
      b: { c: "{{ nothing }}", d: [{ e: "{{ nothing }}" }] },
      f: ["{{ nothing }}", "x"],
      g: {},
      h: "-{{ nothing }}",
    };
    expect(await sent(body)).toEqual({ f: ["x"], g: {}, h: "-" });
  });

  it("maps the values of a parameter", async () => {
    const size = { from: "ratio", map: { "1:1": [1024, 1024], "16:9": "wide" } };
    const params = { ratio: "1:1", other: "9:16" };
    expect(
      await sent({ size, other: { from: "other", map: {} }, none: { from: "none", map: {} } }, { params }),
    ).toEqual({
      size: [1024, 1024],
      other: "9:16",
    });
  });

  it("keeps a prompt that looks like a template as it is", async () => {
    const { seen, url } = await serverThat(answered);
    const prompt = 'a "fox" {{ key }} {% if x %}\n\\';
    await finished(
      provider(url).provider,
      described({ submit: { ...atOnce, body: { prompt: "{{ prompt }}", in: "<{{ prompt }}>" } } }, prompt),
    );
    expect(JSON.parse(seen[0]?.body ?? "")).toEqual({ prompt, in: `<${prompt}>` });
  });

  it("never contains the key", async () => {
    expect(await sent({ a: "x{{ key }}" })).toEqual({ a: "x" });
  });

  it("proposes the prompt and inputs where the request does not name them", async () => {
    const image = pictureIn(folder, "https://example.com/a.png");
    const body = { prompt: "{{ prompt }}", input: { image_url: "{{ image }}", n: 1 } };
    expect(await sent(body, { media: { image } })).toEqual({
      prompt: "a red fox",
      input: { image_url: "https://example.com/a.png", n: 1 },
    });
    expect(
      await sent(body, { media: { image } }, { text: "{{ prompt }}", input: { photo: "{{ image }}", n: 2 } }),
    ).toEqual({
      text: "a red fox",
      input: { photo: "https://example.com/a.png", n: 2 },
    });
  });

  it("has an input as an address, or as a data: address where there is none", async () => {
    const image = pictureIn(folder);
    const base64 = image.bytes.toString("base64");
    const body = { a: "{{ image }}", b: "{{ image_base64 }}", c: "{{ image_type }}" };
    expect(await sent(body, { media: { image } })).toEqual({
      a: `data:image/png;base64,${base64}`,
      b: base64,
      c: "image/png",
    });
  });

  it("can be a form", async () => {
    const { seen, url } = await serverThat(answered);
    const image = pictureIn(folder);
    const form = {
      prompt: "{{ prompt }}",
      image: { file: "image" },
      mask: { file: "video" },
      extra: { a: 1 },
      n: 2,
      off: "{{ nothing }}",
    };
    await finished(
      provider(url).provider,
      described({ submit: { ...atOnce, form } }, "a red fox", { media: { image } }),
    );
    const type = String(seen[0]?.headers["content-type"]);
    const sent = await new Response(seen[0]?.body ?? "", { headers: { "content-type": type } }).formData();
    expect([...sent.keys()]).toEqual(["prompt", "image", "extra", "n"]);
    expect(sent.get("extra")).toBe('{"a":1}');
    expect((sent.get("image") as File).type).toBe("image/png");
  });

  it("is not sent when a value is no number, or an input cannot be read; no path is told", async () => {
    const { seen, url } = await serverThat(answered);
    const wrong = described({ submit: { ...atOnce, body: { seed: { number: "{{ seed }}" } } } }, "x", {
      params: { seed: "ten" },
    });
    expect(await outcomeOf(provider(url).provider.submit(wrong, never))).toMatchObject({
      outcome: "refused: parameter",
      message: 'seed must be a number, not "ten"',
    });
    const image = { path: join(folder, "gone.png"), type: "image/png", address: null };
    const gone = described({ submit: { ...atOnce, body: { image: "{{ image }}" } } }, "x", {
      media: { image },
    });
    const { outcome, message } = await outcomeOf(provider(url).provider.submit(gone, never));
    expect({ outcome, message }).toEqual({
      outcome: "refused: input",
      message: "the image cannot be read (ENOENT)",
    });
    expect(seen).toEqual([]);
  });
});

describe("an address", () => {
  it("keeps a value inside its path", async () => {
    const { seen, url } = await serverThat(answered);
    const submit = { ...atOnce, post: "/v1/{{ voice }}/make?size={{ size }}" };
    const params = { voice: "a b/c?d#e", size: "1&x=2" };
    await finished(provider(url).provider, described({ submit }, "x", { params }));
    expect(seen[0]?.path).toBe("/v1/a%20b/c%3Fd%23e/make?size=1%26x%3D2");
    const up = described({ submit }, "x", { params: { voice: "../../account", size: "" } });
    expect((await outcomeOf(provider(url).provider.submit(up, never))).outcome).toBe("refused: parameter");
    expect(seen).toHaveLength(1);
  });

  it("may be a whole one, without a base URL", async () => {
    const { seen, url } = await serverThat(answered);
    const opened = provider(url, { addresses: [] });
    await finished(opened.provider, described({ submit: { ...atOnce, post: `${url}/v2/make` } }));
    expect(seen[0]?.path).toBe("/v2/make");
    const { outcome, message } = await outcomeOf(
      opened.provider.submit(described({ submit: atOnce }), never),
    );
    expect({ outcome, message }).toEqual({
      outcome: "refused: provider",
      message: "the provider studio has no base_url",
    });
  });
});

describe("an answer", () => {
  const at = async (said: Said, submit: JsonObject = atOnce) => {
    const { url } = await serverThat(said);
    return outcomeOf(provider(url).provider.submit(described({ submit }), never));
  };

  it("contains files as addresses, data: addresses or base64, or is one", async () => {
    const base64 = png.toString("base64");
    const images = [
      "https://example.com/a.png",
      `data:image/png;base64,${base64}`,
      base64.replace(/(.{20})/g, "$1\n"),
      "data:text/plain,a%20b",
    ];
    expect((await at({ body: { images } })).value.outputs).toEqual([
      { url: "https://example.com/a.png" },
      { bytes: png },
      { bytes: png },
      { bytes: Buffer.from("a b") },
    ]);
    expect((await at({ body: png, headers: { "content-type": "image/png" } })).value.outputs).toEqual([
      { bytes: png },
    ]);
  });

  it("may be compressed although nobody asked for it", async () => {
    const body = gzipSync(JSON.stringify(answered.body));
    expect((await at({ body, headers: { "content-encoding": "gzip" } })).outcome).toBe("done");
    const half = body.subarray(0, body.length / 2);
    expect((await at({ body: half, headers: { "content-encoding": "gzip" } })).outcome).toBe("unknown");
  });

  it.each([
    ["numbers for addresses", { images: [1] }],
    ["text that is no base64", { images: ["not base64!"] }],
    ["an address that is none", { images: ["https://"] }],
    ["one good file and one odd thing", { images: [png.toString("base64"), {}] }],
  ])("is an unknown outcome with %s", async (_, body) => {
    expect((await at({ body })).outcome).toBe("unknown");
  });

  it.each([
    [301, "refused: provider"],
    [303, "unknown"],
    [308, "refused: provider"],
    [400, "refused: parameter"],
    [401, "refused: provider"],
    [402, "refused: provider"],
    [404, "refused: provider"],
    [408, "unknown"],
    [409, "unknown"],
    [413, "refused: input"],
    [425, "unknown"],
    [429, "later: provider"],
    [499, "unknown"],
    [500, "unknown"],
    [503, "unknown"],
  ])("with status %i is %s unless the description knows better", async (status, outcome) => {
    const { seen, url } = await serverThat({
      status,
      headers: { location: "/elsewhere" },
      body: { error: "so it is" },
    });
    const said = await outcomeOf(provider(url).provider.submit(described({ submit: atOnce }), never));
    expect(said.outcome).toBe(outcome);
    expect(seen).toHaveLength(1);
  });

  it("means what the description says", async () => {
    const errors = [
      { status: 500, code: "^nsfw$", is: "moderation", billed: true },
      { status: "5xx", code: "full", is: "later", after: "90s", scope: "job" },
      { status: [400, 418], is: "unknown" },
    ];
    const submitted = async (status: number, code: string) => {
      const { url } = await serverThat({ status, body: { why: code, text: "words" } });
      const job = described({ submit: atOnce, errors, error: { code: "why", message: "text" } });
      return (await outcomeOf(provider(url).provider.submit(job, never))).error;
    };
    expect(await submitted(500, "nsfw")).toMatchObject({
      name: "JobRefused",
      kind: "moderation",
      billed: true,
      message: "words",
    });
    expect(await submitted(503, "full")).toMatchObject({ name: "JobLater", afterMs: 90_000, scope: "job" });
    expect(await submitted(418, "x")).toMatchObject({ name: "Error" });
    expect(await submitted(500, "nsfw2")).toMatchObject({ name: "Error" });
  });

  it("loses the key and everything that is no plain text on its way to people", async () => {
    const message = `bad key secret-key\u001b[31m\nin secret-key ${"x".repeat(900)}`;
    const said = await at({ status: 401, body: { error: { message } } });
    expect(said.message).toMatch(/^bad key \[key\] in \[key\] x+…$/);
    expect(said.message.length).toBeLessThanOrEqual(500);
  });
});

it("takes no answer that does not say so for a refusal", async () => {
  let said: Said = {};
  const server = createServer((_, response) => {
    response.writeHead(said.status ?? 200, said.headers);
    response.end(said.body as string);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  open.push(() => void server.close());
  const opened = provider(`http://127.0.0.1:${(server.address() as AddressInfo).port}`).provider;
  const bodies = fc.oneof(
    fc.json(),
    fc.string(),
    fc.object({ key: fc.constantFrom("images", "error", "code") }).map((body) => JSON.stringify(body)),
  );
  const types = fc.constantFrom("application/json", "text/html", "text/plain");
  const statuses = fc.constantFrom(200, 201, 202, 203, 206, 408, 409, 500, 502, 503, 504, 520, 524);
  await fc.assert(
    fc.asyncProperty(statuses, types, bodies, async (status, type, body) => {
      said = { status, headers: { "content-type": type }, body };
      const { outcome } = await outcomeOf(
        opened.submit(described({ submit: { ...atOnce, outputs: "images[].url" } }), never),
      );
      const saysNone = status < 300 && /"images":\[/.test(body);
      expect(saysNone ? "unknown" : outcome).toBe("unknown");
    }),
    { numRuns: 100 },
  );
});

it("is sent again when there was no connection, of which TLS is a part; a stopped one is not known about", async () => {
  const { seen, url } = await serverThat(answered);
  const job = described({ submit: { ...atOnce, body: {} } });
  const tls = provider(url.replace("http:", "https:")).provider;
  expect((await outcomeOf(tls.submit(job, never))).outcome).toBe("later: provider");
  const nowhere = provider("http://nowhere.invalid").provider;
  expect((await outcomeOf(nowhere.submit(job, never))).outcome).toBe("later: provider");
  const early = await outcomeOf(provider(url).provider.submit(job, AbortSignal.abort()));
  expect(early).toMatchObject({ outcome: "later: job", error: { afterMs: 0 } });
  expect(seen).toEqual([]);
  const stop = new AbortController();
  const server = createServer(() => stop.abort()).listen(0, "127.0.0.1");
  await once(server, "listening");
  open.push(() => void server.close());
  const hung = provider(`http://127.0.0.1:${(server.address() as AddressInfo).port}`).provider;
  expect(await outcomeOf(hung.submit(job, stop.signal))).toMatchObject({
    outcome: "unknown",
    message: expect.stringMatching(/stopped$/),
  });
});

it("waits for a key that is missing, and does not tell where its file is", async () => {
  const { seen, url } = await serverThat(answered);
  const job = described({ submit: atOnce });
  const wanting = async (over: Partial<ProviderSettings>) =>
    outcomeOf(provider(url, { ...over, key: null }).provider.submit(job, never));
  expect(await wanting({ keyEnv: "MY_KEY" })).toMatchObject({
    outcome: "later: provider",
    message: "the provider studio needs a key: set MY_KEY",
  });
  expect(await wanting({ keyFile: "/etc/studio/key" })).toMatchObject({
    outcome: "later: provider",
    message: "the provider studio needs a key: its key_file is missing or empty",
  });
  expect(seen).toEqual([]);
});

it("refuses what cannot be a request, such as a header of two lines", async () => {
  const { seen, url } = await serverThat(answered);
  const { provider: opened } = provider(url, { headers: { "x-a": "{{ key }}" }, key: "secret\nkey" });
  const { outcome, message } = await outcomeOf(opened.submit(described({ submit: atOnce }), never));
  expect(outcome).toBe("refused: provider");
  expect(message).not.toContain("secret");
  expect(seen).toEqual([]);
});

describe("a poll", () => {
  const submit = { post: "/make", body: { prompt: "{{ prompt }}" }, ref: "id" };
  const poll = {
    get: "/jobs/{{ ref }}",
    status: "state",
    running: ["waiting"],
    done: ["ok"],
    failed: ["bad"],
    moderated: ["nsfw"],
    outputs: "files[]",
    note: "place",
    cost: { amount: "price", unit: "USD" },
    error: "reason",
    errors: [{ code: "too long", is: "input", billed: false }],
  };

  async function polled(...answers: Said[]) {
    const { seen, url } = await serverThat({ body: { id: 77 } }, ...answers);
    const { provider: opened } = provider(url, { headers: { authorization: "Bearer {{ key }}" } });
    const { value, outcome } = await outcomeOf(opened.submit(described({ submit, poll }), never));
    expect({ outcome, ref: value.ref }).toEqual({ outcome: "accepted", ref: "77" });
    const result = await outcomeOf(opened.poll!(value.resume!, never));
    return { ...result, seen, resume: value.resume };
  }

  it("asks below the base URL with the job's name and the key, which is not written down", async () => {
    const { seen, resume } = await polled({ body: { state: "waiting" } });
    expect(seen[1]).toMatchObject({
      method: "GET",
      path: "/jobs/77",
      headers: { authorization: "Bearer secret-key" },
    });
    expect(JSON.stringify(resume)).not.toContain("secret-key");
  });

  it("tells what the provider says of a running job", async () => {
    const { value } = await polled({
      headers: { "retry-after": "3" },
      body: { state: "Waiting", place: "third of 12" },
    });
    expect(value).toEqual({ running: true, afterMs: 3000, note: "third of 12" });
  });

  it("ends with files and their cost, or as the provider says", async () => {
    const done = await polled({ body: { state: "ok", files: ["https://example.com/a.png"], price: 0.04 } });
    expect(done.value).toEqual({
      outputs: [{ url: "https://example.com/a.png" }],
      ref: "77",
      cost: { amount: 0.04, unit: "USD" },
    });
    expect((await polled({ body: { state: "nsfw" } })).outcome).toBe("refused: moderation");
    expect(await polled({ body: { state: "bad", reason: "it broke" } })).toMatchObject({
      outcome: "refused: provider",
      message: "it broke",
    });
    expect(await polled({ body: { state: "ok", files: [] } })).toMatchObject({
      outcome: "refused: provider",
    });
  });

  it.each<[string, Said]>([
    ["a word that nobody knows", { body: { state: "hm" } }],
    ["no word", { body: {} }],
    ["done without files", { body: { state: "ok" } }],
    ["done with odd files", { body: { state: "ok", files: [{}] } }],
    ["a refusal of the key", { status: 401, body: { reason: "no" } }],
    ["a refusal of the request", { status: 400, body: { reason: "no" } }],
    ["that there is no such job", { status: 404, body: { reason: "gone" } }],
    ["a redirection", { status: 302, headers: { location: "/login" }, body: {} }],
  ])("ends no job with %s", async (_, said) => {
    expect((await polled(said)).outcome).toBe("unknown");
  });

  it("takes a job that another process has submitted with other rules as it was", async () => {
    const { url } = await serverThat(
      { body: { id: "a" } },
      { body: { state: "ok", files: ["https://example.com/a.png"] } },
    );
    const first = provider(url);
    const { value } = await outcomeOf(first.provider.submit(described({ submit, poll }), never));
    const second = provider(url);
    const resume = JSON.parse(JSON.stringify(value.resume));
    expect(await second.provider.poll!(resume, never)).toMatchObject({
      outputs: [{ url: "https://example.com/a.png" }],
    });
  });

  it("may be asked for at a path that the answer names", async () => {
    const { seen, url } = await serverThat(
      { body: { id: "a", at: "/queue/a?x=1" } },
      { body: { state: "waiting" } },
    );
    const { provider: opened } = provider(`${url}/v1`);
    const job = described({ submit: { ...submit, poll: "at" }, poll });
    const { value } = await outcomeOf(opened.submit(job, never));
    await opened.poll!(value.resume!, never);
    expect(seen.map(({ path }) => path)).toEqual(["/v1/make", "/queue/a?x=1"]);
  });

  it("is an unknown outcome when nobody can ask by the job's name", async () => {
    const { url } = await serverThat({ body: { id: "../../x" } });
    const job = described({ submit, poll });
    expect((await outcomeOf(provider(url).provider.submit(job, never))).outcome).toBe("unknown");
  });

  it("takes the rules of the result at the result alone, if that has an address of its own", async () => {
    const errors = [{ status: 422, is: "input" }];
    const apart = { ...poll, result: "/jobs/{{ ref }}/files", errors };
    const refused = { status: 422, body: { reason: "too big" } };
    const { url } = await serverThat({ body: { id: "a" } }, refused, { body: { state: "ok" } }, refused);
    const { provider: opened } = provider(url);
    const job = described({ submit: { ...submit, result: "/jobs/{{ ref }}/files" }, poll: apart });
    const { value } = await outcomeOf(opened.submit(job, never));
    expect((await outcomeOf(opened.poll!(value.resume!, never))).outcome).toBe("unknown");
    expect(await outcomeOf(opened.poll!(value.resume!, never))).toMatchObject({
      outcome: "refused: input",
      message: "too big",
    });
  });

  it("is an unknown outcome when a submit is accepted without a name", async () => {
    const { url } = await serverThat({ body: { id: null } });
    expect((await outcomeOf(provider(url).provider.submit(described({ submit, poll }), never))).outcome).toBe(
      "unknown",
    );
  });
});

describe("a models file", () => {
  const modelOf = (details: JsonObject): ModelSettings => ({
    key: "m",
    name: "M",
    category: "image",
    input: "text",
    details,
  });
  const mistakes = (kind: string, details: JsonObject, over: Partial<ProviderSettings> = {}) =>
    kindNamed(kind).check?.(modelOf(details), folder, ["quality", "seed"], settingsOf(kind, over)) ?? [];

  it("is told which field chooses the model, and which name was meant", () => {
    expect(mistakes("fal", { request: { prompt: "{{ promt }}", a: [{ b: "{{ seeds }}" }] } })).toEqual([
      { path: ["request"], message: "needs `path`" },
      {
        path: ["request", "prompt"],
        message: "names `promt`, which a request of this model does not have; did you mean prompt?",
      },
      {
        path: ["request", "a", 0, "b"],
        message: "names `seeds`, which a request of this model does not have; did you mean seed?",
      },
    ]);
    expect(mistakes("replicate", {})).toMatchObject([
      { message: "needs `model`, `version` or `deployment`" },
    ]);
    expect(mistakes("openai", { request: { model: "x", size: { from: "qualty", map: {} } } })).toMatchObject([
      { path: ["request", "size", "from"] },
    ]);
    expect(mistakes("openai", { request: { model: "x", n: { number: "{{ seed }}" } } })).toEqual([]);
  });

  it("is told of a description that is not there or wrong", () => {
    expect(mistakes("http", {})).toEqual([{ path: [], message: "needs `submit`: what is sent where" }]);
    expect(mistakes("http", { request: {} }, { details: { description: "gone.yaml" } })).toEqual([
      {
        path: [],
        message: "the description gone.yaml of the provider studio cannot be used: there is no such file",
      },
    ]);
    writeFileSync(join(folder, "bad.yaml"), "describe: x\nsubmit: [{ post: make }]\n");
    expect(mistakes("http", { request: {} }, { details: { description: "bad.yaml" } })[0]?.message).toMatch(
      /submit.0.post must be a path/,
    );
    writeFileSync(
      join(folder, "good.yaml"),
      "describe: x\nbase_url: http://127.0.0.1:1/\nsubmit: [{ post: /make }]\n",
    );
    expect(mistakes("http", { request: {} }, { details: { description: "good.yaml" } })).toEqual([]);
  });

  it.each<[string, JsonObject, RegExp]>([
    ["a field that is none", { requests: {} }, /Unrecognized key: "requests"/],
    ["a query that is none", { outputs: "a[" }, /is no query \(JMESPath/],
    ["a function that is none", { outputs: "first(a)" }, /Unknown function/],
    ["a template that is none", { request: { a: "{{ x" } }, /is no template/],
    ["a filter that is none", { request: { a: "{{ x | sparkle }}" } }, /is no template/],
    ["a rule with another meaning", { errors: [{ is: "bad" }] }, /must be one of moderation/],
    ["a status that is none", { errors: [{ status: "6xx", is: "later" }] }, /must be a status/],
    ["a number that is no status", { errors: [{ status: 7, is: "later" }] }, /must be a status/],
    ["an address that is missing", { submit: {} }, /^is missing$/],
    ["a time that is none", { errors: [{ is: "later", after: "soon" }] }, /must be a time/],
    ["a pattern that is none", { errors: [{ code: "(", is: "later" }] }, /regular expression/],
    ["a body and a form", { submit: { post: "/a", body: {}, form: {} } }, /either body or form/],
    [
      "words without the last one",
      { submit: { post: "/a" }, poll: { status: "s", running: ["a"] } },
      /`done`/,
    ],
  ])("is told of %s", (_, details, message) => {
    const read = z.strictObject(kindNamed("http").model).safeParse(details);
    expect(read.error?.issues.map((issue) => issue.message).join("\n")).toMatch(message);
  });

  it("has a JSON Schema for editors", () => {
    for (const { model, provider } of httpKinds) {
      const schema = z.toJSONSchema(z.strictObject({ ...model, ...provider }));
      expect(Object.keys(schema.properties ?? {})).toContain("request");
    }
  });

  it("is read as it was written, so that it can be read again", () => {
    const schema = z.strictObject(kindNamed("http").model);
    const written = {
      request: { a: 1 },
      submit: { post: "/a", ref: { header: "x" }, cost: "c" },
      poll: {
        get: "/b",
        done: ["x"],
        status: "s",
        error: "e",
        errors: [{ is: "later", after: "5s" }],
        cost: { amount: "a", unit: "USD" },
      },
    };
    const once = schema.parse(written);
    expect(schema.parse(once)).toEqual(once);
    expect(once).toMatchObject(written);
  });
});

it("reads Retry-After as seconds and as a date of the server's clock", () => {
  const now = Date.UTC(2026, 0, 1);
  const at = (ms: number) => new Date(ms).toUTCString();
  expect(retryAfterMs({ "retry-after": "1.5" }, now)).toBe(1500);
  expect(retryAfterMs({ "retry-after": at(now + 5000) }, now)).toBe(5000);
  expect(retryAfterMs({ "retry-after": at(now + 5000), date: at(now + 4000) }, now)).toBe(1000);
  expect(retryAfterMs({ "retry-after": at(now - 5000) }, now)).toBe(0);
  expect(retryAfterMs({ "retry-after": "1e99" }, now)).toBeNull();
  expect(retryAfterMs({ "retry-after": "99999999999" }, now)).toBe(24 * 3_600_000);
  expect(retryAfterMs({}, now)).toBeNull();
});
