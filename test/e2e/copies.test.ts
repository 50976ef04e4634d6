import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { bucketTarget, openBucket } from "../../src/bucket/bucket.js";
import { s3Server } from "../bucket/s3-server.js";
import { newPlace, type Place, run } from "./command.js";
import { sheet } from "./sheet.js";

const slow = { timeout: 120_000 };
const archive = "s3://inputs/campaign";
const runs = ["run", "s.csv", "--sandbox", "--yes", "--archive", archive];

interface Copied {
  place: Place;
  env: Record<string, string>;
  file(name: string): string;
  /** What the bucket has for a file. */
  copy(name: string): Promise<string | null>;
}

async function withBucket(): Promise<Copied> {
  const env = await s3Server();
  const place = newPlace();
  place.write("s.csv", sheet(3));
  const bucket = openBucket(bucketTarget(archive) ?? { bucket: "", prefix: "" }, env);
  return {
    place,
    env,
    file: (name) => join(place.folder, "sandbox-outputs", "s", name),
    copy: async (name) => (await bucket.find(`sandbox/s/${name}`))?.sha256 ?? null,
  };
}

function hashes(place: Place): Record<string, string> {
  const lines = readFileSync(join(place.folder, "sandbox-outputs", "s", "index.jsonl"), "utf8").trim();
  return Object.fromEntries(
    lines.split("\n").map((line) => {
      const { file, sha256 } = JSON.parse(line) as { file: string; sha256: string };
      return [file, sha256];
    }),
  );
}

describe("copies in a bucket", () => {
  test("every file that is archived is in the bucket too, with its hash", slow, async () => {
    const { place, env, copy } = await withBucket();
    const { code, stderr } = await run(place, runs, { env });
    expect(code, stderr).toBe(0);
    const files = hashes(place);
    expect(Object.keys(files)).toHaveLength(3);
    for (const [file, sha256] of Object.entries(files)) expect(await copy(file)).toBe(sha256);
    expect(await run(place, ["verify", "--sandbox", "--read-data"], { env })).toMatchObject({ code: 0 });
  });

  test("verify finds what either side lost, and repairs each from the other", slow, async () => {
    const { place, env, file, copy } = await withBucket();
    await run(place, runs, { env });
    const good = readFileSync(file("a01.png"));
    rmSync(file("a01.png"));
    // Another bucket has none of the files.
    const other = { ...(await s3Server()) };
    const lost = await run(place, ["verify", "--sandbox"], { env: other });
    expect(lost.code).toBe(5);
    expect(lost.stdout).toMatch(/missing +1, the file is gone/);
    expect(lost.stdout).toMatch(
      /uncopied +2, intact, but the bucket has no good copy\n.*a02\.png: s3:\/\/inputs\/campaign\/sandbox does not have it/,
    );
    const repaired = await run(place, ["verify", "--sandbox", "--repair"], { env });
    expect(repaired.code, repaired.stdout).toBe(0);
    expect(readFileSync(file("a01.png"))).toEqual(good);
    const copied = await run(place, ["verify", "--sandbox", "--repair"], { env: other });
    expect(copied.code, copied.stdout).toBe(0);
    expect(copied.stdout).toMatch(/repaired +3 files/);
    expect(await copy("a01.png")).not.toBeNull();
  });

  test("a retry without access to the bucket changes nothing", slow, async () => {
    const { place, env } = await withBucket();
    place.write("s.csv", "id,model,prompt\na,aurora-image-mini,[[moderation]] a mug\n");
    expect((await run(place, runs, { env })).code).toBe(5);
    const blind = await run(place, ["retry", "--sandbox", "--yes"], { env: {} });
    expect(blind).toMatchObject({ code: 2, stderr: expect.stringContaining("set AWS_ACCESS_KEY_ID") });
    const again = await run(place, ["retry", "--sandbox", "--yes"], { env });
    expect(again, again.stderr).toMatchObject({ code: 5, stdout: expect.stringMatching(/failed +1\n/) });
  });

  test("a bucket that is not there ends the run before anything is bought", slow, async () => {
    const { place, env } = await withBucket();
    const wrong = ["run", "s.csv", "--sandbox", "--yes", "--archive", "s3://others"];
    const { code, stderr } = await run(place, wrong, { env });
    expect(code).toBe(2);
    expect(stderr).toContain("--archive: the bucket others does not exist: create it, or correct its name");
    expect((await run(place, runs, { env: {} })).stderr).toContain(
      "--archive: s3://inputs/campaign/sandbox cannot be used: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    );
    // Nothing has begun, so there is nothing to resume, and --fresh starts a new edition.
    expect((await run(place, ["status", "--sandbox"])).stdout).toContain("no runs in");
    const planned = await run(place, ["plan", "s.csv", "--sandbox", "--archive", "s3://others"], { env });
    expect(planned).toMatchObject({ code: 2, stderr: expect.stringContaining("the bucket others does not") });
    const misspelt = await run(place, ["run", "s.csv", "--sandbox", "--yes", "--archive", "others"]);
    expect(misspelt).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        '--archive: expected a bucket such as s3://team/campaign, got "others"',
      ),
    });
  });

  test("files from before the run had a bucket are copied by verify --repair", slow, async () => {
    const { place, env, copy } = await withBucket();
    await run(place, ["run", "s.csv", "--sandbox", "--yes"], { env });
    expect((await run(place, runs, { env })).code).toBe(0);
    expect(await copy("a01.png")).toBeNull();
    const found = await run(place, ["verify", "--sandbox"], { env });
    expect(found.stdout).toMatch(/next +`bulkgen verify --sandbox --repair` copies them to the bucket/);
    expect((await run(place, ["verify", "--sandbox", "--repair"], { env })).code).toBe(0);
    expect(await copy("a01.png")).toBe(hashes(place)["a01.png"]);
  });

  test("while the bucket refuses files the run waits, and nothing is paid twice", slow, async () => {
    const { place, env, copy } = await withBucket();
    let refusals = 2;
    const front = createServer((request, reply) => {
      if (request.method === "PUT" && refusals-- > 0) return void reply.writeHead(503).end();
      const { method, headers, url } = request;
      const onward = request.pipe(httpRequest(`${env["AWS_ENDPOINT_URL"]}${url}`, { method, headers }));
      onward.on("response", (answer) =>
        answer.pipe(reply.writeHead(answer.statusCode ?? 500, answer.headers)),
      );
    }).listen(0, "127.0.0.1");
    await once(front, "listening");
    onTestFinished(() => void front.close());
    const { port } = front.address() as AddressInfo;
    const through = { ...env, AWS_ENDPOINT_URL: `http://127.0.0.1:${port}` };
    const { code, stderr } = await run(place, runs, { env: through });
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(
      /the bucket refuses files: s3:\/\/inputs\/campaign\/sandbox answered the upload of \S+ with 503/,
    );
    for (const [file, sha256] of Object.entries(hashes(place))) expect(await copy(file)).toBe(sha256);
    const { stdout } = await run(place, ["status", "--sandbox", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ counts: { archived: 3 }, credits: { spent: 3 } });
  });
});
