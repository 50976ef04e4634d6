import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { wayOut } from "../../src/store/open.js";
import { main, newPlace, type Place, run } from "./command.js";
import { sheet } from "./sheet.js";

/** Root may write everything, unless that is taken from it: then it may do what the modes of its own files allow. */
const restrained =
  process.getuid?.() === 0 ? ["setpriv", "--inh-caps=-all", "--bounding-set=-all", "--"] : [];

/** Runs the built command as a user who may only read what others may. */
function asReader(place: Place, line: string) {
  const env = { ...place.env, HOME: tmpdir(), XDG_STATE_HOME: "", XDG_CONFIG_HOME: "" };
  const words = [...restrained, process.execPath, main, ...line.split(" "), "--sandbox"];
  const [program = "", ...args] = words;
  return spawnSync(program, args, { cwd: place.folder, env, encoding: "utf8" });
}

/** Gives or takes what the owner has allowed, in the whole folder. */
function setModes(folder: string, folderMode: number, fileMode: number): void {
  chmodSync(folder, 0o755);
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) setModes(path, folderMode, fileMode);
    else chmodSync(path, fileMode);
  }
  chmodSync(folder, folderMode);
}

const reading = [
  "status",
  "status --all",
  "export",
  "find picture",
  "verify --read-data",
  "report --since 1d",
  "pick",
];

test("a user who may only read the workspace can run the commands that only read, and changes nothing", async () => {
  const place = newPlace();
  place.write("set.csv", sheet(2));
  expect(await run(place, ["run", "set.csv", "--sandbox", "--yes"])).toMatchObject({ code: 0 });
  const before = place.files();
  chmodSync(dirname(place.root), 0o755);
  setModes(place.root, 0o555, 0o444);
  try {
    for (const line of reading) {
      const end = asReader(place, line);
      expect(end.status, `${line}: ${end.stderr}`).toBe(0);
    }
    const beside = asReader(place, "gallery");
    expect(beside.status).toBe(2);
    expect(beside.stderr).toContain(join("sandbox-outputs", "set", "gallery.html"));
    expect(beside.stderr).toContain("cannot be written (EACCES)");
    expect(beside.stderr).toContain("write the page elsewhere with --to FOLDER");
    const elsewhere = mkdtempSync(join(tmpdir(), "bulkgen-page-"));
    for (const [to, page] of [
      [elsewhere, "gallery.html"],
      [join(elsewhere, "mine.html"), "mine.html"],
    ] as const) {
      const end = asReader(place, `gallery --to ${to}`);
      expect(end.status, end.stderr).toBe(0);
      const [, path = ""] =
        /"path":"([^"]+a01\.png)"/.exec(readFileSync(join(elsewhere, page), "utf8")) ?? [];
      expect(statSync(join(elsewhere, path)).isFile(), path).toBe(true);
    }
    expect(asReader(place, `gallery --to ${join(elsewhere, "set.csv")}`).stderr).toContain("ends with .html");
    expect(readdirSync(elsewhere).toSorted()).toEqual(["gallery.html", "mine.html"]);
    rmSync(elsewhere, { recursive: true });
    const refused = asReader(place, "run set.csv --yes --fresh");
    expect(refused.status).toBe(2);
    expect(refused.stderr).not.toMatch(/^ {4}at /m);
  } finally {
    setModes(place.root, 0o755, 0o644);
  }
  expect(place.files()).toEqual(before);
});

test("what keeps a database from being opened is named truly", () => {
  const missing = Object.assign(new Error("SQLite cannot be loaded"), { name: "SqliteMissing" });
  expect(wayOut(missing)).toContain("install bulkgen again");
  expect(wayOut(Object.assign(new Error("too many open files"), { code: "EMFILE" }))).toContain("ulimit -n");
  const place = newPlace();
  place.write("some.db", "");
  const message = `${join(place.folder, "some.db")}: unable to open database file`;
  const refused = Object.assign(new Error(message), { code: "SQLITE_CANTOPEN" });
  expect(wayOut(refused)).toContain("ulimit -n");
});
