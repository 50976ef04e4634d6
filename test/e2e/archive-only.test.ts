import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Bucket, bucketTarget, openBucket } from "../../src/bucket/bucket.js";
import { bucketFront } from "../bucket/front.js";
import { s3Server } from "../bucket/s3-server.js";
import { filesWith, newPlace, type Place, type Running, run, start } from "./command.js";
import { startService } from "./service.js";
import { sheet } from "./sheet.js";

const slow = { timeout: 120_000 };
const archive = "s3://inputs/campaign";
const inBucket = ["--archive", archive, "--archive-only"];
const runs = ["run", "s.csv", "--sandbox", "--yes", ...inBucket];

interface Kept {
  place: Place;
  env: Record<string, string>;
  bucket: Bucket;
  /** The keys below the job's folder. */
  keys(): Promise<string[]>;
}

async function withBucket(items = 3): Promise<Kept> {
  const env = await s3Server();
  const place = newPlace();
  place.write("s.csv", sheet(items));
  const bucket = openBucket(bucketTarget(archive) ?? { bucket: "", prefix: "" }, env);
  return { place, env, bucket, keys: async () => (await bucket.list("sandbox/s")).toSorted() };
}

const folderOf = (place: Place) => join(place.folder, "sandbox-outputs", "s");
/** The names in the job's folder on this disk. */
const here = (place: Place) => readdirSync(folderOf(place)).toSorted();

function index(place: Place): { file: string; sha256: string; bucket?: string }[] {
  const text = readFileSync(join(folderOf(place), "index.jsonl"), "utf8").trim();
  return text.split("\n").map((line) => JSON.parse(line));
}

const spentOf = async ({ place, env }: Kept) => {
  const { stdout } = await run(place, ["status", "--sandbox", "--json"], { env });
  return (JSON.parse(stdout) as { credits: { spent: number } }).credits.spent;
};

/** Puts an object there that has nothing to do with what was uploaded. */
async function plant(bucket: Bucket, key: string, text: string): Promise<void> {
  const path = join(mkdtempSync(join(tmpdir(), "bulkgen-plant-")), "file");
  writeFileSync(path, text);
  const { createHash } = await import("node:crypto");
  const sha256 = createHash("sha256").update(text).digest("hex");
  await bucket.put(key, { path, bytes: text.length, sha256, mime: "image/png" });
}

describe("outputs that a bucket alone keeps", () => {
  test(
    "are there with their hashes, with the index and the sidecars, and not on this disk",
    slow,
    async () => {
      const kept = await withBucket();
      const { place, env, bucket, keys } = kept;
      const { code, stdout, stderr } = await run(place, [...runs, "--sidecars"], { env });
      expect(code, stderr).toBe(0);
      expect(stdout).toContain(`${archive}/sandbox/s`);
      expect(here(place)).toEqual(["index.jsonl"]);
      const lines = index(place);
      expect(lines.map(({ file }) => file).toSorted()).toEqual(["a01.png", "a02.png", "a03.png"]);
      for (const { file, sha256, bucket: name } of lines) {
        expect(name).toBe(`${archive}/sandbox`);
        expect(await bucket.find(`sandbox/s/${file}`)).toMatchObject({ sha256 });
      }
      expect(await keys()).toEqual([
        "a01.json",
        "a01.png",
        "a02.json",
        "a02.png",
        "a03.json",
        "a03.png",
        "index.jsonl",
      ]);
      const verified = await run(place, ["verify", "--sandbox", "--read-data"], { env });
      expect([verified.code, verified.stdout]).toEqual([0, expect.stringContaining("every file is intact")]);
      // Nothing is made, uploaded or moved again, and the bucket is not asked about each of many files.
      const front = await bucketFront(env);
      const again = await run(place, [...runs, "--sidecars"], { env: front.env });
      expect([again.code, again.stdout + again.stderr]).toEqual([
        0,
        expect.not.stringContaining("lost files"),
      ]);
      expect(front.asked.filter(({ key }) => key.endsWith(".png"))).toEqual([]);
      expect([await spentOf(kept), (await keys()).length]).toEqual([0, 7]);
    },
  );

  test("need a bucket", slow, async () => {
    const { place, env } = await withBucket();
    const { code, stderr } = await run(place, ["run", "s.csv", "--sandbox", "--yes", "--archive-only"], {
      env,
    });
    expect([code, stderr]).toEqual([2, expect.stringContaining("Add --archive s3://bucket/prefix.")]);
  });

  test(
    "while the bucket refuses files the run waits, keeps none of them here, and pays nothing twice",
    slow,
    async () => {
      const kept = await withBucket();
      let refusals = 2;
      const front = await bucketFront(kept.env, ({ method }) =>
        method === "PUT" && refusals-- > 0 ? 503 : "serve",
      );
      const { code, stderr } = await run(kept.place, runs, { env: front.env });
      expect(code, stderr).toBe(0);
      expect(stderr).toMatch(
        /the bucket refuses files: s3:\/\/inputs\/campaign\/sandbox answered .* with 503/,
      );
      expect(here(kept.place)).toEqual(["index.jsonl"]);
      expect([await kept.keys(), await spentOf(kept)]).toEqual([
        ["a01.png", "a02.png", "a03.png", "index.jsonl"],
        3,
      ]);
    },
  );

  test(
    "are known to a host that has nothing but the history, which writes their index anew",
    slow,
    async () => {
      const kept = await withBucket();
      const { place, env, keys } = kept;
      expect((await run(place, runs, { env })).code).toBe(0);
      const before = index(place);
      rmSync(folderOf(place), { recursive: true });
      place.write("s.csv", sheet(4));
      const { code, stderr } = await run(place, runs, { env });
      expect(code, stderr).toBe(0);
      const byFile = new Map(index(place).map((line) => [line.file, line.sha256]));
      expect([...byFile.keys()].toSorted()).toEqual(["a01.png", "a02.png", "a03.png", "a04.png"]);
      for (const { file, sha256 } of before) expect(byFile.get(file)).toBe(sha256);
      expect(await spentOf(kept)).toBe(1);
      expect(await keys()).toHaveLength(5);
      expect((await run(place, ["verify", "--sandbox"], { env })).code).toBe(0);
    },
  );

  test(
    "may have been copied there before: what left the disk is found in the bucket, for nothing",
    slow,
    async () => {
      const { place, env, keys } = await withBucket();
      const before = ["run", "s.csv", "--sandbox", "--yes", "--archive", archive];
      expect((await run(place, before, { env })).code).toBe(0);
      for (const file of ["a01.png", "a02.png"]) rmSync(join(folderOf(place), file));
      const { code, stdout, stderr } = await run(place, [...runs, "--missing", "fetch"], { env });
      expect([code, stdout], stderr).toEqual([0, expect.stringContaining("0 spent")]);
      expect([here(place), await keys()]).toEqual([
        ["a03.png", "index.jsonl"],
        ["a01.png", "a02.png", "a03.png", "index.jsonl"],
      ]);
      const places = new Map(index(place).map(({ file, bucket }) => [file, bucket]));
      expect(Object.fromEntries(places)).toEqual({
        "a01.png": `${archive}/sandbox`,
        "a02.png": `${archive}/sandbox`,
        "a03.png": undefined,
      });
      expect((await run(place, ["verify", "--sandbox", "--read-data"], { env })).code).toBe(0);
    },
  );

  test(
    "P2: a move that was cut short is finished, whichever of the two names the bucket still has",
    slow,
    async () => {
      const { place, env, bucket, keys } = await withBucket(2);
      expect((await run(place, runs, { env })).code).toBe(0);
      // As when the process is killed before the history has the new name.
      const path = join(folderOf(place), "index.jsonl");
      for (const name of ["a01", "a02"]) {
        const line = index(place).find(({ file }) => file === `${name}.png`);
        appendFileSync(path, `${JSON.stringify({ ...line, file: `new-${name}.png` })}\n`);
        await bucket.copy(`sandbox/s/${name}.png`, `sandbox/s/new-${name}.png`);
      }
      await bucket.remove("sandbox/s/a01.png");
      const { code, stdout, stderr } = await run(place, runs, { env });
      expect([code, stdout], stderr).toEqual([0, expect.stringContaining("0 spent")]);
      const verified = await run(place, ["verify", "--sandbox", "--read-data"], { env });
      expect(verified.code, verified.stdout).toBe(0);
      expect(await keys()).toEqual(expect.arrayContaining(["a01.png", "a02.png", "index.jsonl"]));
    },
  );

  test(
    "P16: verify looks for them in the bucket, and brings back what is lost or damaged there",
    slow,
    async () => {
      const { place, env, bucket, keys } = await withBucket();
      expect((await run(place, runs, { env })).code).toBe(0);
      await bucket.remove("sandbox/s/a01.png");
      await plant(bucket, "sandbox/s/a02.png", "x");
      await plant(bucket, "sandbox/s/.bulkgen-0123456789abcdef-1.part", "part of a download");
      const found = await run(place, ["verify", "--sandbox"], { env });
      expect(found.code).toBe(5);
      expect(found.stdout).toMatch(/missing +1, the file is gone\n.*a01\.png/);
      expect(found.stdout).toMatch(/damaged +1, changed since it was archived\n.*a02\.png/);
      expect(found.stdout).toMatch(/leftover +1/);
      const mended = await run(place, ["verify", "--sandbox", "--repair", "--clean", "--yes"], { env });
      expect(mended.code, mended.stdout + mended.stderr).toBe(0);
      for (const { file, sha256 } of index(place))
        expect(await bucket.find(`sandbox/s/${file}`)).toMatchObject({ sha256 });
      expect((await keys()).filter((key) => key.endsWith(".part"))).toEqual([]);
      expect(here(place).filter((name) => name.endsWith(".png"))).toEqual([]);
      const blind = await run(place, ["verify", "--sandbox"], { env: {} });
      expect([blind.code, blind.stderr]).toEqual([2, expect.stringContaining("set AWS_ACCESS_KEY_ID")]);
    },
  );

  test("keep their names in a run without the bucket, which renames the others", slow, async () => {
    const kept = await withBucket();
    const { place, env } = kept;
    expect((await run(place, [...runs, "--first", "2"], { env })).code).toBe(0);
    const withoutBucket = ["run", "s.csv", "--sandbox", "--yes"];
    expect((await run(place, withoutBucket, { env })).code).toBe(0);
    place.write("s.csv", sheet(3).replace("a01", "b01").replace("a03", "b03"));
    const renamed = await run(place, withoutBucket, { env });
    expect(renamed.code, renamed.stderr).toBe(0);
    expect(renamed.stderr).not.toContain("ENOENT");
    expect(renamed.stderr.replace(/\s+/g, " ")).toContain(
      `1 file is in ${archive}/sandbox alone and keeps its old name until a run with --archive and --archive-only`,
    );
    expect(here(place).filter((name) => name.endsWith(".png"))).toEqual(["b03.png"]);
    expect(await kept.keys()).toEqual(["a01.png", "a02.png", "index.jsonl"]);
    expect((await run(place, runs, { env })).code).toBe(0);
    expect(await kept.keys()).toEqual(["a02.png", "b01.png", "index.jsonl"]);
  });

  test("make way in the bucket for what their rows ask for now, and come back there", slow, async () => {
    const kept = await withBucket();
    const { place, env, bucket, keys } = kept;
    expect((await run(place, [...runs, "--sidecars"], { env })).code).toBe(0);
    const first = await bucket.find("sandbox/s/a01.png");
    place.write("s.csv", sheet(3).replace("a picture of a01", "another picture"));
    const again = await run(place, [...runs, "--sidecars"], { env });
    expect(again.code, again.stdout + again.stderr).toBe(0);
    expect(await bucket.find("sandbox/s/_superseded/a01.png")).toEqual(first);
    expect((await bucket.list("sandbox/s/_superseded")).toSorted()).toEqual(["a01.json", "a01.png"]);
    place.write("s.csv", sheet(3));
    expect((await run(place, [...runs, "--sidecars"], { env })).code).toBe(0);
    expect(await bucket.find("sandbox/s/a01.png")).toEqual(first);
    expect(await keys()).toContain("a01.json");
    expect((await run(place, ["verify", "--sandbox", "--read-data"], { env })).code).toBe(0);
  });

  test(
    "P2: a run that is killed when the bucket has a file, and nothing else knows it, finds it there",
    slow,
    async () => {
      const env = await s3Server();
      const service = await startService();
      const place = newPlace();
      place.write("s.csv", sheet(2, "plain-image"));
      let running: Running | null = null;
      const front = await bucketFront(env, ({ method, key }) =>
        method === "PUT" && key.endsWith(".png") ? { served: () => running?.signal("SIGKILL") } : "serve",
      );
      running = start(place, ["run", "s.csv", "--yes", "--downloads", "1", ...inBucket], {
        env: { ...service.env, ...front.env },
      });
      expect((await running.ended).signal).toBe("SIGKILL");
      const bucket = openBucket(bucketTarget(archive) ?? { bucket: "", prefix: "" }, env);
      const [orphan = ""] = await bucket.list("s");
      const resumed = await run(place, ["resume"], { env: { ...service.env, ...env } });
      expect(resumed.code, resumed.stderr).toBe(0);
      expect((await bucket.list("s")).toSorted()).toEqual(["a01.png", "a02.png", "index.jsonl"]);
      expect(["a01.png", "a02.png"]).toContain(orphan);
      expect(service.made).toHaveLength(2);
      expect(readdirSync(join(place.folder, "outputs", "s"))).toEqual(["index.jsonl"]);
      // P21: the bucket's credentials are nowhere.
      expect(filesWith(place.root, env["AWS_SECRET_ACCESS_KEY"] ?? "")).toEqual([]);
    },
  );
});

test(
  "P4: a history that is rebuilt knows what the bucket has, and pays for nothing again",
  slow,
  async () => {
    const env = { ...(await s3Server()), ...(await startService()).env };
    const place = newPlace();
    place.write("s.csv", sheet(2, "plain-image"));
    const again = ["run", "s.csv", "--yes", ...inBucket];
    expect((await run(place, again, { env })).code).toBe(0);
    rmSync(join(place.folder, ".bulkgen"), { recursive: true });
    const refused = await run(place, again, { env });
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringContaining("2 of 2 items are in the archive"),
    ]);
    const rebuilt = await run(place, ["doctor", "--rebuild", "--yes"], { env });
    expect(rebuilt.code, rebuilt.stdout + rebuilt.stderr).toBe(0);
    const found = JSON.parse((await run(place, ["find", "--json"], { env })).stdout) as { file: string }[];
    expect(found.map(({ file }) => file).toSorted()).toEqual([
      `${archive}/s/a01.png`,
      `${archive}/s/a02.png`,
    ]);
    const ended = await run(place, again, { env });
    expect([ended.code, ended.stdout]).toEqual([
      0,
      expect.stringContaining("all of them before, not paid again"),
    ]);
    expect((await run(place, ["verify"], { env })).code).toBe(0);
  },
);

describe("commands that show outputs", () => {
  test("name the address of one that is in a bucket", slow, async () => {
    const { place, env } = await withBucket();
    expect((await run(place, runs, { env })).code).toBe(0);
    const address = (file: string) => `${archive}/sandbox/s/${file}`;
    // None of them needs the bucket.
    const show = (...args: string[]) => run(place, [...args, "--sandbox"], { env: {} });
    expect(JSON.parse((await show("find", "a02", "--json")).stdout)).toMatchObject([
      { file: address("a02.png") },
    ]);
    expect((await show("find", "a02")).stdout).toContain(address("a02.png"));
    expect((await show("status")).stdout).toContain(`${archive}/sandbox/s`);
    expect((await show("export")).stdout).toContain(address("a03.png"));
    const packed = await show("export", "--zip", "all.zip");
    expect([packed.code, packed.stderr]).toEqual([
      2,
      expect.stringMatching(
        /3 files are in s3:\/\/inputs\/campaign\/sandbox and not on this disk: .*aws s3 sync/,
      ),
    ]);
    const gallery = await show("gallery");
    expect(gallery.code, gallery.stderr).toBe(0);
    expect(readFileSync(join(folderOf(place), "gallery.html"), "utf8")).toContain(address("a01.png"));
    expect((await show("pick", address("a01.png"))).code).toBe(0);
    expect(JSON.parse((await show("pick", "--json")).stdout)).toMatchObject([
      { rowId: "a01", files: [address("a01.png")] },
    ]);
    const checks = async (own: Record<string, string>) => {
      const { stdout } = await run(place, ["doctor", "--sandbox", "--json"], { env: own });
      const all = (JSON.parse(stdout) as { checks: { name: string; state: string; got: string }[] }).checks;
      return all.find(({ name }) => name === "bucket");
    };
    expect(await checks(env)).toMatchObject({ state: "ok", got: `${archive}/sandbox` });
    expect(await checks({})).toMatchObject({
      state: "problem",
      got: expect.stringContaining("set AWS_ACCESS_KEY_ID"),
    });
    // A copy of the folder that was downloaded is used.
    writeFileSync(join(folderOf(place), "a01.png"), "a copy");
    await show("gallery");
    expect(readFileSync(join(folderOf(place), "gallery.html"), "utf8")).not.toContain(address("a01.png"));
  });
});
