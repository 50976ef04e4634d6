import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { bucketTarget, openBucket } from "../../src/bucket/bucket.js";
import { s3Server } from "../bucket/s3-server.js";
import { newPlace, type Place, run } from "./command.js";
import { sheet } from "./sheet.js";

const slow = { timeout: 120_000 };
const archive = "s3://inputs/campaign";
const runs = ["run", "s.csv", "--sandbox", "--yes", "--archive", archive, "--archive-only"];

async function withBucket() {
  const env = await s3Server();
  const place = newPlace();
  place.write("s.csv", sheet(3));
  const bucket = openBucket(bucketTarget(archive) ?? { bucket: "", prefix: "" }, env);
  return { place, env, bucket };
}

/** The names in the job's folder on the disk. */
function here(place: Place): string[] {
  return readdirSync(join(place.folder, "sandbox-outputs", "s")).toSorted();
}

function index(place: Place): { file: string; sha256: string; bucket?: string }[] {
  const text = readFileSync(join(place.folder, "sandbox-outputs", "s", "index.jsonl"), "utf8");
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

describe("outputs that a bucket alone keeps", () => {
  test(
    "each is in the bucket with its hash, with the index and the sidecars, and none is on this disk",
    slow,
    async () => {
      const { place, env, bucket } = await withBucket();
      const { code, stderr } = await run(place, [...runs, "--sidecars"], { env });
      expect(code, stderr).toBe(0);
      expect(here(place)).toEqual(["index.jsonl"]);
      const lines = index(place);
      expect(lines.map(({ file }) => file).toSorted()).toEqual(["a01.png", "a02.png", "a03.png"]);
      for (const { file, sha256, bucket: name } of lines) {
        expect(name).toBe(`${archive}/sandbox`);
        expect(await bucket.find(`sandbox/s/${file}`)).toMatchObject({ sha256 });
      }
      expect((await bucket.list("sandbox/s")).toSorted()).toEqual([
        "a01.json",
        "a01.png",
        "a02.json",
        "a02.png",
        "a03.json",
        "a03.png",
        "index.jsonl",
      ]);
      const verified = await run(place, ["verify", "--sandbox", "--read-data"], { env });
      expect(verified.code, verified.stdout).toBe(0);
    },
  );
});
