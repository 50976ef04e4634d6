import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { LocalInputs } from "../../src/manifest/local-inputs.js";
import { openManifest, whyNoManifest } from "../../src/manifest/read.js";
import { plan } from "../plan/account.js";
import { folderWith } from "./folder.js";
import { readManifest } from "./read.js";

/** Files of these names below `photos`, and what else is beside it. */
async function photos(names: readonly string[], beside: Readonly<Record<string, string>> = {}) {
  const files = Object.fromEntries(names.map((name) => [`photos/${name}`, `content of ${name}`]));
  return folderWith({ ...files, ...beside });
}

/** The ids of the rows, and all that is said. */
async function read(...path: string[]) {
  const { name, rows, columns, problems, notes } = await readManifest(join(...path));
  const cells = rows.map((row) => row.columns);
  const told = problems.map(({ message, got }) => `${message}: ${got}`);
  return { name, ids: rows.map(({ id }) => id), cells, columns, told, notes };
}

describe("a pattern or a folder as the manifest", () => {
  test("each file is a row, whose id is its path without the extension", async () => {
    const folder = await photos(["hall/b.png", "a.jpg"]);
    const { name, cells, columns, told, notes } = await read(folder, "photos/**/*.{jpg,png}");
    expect({ name, told, notes }).toEqual({ name: "photos", told: [], notes: [] });
    expect(cells).toEqual([
      { id: "a", path: "a.jpg", stem: "a", ext: "jpg", image_url: "a.jpg" },
      {
        id: "hall/b",
        path: "hall/b.png",
        dir: "hall",
        stem: "b",
        ext: "png",
        image_url: "hall/b.png",
      },
    ]);
    expect(columns).toEqual(["id", "path", "dir", "stem", "ext", "image_url"]);
  });

  test("a folder stands for all pictures, videos and sounds in it, each in the field of its kind", async () => {
    const folder = await photos(["a.JPG", "b.mp4", "c.wav", "d.txt", "more/e.webp"]);
    const { name, cells } = await read(folder, "photos");
    expect(name).toBe("photos");
    expect(cells.map(({ image_url, video_url, audio_url }) => [image_url, video_url, audio_url])).toEqual([
      ["a.JPG", undefined, undefined],
      [undefined, "b.mp4", undefined],
      [undefined, undefined, "c.wav"],
      ["more/e.webp", undefined, undefined],
    ]);
  });

  test("capitals do not matter, and numbers count by their value", async () => {
    const folder = await photos(["IMG_10.JPG", "img_9.jpg", "B/x.jpg", "b 2/x.jpg", "b 10/x.jpg"]);
    expect((await read(folder, "photos/**/*.jpg")).ids).toEqual([
      "B/x",
      "b 2/x",
      "b 10/x",
      "img_9",
      "IMG_10",
    ]);
  });

  test("files that differ only in their extension keep it in their ids, all of them", async () => {
    const folder = await photos(["cup.jpg", "CUP.png", "jar.jpg"]);
    expect((await read(folder, "photos")).ids.toSorted()).toEqual(["CUP-png", "cup-jpg", "jar"]);
  });

  test("names may have any letters, spaces, quotes and line breaks; what looks like an address or a reference is a path", async () => {
    const names = ["写真 1.jpg", `it's "x".jpg`, "line\nbreak.jpg", "a:b.jpg", "@cup.jpg", " lead.jpg"];
    const folder = await photos(names);
    const { rows, problems } = await readManifest(join(folder, "photos"));
    expect(problems).toEqual([]);
    expect(new Set(rows.map(({ inputs }) => inputs.image_url))).toEqual(
      new Set([names[0], names[1], names[2], "./a:b.jpg", "./@cup.jpg", "./ lead.jpg"]),
    );
  });

  test("a name that looks like a template is a problem of its row", async () => {
    const folder = await photos(["{{ x }}.jpg", "cup.jpg"]);
    const { ids, told } = await read(folder, "photos");
    expect(ids).toEqual(["cup"]);
    expect(told).toEqual(["the name of the file looks like a template: {{ x }}.jpg"]);
  });

  test("a folder may have a name like a pattern, and so may a sheet", async () => {
    const folder = await folderWith({
      "[2024] trip/a.jpg": "a",
      "2/b.jpg": "b",
      "list [1].csv": "prompt\na cup\n",
    });
    expect(await read(folder, "[2024] trip")).toMatchObject({ name: "[2024] trip", ids: ["a"] });
    expect(await read(folder, "[2024] trip/*.jpg")).toMatchObject({ name: "[2024] trip", ids: ["a"] });
    expect(await read(folder, "list [1].csv")).toMatchObject({ name: "list [1]", ids: [null] });
    const missing = await whyNoManifest(join(folder, "list [2].csv"));
    expect(missing).toMatchObject({ message: "the manifest does not exist", nearest: "list [1].csv" });
  });

  test("a pattern that matches nothing says in which folder, and a folder without media is no manifest", async () => {
    const folder = await photos(["a.jpg"], { "jobs/set.csv": "prompt\na cup\n" });
    const none = await read(folder, "photos/*.gif");
    expect(none.told).toEqual([`no file in ${join(folder, "photos")} matches: *.gif`]);
    for (const open of ["**/*.{png,jpg", "{2024,*.jpg"])
      expect((await read(folder, `photos/${open}`)).told).toEqual([
        `no file in ${join(folder, "photos")} matches, for a brace is not closed: ${open}`,
      ]);
    expect((await read(folder, "phtos/*.jpg")).told[0]).toContain("there is no folder");
    expect(await whyNoManifest(join(folder, "photos/*.gif"))).toMatchObject({ got: "*.gif" });
    expect(await whyNoManifest(join(folder, "photos/*.jpg"))).toBeNull();
    expect(await whyNoManifest(join(folder, "jobs"))).toMatchObject({
      message: "the manifest is a folder",
      nearest: "set.csv",
    });
  });

  test("a file that is no picture by its extension is a problem of its row, and by its content too", async () => {
    const folder = await photos(["a.jpg", "notes.txt"]);
    const path = join(folder, "photos/*");
    expect((await read(path)).told).toEqual([
      "the file is no picture, video or sound by its extension: notes.txt",
    ]);
    const manifest = await openManifest(path, { defaults: { model: "edit", prompt: "brighter" } });
    const { problems } = await plan(manifest, { localInputs: new LocalInputs(path) });
    expect([...problems].map(({ place, message }) => [place.id, message])).toEqual([
      ["a", "the input file has the wrong content (no known media format)"],
      [undefined, "the file is no picture, video or sound by its extension"],
    ]);
  });
});

describe("what is not looked into", () => {
  test("hidden folders, node_modules, and outputs of jobs, unless the pattern names them", async () => {
    const folder = await folderWith({
      "a.jpg": "a",
      ".hidden/b.jpg": "b",
      "node_modules/c.jpg": "c",
      ".bulkgen/state.db": "",
      "outputs/film/d.jpg": "d",
      "sandbox-outputs/film/e.jpg": "e",
      "elsewhere/film/index.jsonl": "",
      "elsewhere/film/f.jpg": "f",
      "elsewhere/film/_superseded/g.jpg": "g",
      "more/outputs/h.jpg": "h",
    });
    const all = await read(folder, "**/*.jpg");
    expect(all.ids).toEqual(["a", "more/outputs/h"]);
    expect(all.notes).toContainEqual(
      "left out: elsewhere/film and 2 other folders, with outputs of jobs; a pattern that names the folder takes them",
    );
    expect((await read(folder, "elsewhere/film")).ids).toEqual(["f"]);
    expect((await read(folder, ".hidden/*.jpg")).ids).toEqual(["b"]);
    expect((await read(folder, "outputs/film/*")).ids).toEqual(["d"]);
    expect((await read(folder, "node_modules")).ids).toEqual(["c"]);
  });

  test("a link to a folder is not followed, and one to a file outside is refused with its row", async () => {
    const folder = await photos(["a.jpg"], { "secret/b.jpg": "b" });
    await symlink(join(folder, "secret"), join(folder, "photos/more"));
    await symlink(join(folder, "secret/b.jpg"), join(folder, "photos/b.jpg"));
    await symlink(join(folder, "photos"), join(folder, "same"));
    const { ids, notes } = await read(folder, "photos");
    expect(ids).toEqual(["a", "b"]);
    expect(notes).toContainEqual("left out: more, because links are not followed");
    const inputs = new LocalInputs(join(folder, "photos"));
    await inputs.read((await readManifest(join(folder, "photos"))).rows);
    expect(inputs.found.get("b.jpg")).toMatchObject({ wrong: "it lies outside the manifest's folder" });
    // A folder that is named is meant, also by a link.
    expect((await read(folder, "same")).ids).toEqual(["a", "b"]);
  });

  test("links whose target is gone are named, except hidden ones", async () => {
    const folder = await photos(["hall/a.jpg"]);
    await symlink("gone.jpg", join(folder, "photos/hall/b.jpg"));
    await symlink("loop.jpg", join(folder, "photos/hall/.loop.jpg"));
    const { ids, notes } = await read(folder, "photos");
    expect(ids).toEqual(["hall/a"]);
    expect(notes).toContainEqual("left out: hall/b.jpg, because its link is broken");
    await symlink(join(folder, "not-mounted"), join(folder, "photos/archive"));
    const both = await read(folder, "photos/**/*.jpg");
    expect(both.notes).toContainEqual("left out: archive and 1 other, because their links are broken");
  });

  test("a folder with a line break in its name, which no pattern reaches, is a problem", async () => {
    const folder = await photos(["a.jpg"]);
    await mkdir(join(folder, "photos/line\nbreak"));
    const { ids, told } = await read(folder, "photos");
    expect(ids).toEqual(["a"]);
    expect(told).toEqual(["the files of a folder cannot be listed: its name has a line break: line\nbreak"]);
  });
});

describe("files in a job file", () => {
  const job = (text: string, names: readonly string[]) => photos(names, { "up.yaml": text });

  test("are rows with the paths from the job's folder, in place of rows", async () => {
    const folder = await job('files: "photos/**/*.jpg"\ndefaults: { model: edit }\nprompt: "{{ stem }}"\n', [
      "hall/b.jpg",
      "a.jpg",
      "c.png",
    ]);
    const { name, rows, problems, notes } = await readManifest(join(folder, "up.yaml"));
    expect({ name, problems, notes }).toEqual({ name: "up", problems: [], notes: [] });
    expect(rows.map(({ id, prompt, inputs }) => [id, prompt, inputs.image_url])).toEqual([
      ["photos/a", "a", "photos/a.jpg"],
      ["photos/hall/b", "b", "photos/hall/b.jpg"],
    ]);
  });

  test("may be several patterns, folders and files, without those after an exclamation mark", async () => {
    const text = 'files: ["photos/a", photos/one.jpg, "photos/b/*.png", "!photos/a/raw", "!**/*-old.png"]\n';
    const names = ["a/1.jpg", "a/raw/2.jpg", "b/3.png", "b/3-old.png", "b/4.jpg", "one.jpg", "two.jpg"];
    const { ids } = await read(await job(text, names), "up.yaml");
    expect(ids).toEqual(["photos/a/1", "photos/b/3", "photos/one"]);
  });

  test("take the id that the job says", async () => {
    const folder = await job('files: photos\nid: "{{ dir }}-{{ stem }}"\n', ["a.jpg"]);
    const { ids, columns } = await read(folder, "up.yaml");
    expect(ids).toEqual(["photos-a"]);
    expect(columns).not.toContain("id");
  });

  test("never lie outside the job's folder, by a path or by a link", async () => {
    const folder = await photos(["a.jpg"], {
      "job/up.yaml": 'files: ["../photos/*.jpg", "x/../../photos", "linked/*.jpg"]\n',
      "job/fine.yaml": 'files: ["{../photos,.}/*.jpg", "*/../../photos/a.jpg"]\n',
      "job/b.jpg": "b",
    });
    await symlink(join(folder, "photos"), join(folder, "job/linked"));
    expect((await read(folder, "job/up.yaml")).told).toEqual(
      ["../photos/*.jpg", "x/../../photos", "linked/*.jpg"].map(
        (got) => `the files cannot be used: they lie outside the manifest's folder: ${got}`,
      ),
    );
    const { ids, told } = await read(folder, "job/fine.yaml");
    expect(ids).not.toContain("a");
    expect(told).toHaveLength(1);
  });
});
