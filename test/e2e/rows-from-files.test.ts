import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { media } from "../archive/media.js";
import { main, newPlace, type Place, run } from "./command.js";
import { type ScriptedService, startService } from "./service.js";

/** A place with photos of these names, and a service. */
async function withPhotos(...names: readonly string[]): Promise<[Place, ScriptedService]> {
  const [place, service] = [newPlace(), await startService()];
  for (const name of names) await photo(place, name);
  return [place, service];
}

/** A photo whose content is its name's, or another. */
async function photo(place: Place, name: string, content = name): Promise<void> {
  const path = join(place.folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, Buffer.concat([await media.jpeg(), Buffer.from(content)]));
}

const flags = [
  "--model",
  "plain-image",
  "--prompt",
  "brighter: {{ stem }}",
  "--publish",
  "https://cdn.example.com/in",
];

test("a pattern is a job: outputs keep the folders, and only new and changed photos are made again", async () => {
  const [place, service] = await withPhotos("photos/a.jpg", "photos/hall/b 1.JPG");
  const words = ["run", "photos/**/*.jpg", ...flags, "--yes"];
  const first = await run(place, words, service);
  expect(first.code, first.stderr).toBe(0);
  expect(service.made.map(({ body }) => [body["prompt"], body["image_url"]]).toSorted()).toEqual([
    ["brighter: a", "https://cdn.example.com/in/a.jpg"],
    ["brighter: b 1", "https://cdn.example.com/in/hall/b%201.JPG"],
  ]);
  expect(existsSync(join(place.folder, "outputs/photos/a.png"))).toBe(true);
  expect(existsSync(join(place.folder, "outputs/photos/hall/b 1.png"))).toBe(true);
  // The folder is the same job as the pattern, and nothing of it is due.
  const again = await run(place, ["run", "photos", ...flags, "--yes"], service);
  expect(again.code, again.stderr).toBe(0);
  expect(service.made).toHaveLength(2);
  await photo(place, "photos/a.jpg", "changed");
  await photo(place, "photos/new.jpg");
  renameSync(join(place.folder, "photos/hall/b 1.JPG"), join(place.folder, "photos/hall/b 1.jpeg"));
  const planned = await run(place, ["plan", "photos", ...flags], service);
  expect(planned.stdout, planned.stderr).toContain("items     2 new, 1 archived");
  expect(planned.stdout).toContain(
    "row 1 (a): image_url (the content of a.jpg has changed); the old file will move to _superseded/",
  );
  expect((await run(place, ["run", "photos", ...flags, "--yes"], service)).code).toBe(0);
  expect(service.made).toHaveLength(4);
  const exported = await run(place, ["export", "--columns", "id,dir,stem,file"]);
  expect(exported.stdout).toContain("hall/b 1,hall,b 1,hall/b 1.png");
});

test("a photo that is deleted after the plan is no row of the run", async () => {
  const [place, service] = await withPhotos("photos/a.jpg", "photos/b.jpg");
  const planned = await run(place, ["plan", "photos", ...flags, "-o", "plan.json"], service);
  expect(planned.code, planned.stderr).toBe(0);
  rmSync(join(place.folder, "photos/b.jpg"));
  const left = await run(place, ["run", "photos", ...flags, "--yes"], service);
  expect(left.code, left.stderr).toBe(0);
  expect(service.made.map(({ body }) => body["prompt"])).toEqual(["brighter: a"]);
});

test("a job file with files makes its steps of each photo", async () => {
  const [place, service] = await withPhotos("photos/a.jpg", "photos/b.jpg", "photos/raw/c.jpg");
  place.write(
    "up.yaml",
    `files: ["photos/**/*.jpg", "!photos/raw"]
defaults: { model: plain-image }
publish: https://cdn.example.com/in
steps: [{ name: large, prompt: larger }, { name: small, prompt: "smaller: {{ path }}", image_url: "@large" }]
`,
  );
  const { code, stderr } = await run(place, ["run", "up.yaml", "--yes", ...flags.slice(-2)], service);
  expect(code, stderr).toBe(0);
  expect(service.made.map(({ body }) => body["prompt"]).toSorted()).toEqual([
    "larger",
    "larger",
    "smaller: photos/a.jpg",
    "smaller: photos/b.jpg",
  ]);
  expect(existsSync(join(place.folder, "outputs/up/photos/b-small.png"))).toBe(true);
});

test("a schedule takes a pattern, and refuses one that matches nothing", async () => {
  const [place, service] = await withPhotos("photos/a.jpg");
  const add = (name: string, manifest: string) =>
    run(place, ["schedule", "add", name, manifest, "--cron", "0 6 * * *", ...flags], service);
  const added = await add("photos", "photos/*.jpg");
  expect(added.code, added.stderr).toBe(0);
  expect(added.stdout).toContain("photos/*.jpg");
  const none = await add("none", "photos/*.gif");
  expect(none).toMatchObject({ code: 2 });
  expect(none.stderr).toContain("no file in");
});

test("the outputs of a job are made into another job, never into the job itself", async () => {
  const [place, service] = await withPhotos("photos/a.jpg");
  await run(place, ["run", "photos", ...flags, "--yes"], service);
  const same = await run(place, ["run", "outputs/photos", ...flags, "--yes"], service);
  expect(same).toMatchObject({ code: 2 });
  expect(same.stderr).toContain(
    "the files are the outputs of job photos itself. Choose another job with --job NAME",
  );
  const other = await run(place, ["run", "outputs/photos", ...flags, "--yes", "--job", "large"], service);
  expect(other.code, other.stderr).toBe(0);
  expect(existsSync(join(place.folder, "outputs/large/a.png"))).toBe(true);
  expect(service.made).toHaveLength(2);
});

test("a pattern that matches nothing makes no workspace", async () => {
  const [place, service] = await withPhotos("photos/a.jpg");
  const end = await run(place, ["run", "photos/*.gif", ...flags, "--yes"], service);
  expect(end).toMatchObject({ code: 2 });
  expect(end.stderr).toContain("photos matches");
  expect(existsSync(join(place.folder, ".bulkgen"))).toBe(false);
});

/** Root may read every folder, unless that is taken from it. */
const restrained =
  process.getuid?.() === 0 ? ["setpriv", "--inh-caps=-all", "--bounding-set=-all", "--"] : [];

test("a folder that may not be read is a problem of the plan, which does not just have fewer rows", async () => {
  const [place] = await withPhotos("photos/a.jpg", "photos/closed/b.jpg");
  const closed = join(place.folder, "photos/closed");
  chmodSync(closed, 0);
  try {
    const words = [main, "plan", "photos", "--model", "atelier-upscale", "--sandbox"];
    const [program = "", ...args] = [...restrained, process.execPath, ...words];
    const { status, stdout } = spawnSync(program, args, {
      cwd: place.folder,
      env: place.env,
      encoding: "utf8",
    });
    expect(status).toBe(2);
    expect(stdout).toContain("the files of a folder cannot be listed: EACCES");
    expect(stdout).toContain("got closed");
  } finally {
    chmodSync(closed, 0o700);
  }
});
