import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { bucketTarget, openBucket } from "../../src/bucket/bucket.js";
import { bucketFront } from "./front.js";
import { s3Server } from "./s3-server.js";

const inputs = { bucket: "inputs", prefix: "photos" };

function fileOf(bytes: number) {
  const content = randomBytes(bytes);
  const path = join(mkdtempSync(join(tmpdir(), "bulkgen-bucket-")), "photo.png");
  writeFileSync(path, content);
  const sha256 = createHash("sha256").update(content).digest("hex");
  return { content, file: { path, bytes, sha256, mime: "image/png" } };
}

describe("a bucket's name", () => {
  it.each([
    ["s3://inputs", { bucket: "inputs", prefix: "" }],
    ["s3://inputs/", { bucket: "inputs", prefix: "" }],
    ["s3://inputs/a/b/", { bucket: "inputs", prefix: "a/b" }],
    ["s3://In", null],
    ["s3:/inputs", null],
    ["https://inputs/a", null],
  ])("%s", (text, target) => expect(bucketTarget(text)).toEqual(target));
});

describe("a bucket", () => {
  it("takes a file, says what it has, and gives an address that anyone can read", async () => {
    const bucket = openBucket(inputs, await s3Server());
    const { content, file } = fileOf(5_000);
    expect(await bucket.find("a.png")).toBeNull();
    await bucket.put("a.png", file);
    expect(await bucket.find("a.png")).toEqual({ bytes: 5_000, sha256: file.sha256 });
    const answer = await fetch(await bucket.link("a.png", 60));
    expect(answer.headers.get("content-type")).toBe("image/png");
    expect(Buffer.from(await answer.arrayBuffer()).equals(content)).toBe(true);
  });

  it("takes a large file in parts", async () => {
    const bucket = openBucket(inputs, await s3Server());
    const { content, file } = fileOf(17 * 2 ** 20 + 1);
    await bucket.put("large.png", file);
    const answer = await fetch(await bucket.link("large.png", 60));
    expect(Buffer.from(await answer.arrayBuffer()).equals(content)).toBe(true);
  });

  it("has each part of a large file checked, and sends one again that was refused", async () => {
    let refusals = 1;
    const front = await bucketFront(await s3Server(), ({ md5 }) =>
      md5 !== undefined && refusals-- > 0 ? 503 : "serve",
    );
    const { content, file } = fileOf(9 * 2 ** 20);
    await openBucket(inputs, front.env).put("large.png", file);
    const [first, again, second] = front.asked.flatMap(({ md5 }) => md5 ?? []);
    const md5 = (part: Buffer) => createHash("md5").update(part).digest("base64");
    expect([first, again, second]).toEqual([
      md5(content.subarray(0, 8 * 2 ** 20)),
      md5(content.subarray(0, 8 * 2 ** 20)),
      md5(content.subarray(8 * 2 ** 20)),
    ]);
  });

  it("gets no large file that changed before it was uploaded", async () => {
    const bucket = openBucket(inputs, await s3Server());
    const { content, file } = fileOf(9 * 2 ** 20);
    writeFileSync(file.path, content.fill(1));
    await expect(bucket.put("large.png", file)).rejects.toThrow(
      /^the file has changed: expected the hash [0-9a-f]{64}, got [0-9a-f]{64}$/,
    );
    expect(await bucket.find("large.png")).toBeNull();
  });

  it("gives an object another key without its bytes, and removes it", async () => {
    const front = await bucketFront(await s3Server());
    const bucket = openBucket(inputs, front.env);
    const { content, file } = fileOf(5_000);
    await bucket.put("new/one (1) é.png", file);
    await bucket.copy("new/one (1) é.png", "cups/cup.png");
    expect(await bucket.find("cups/cup.png")).toEqual({ bytes: 5_000, sha256: file.sha256 });
    expect(front.asked.filter(({ method, copies }) => method === "PUT" && !copies)).toHaveLength(1);
    const read = async (range?: { start: number; end: number }) => {
      const pieces: Uint8Array[] = [];
      for await (const piece of bucket.read("cups/cup.png", range)) pieces.push(piece);
      return Buffer.concat(pieces);
    };
    expect((await read()).equals(content)).toBe(true);
    expect((await read({ start: 10, end: 20 })).equals(content.subarray(10, 20))).toBe(true);
    await bucket.remove("cups/cup.png");
    await bucket.remove("cups/cup.png");
    expect(await bucket.find("cups/cup.png")).toBeNull();
    await expect(bucket.copy("cups/cup.png", "again.png")).rejects.toThrow(
      /request for cups\/cup\.png with 404/,
    );
  });

  it("lists a folder, with the folders in it", async () => {
    const bucket = openBucket(inputs, await s3Server());
    const { file } = fileOf(10);
    for (const key of ["a&b.png", "cups/one.png", "cups/small/two.png", "cupsize.png"])
      await bucket.put(key, file);
    expect((await bucket.list("")).toSorted()).toEqual(["a&b.png", "cups/", "cupsize.png"]);
    expect((await bucket.list("cups")).toSorted()).toEqual(["one.png", "small/"]);
    expect(await bucket.list("none")).toEqual([]);
    const none = openBucket({ bucket: "others", prefix: "" }, await s3Server());
    await expect(none.list("")).rejects.toThrow("the bucket others does not exist");
  });

  it("does not believe a store whose copy is not what was copied", async () => {
    const sizes = ["bytes 0-0/10", "bytes 0-0/9"];
    const environment = await answering((request, reply) => {
      if (request.method === "PUT")
        reply
          .writeHead(200, { "content-type": "application/xml" })
          .end('<CopyObjectResult><ETag>"x"</ETag></CopyObjectResult>');
      else reply.writeHead(206, { "content-range": sizes.shift() ?? "", "x-amz-meta-sha256": "ab" }).end();
    });
    await expect(openBucket(inputs, environment).copy("a", "b")).rejects.toThrow(
      /another b .* got 9 with ab/,
    );
  });

  it.each([
    ["missing credentials", (): unknown => openBucket(inputs, {}).find("a"), true],
    [
      "a refusal",
      async () =>
        openBucket(inputs, await answering((_, reply) => void reply.writeHead(403).end())).find("a"),
      true,
    ],
    [
      "a store that is busy",
      async () =>
        openBucket(inputs, await answering((_, reply) => void reply.writeHead(503).end())).find("a"),
      false,
    ],
  ])("says whether %s stays until a person acts", async (_, ask, isForGood) => {
    await expect(Promise.resolve().then(ask)).rejects.toMatchObject({ name: "BucketError", isForGood });
  });

  it("does not take a file that changed for the one it was", async () => {
    const bucket = openBucket(inputs, await s3Server());
    const { file } = fileOf(5_000);
    writeFileSync(file.path, "shorter");
    await expect(bucket.put("a.png", file)).rejects.toThrow(/another a\.png .* expected 5000 bytes .* got 7/);
  });

  it("says which variables are missing", () => {
    expect(() => openBucket(inputs, { AWS_ACCESS_KEY_ID: "x" })).toThrow(
      "s3://inputs/photos cannot be used: set AWS_SECRET_ACCESS_KEY",
    );
  });

  it("says that there is no such bucket", async () => {
    const bucket = openBucket({ bucket: "others", prefix: "" }, await s3Server());
    const { file } = fileOf(10);
    await expect(bucket.put("a.png", file)).rejects.toThrow("the bucket others does not exist");
    await expect(bucket.find("a.png")).rejects.toThrow("the bucket others does not exist");
  });

  it("says that a web server is no store, so that its 404 is not taken for a missing file", async () => {
    const environment = await answering((_, reply) => {
      reply.writeHead(404, { "content-type": "text/html" }).end("<html>Not found</html>");
    });
    await expect(openBucket(inputs, environment).find("a.png")).rejects.toThrow(
      /^s3:\/\/inputs\/photos cannot be reached: the server that answered .* is not an S3 store \(404\): check AWS_ENDPOINT_URL$/,
    );
  });

  it("says that it is not allowed, without the secret", async () => {
    const body = "<Error><Code>AccessDenied</Code><Message>AWS4 secret</Message></Error>";
    const environment = await answering((_, reply) => {
      reply.writeHead(403, { "content-type": "application/xml" }).end(body);
    });
    const refused = openBucket(inputs, environment).put("a.png", fileOf(10).file);
    await expect(refused).rejects.toThrow(
      /^s3:\/\/inputs\/photos refused the upload of \S+ \(AccessDenied\): check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY/,
    );
    await expect(refused).rejects.not.toThrow(/wrong-secret|Signature=/);
  });

  it("says that nothing answers", async () => {
    const environment = await answering((request) => request.socket.destroy());
    await expect(openBucket(inputs, environment).put("a.png", fileOf(10).file)).rejects.toThrow(
      /^s3:\/\/inputs\/photos did not answer the upload of /,
    );
  });

  it("says why it cannot be asked: fetch sends nothing to some ports", async () => {
    const environment = { ...(await answering(() => undefined)), AWS_ENDPOINT_URL: "http://127.0.0.1:1" };
    await expect(openBucket(inputs, environment).find("a.png")).rejects.toThrow(
      "s3://inputs/photos did not answer the request for a.png (bad port)",
    );
  });

  it("says that it waited long enough for one that takes the file and stays silent", async () => {
    const environment = await answering((request) => void request.resume());
    const silent = openBucket(inputs, environment, undefined, 50);
    await expect(silent.put("a.png", fileOf(10).file)).rejects.toThrow(
      /^s3:\/\/inputs\/photos did not answer the upload of \S+ \(it took too long\)$/,
    );
  });

  it("is not waited for once the run is interrupted", async () => {
    const interrupt = new AbortController();
    const environment = await answering(() => interrupt.abort());
    await expect(openBucket(inputs, environment, interrupt.signal).find("a.png")).rejects.toThrow(
      /did not answer the request for a\.png/,
    );
  });

  it("does not believe a store that kept only a part", async () => {
    const environment = await answering((request, reply) => {
      const isPut = request.method === "PUT";
      reply.writeHead(isPut ? 200 : 206, isPut ? { etag: '"x"' } : { "content-range": "bytes 0-0/3" }).end();
    });
    await expect(openBucket(inputs, environment).put("a.png", fileOf(10).file)).rejects.toThrow(
      /got 3 with no hash/,
    );
  });
});

/** A store that answers so. Returns the environment that reaches it. */
async function answering(answer: RequestListener): Promise<Record<string, string>> {
  const server = createServer((request, reply) => {
    request.resume().on("end", () => answer(request, reply));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return {
    AWS_ENDPOINT_URL: `http://127.0.0.1:${port}`,
    AWS_ACCESS_KEY_ID: "someone",
    AWS_SECRET_ACCESS_KEY: "wrong-secret",
  };
}
