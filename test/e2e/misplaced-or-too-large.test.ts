import { readdirSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { keyRemover, redaction } from "../../src/api/key.js";
import { BucketError, openBucket } from "../../src/bucket/bucket.js";
import { boundedLiquid } from "../../src/manifest/templates/template.js";
import { boundedLines } from "../../src/mcp/bounded-lines.js";
import { databaseAddress } from "../../src/store/postgres/address.js";
import { newPlace, type Place, run } from "./command.js";
import { testKey } from "./leaked-key.js";
import { startService } from "./service.js";

/** What is too large, or is typed in the wrong place, is refused in one sentence, and nothing else suffers. */
let at: Place;
beforeEach(() => {
  at = newPlace();
  at.write("set.csv", "id,model,prompt\na,aurora-image-mini,a cup\n");
});

describe("P21: a key in the wrong place is not repeated", () => {
  test.each([
    [[testKey]],
    [["run", testKey]],
    [["plan", "set.csv", testKey]],
    [["status", testKey]],
    [["run", "set.csv", `--${testKey}`]],
    [["run", "set.csv", "--max-credits", testKey]],
    [["account", "--api-key-file", testKey]],
    [["account", "--base-url", testKey]],
    [["help", testKey]],
    [["run", "set.csv", "--sandbox", "--notify", testKey]],
  ])("%j", async (words) => {
    const { code, stdout, stderr } = await run(at, words);
    expect(code).not.toBe(0);
    expect(stdout + stderr).not.toContain(testKey.slice(4));
  });

  test.each([
    ["a zero-width space", "\u200b"],
    ["a word joiner", "\u2060"],
    ["a soft hyphen", "\u00ad"],
    ["a colour of the terminal", "\u001b[0m"],
    ["a mark of direction", "\u202e"],
    ["a combining joiner", "\u034f"],
    ["a line break", "\n"],
  ])("also where %s splits it in an answer", async (_, between) => {
    const service = await startService();
    const key = [...testKey].join(between);
    service.script(() => ({
      status: 401,
      json: { error: { code: "INVALID_API_KEY", message: `no key ${key}` } },
    }));
    for (const words of [["account"], ["doctor"], ["plan", "set.csv"]]) {
      const { stdout, stderr } = await run(at, words, service);
      const shown = (stdout + stderr).replace(/[\p{Cc}\p{Cf}\p{M}\s]/gu, "").replaceAll("[0m", "");
      expect(shown).not.toContain(testKey.slice(4));
    }
  });

  test("also where JSON spells its letters by numbers, in a time that grows with the text alone", () => {
    const spelled = [...testKey].map((letter) => `\\u00${letter.charCodeAt(0).toString(16)}`).join("\\u200b");
    expect(keyRemover(testKey)(`a ${spelled} b`)).toBe(`a ${redaction} b`);
    const many = "\\u200b".repeat(200_000) + testKey.slice(0, -1) + "\\u0043".repeat(100_000);
    expect(keyRemover(testKey)(many)).toBe(many);
  });
});

test("a schema that belongs to PostgreSQL is no place for a state", async () => {
  for (const schema of ["pg_catalog", "pg_toast", "information_schema"]) {
    expect(() => databaseAddress(`postgres://u@h/d?schema=${schema}`, { sandbox: false })).toThrow(
      "which belongs to PostgreSQL itself",
    );
    const { code, stderr } = await run(at, [
      "status",
      "--database-url",
      `postgres://u@127.0.0.1:9/d?schema=${schema}`,
    ]);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining("--database-url: expected a schema of your own"),
    ]);
  }
});

describe("an answer of a bucket that is too large", () => {
  let close = () => {};
  afterEach(() => close());

  async function store(status: number, body: Buffer, headers: Record<string, string>) {
    const server = createServer((_, reply) => {
      reply.writeHead(status, { "content-type": "application/xml", ...headers });
      reply.end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    close = () => void server.close();
    const environment = {
      AWS_ENDPOINT_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      AWS_ACCESS_KEY_ID: "a",
      AWS_SECRET_ACCESS_KEY: "b",
    };
    return openBucket({ bucket: "inputs", prefix: "" }, environment);
  }

  test.each([
    ["packed, of 64 MB", 403, gzipSync(Buffer.alloc(64 * 2 ** 20, "x")), { "content-encoding": "gzip" }],
    ["with tags that are never closed", 403, Buffer.from("<a>".repeat(200_000)), {}],
    ["a list with tags that are never closed", 200, Buffer.from("<a>".repeat(200_000)), {}],
  ] as const)("is an ordinary refusal: %s", async (_, status, body, headers) => {
    const bucket = await store(status, body, headers);
    await expect(status === 200 ? bucket.list("") : bucket.find("a")).rejects.toBeInstanceOf(BucketError);
  });
});

test("a template with more tags than anybody writes is refused before it is read", async () => {
  expect(() => boundedLiquid().parse("{% if a %}x{% endif %}".repeat(20_000))).toThrow("at most 2000 tags");
  at.write("tags.csv", `id,model,prompt\na,aurora-image-mini,"${"{{ id }}".repeat(20_000)}"\n`);
  const { code, stderr } = await run(at, ["plan", "tags.csv", "--sandbox"]);
  expect([code, stderr]).toEqual([2, expect.stringContaining("a template has at most 2000 tags")]);
});

test("a settings file with more than anybody sets is refused", async () => {
  const anchors = Array.from({ length: 20_000 }, (_, number) => `a${number}: &a${number} x`).join("\n");
  at.write("bulkgen.config.yaml", anchors);
  const { code, stderr } = await run(at, ["plan", "set.csv", "--sandbox"]);
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining("a settings file has at most 100000 characters"),
  ]);
});

test("a line of a client that no message has the length of is dropped, and the next one is read", async () => {
  let refused = 0;
  const lines = boundedLines(() => refused++);
  const got: string[] = [];
  lines.on("data", (piece: Buffer) => got.push(piece.toString()));
  const ended = new Promise((resolve) => lines.once("end", resolve));
  lines.write("first\n");
  for (let piece = 0; piece < 12; piece++) lines.write(Buffer.alloc(2 ** 20, "x"));
  lines.end("\nsecond\nhalf");
  await ended;
  expect([got, refused]).toEqual([["first\n", "second\n"], 1]);
});

test("databases and receipts are readable for their owner alone, and so are their folders", async () => {
  const service = await startService();
  writeFileSync(join(at.folder, "set.csv"), "id,model,prompt\na,plain-image,a cup\n");
  expect((await run(at, ["run", "set.csv", "--yes"], service)).code).toBe(0);
  const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);
  for (const folder of [join(at.folder, ".bulkgen"), join(at.root, "state", "bulkgen")]) {
    expect([folder, mode(folder)]).toEqual([folder, "700"]);
    for (const name of readdirSync(folder).filter(
      (each) => /\.(db|jsonl)/.test(each) || each === "trust.json",
    ))
      expect([name, mode(join(folder, name))]).toEqual([name, "600"]);
  }
});
