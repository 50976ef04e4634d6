import { type Dirent, readdir } from "node:fs";
import { stat } from "node:fs/promises";
import { basename, dirname, join, posix, relative, resolve, sep } from "node:path";
import type { MediaField } from "../api/inputs.js";
import type { Problem } from "../core/problem.js";
import { count } from "../text/amounts.js";
import { isOutside } from "../text/inside.js";
import { leaves } from "../text/within.js";
import { fixedFolder, isOfFiles, isThere, manifestFolder, patternOf } from "./folder.js";
import { openBytes } from "./formats/bytes.js";
import { isLocalPath } from "./local-inputs.js";
import { isTemplate, rowsInMemory, type Source, type SourceRow, unreadSource } from "./shape/source.js";

/** Extensions by the field that takes such a file. What a file really is, its content says. */
const extensions: Readonly<Record<MediaField, readonly string[]>> = {
  image_url: ["jpg", "jpeg", "png", "webp", "gif", "avif", "heic", "heif", "tif", "tiff", "bmp"],
  video_url: ["mp4", "m4v", "mov", "webm", "mkv", "avi"],
  audio_url: ["mp3", "wav", "m4a", "aac", "ogg", "oga", "opus", "flac"],
};
const fields = Object.keys(extensions) as MediaField[];

/** The columns of a file's row that no template has to use. */
const columnsOfFile = ["path", "dir", "stem", "ext"];

/** Where rows come from that are files: `place` is the manifest's, for its problems. */
interface Wanted {
  place: Problem["place"];
  folder: string;
  patterns: readonly string[];
  /** The job says itself what the ids are. */
  hasIds: boolean;
}

/** The rows of a job file that names files in its folder. */
export async function filesOfJob(
  file: string,
  folder: string,
  patterns: readonly string[],
  hasIds: boolean,
): Promise<Source> {
  return sourceOf(await found({ place: { file, row: null, column: "files" }, folder, patterns, hasIds }));
}

/** The rows of a manifest that is a folder or a pattern. */
export async function filesAt(manifest: string): Promise<Source> {
  return sourceOf(await foundAt(manifest));
}

/** Why a folder or a pattern has no rows; null if it has some. */
export async function whyNoFiles(manifest: string): Promise<Problem | null> {
  const { paths, problems } = await foundAt(manifest);
  return paths.length > 0 ? null : (problems[0] ?? null);
}

async function foundAt(manifest: string): Promise<Found> {
  const place = { file: manifest, row: null };
  const folder = manifestFolder(manifest);
  const made = await found({ place, folder, patterns: [patternOf(manifest)], hasIds: false });
  if (made.paths.length > 0 || folder !== manifest || made.isPartial) return made;
  // A folder without media was probably mistaken for the sheet in it.
  const read = await openBytes(manifest);
  return "problem" in read ? { ...made, problems: [read.problem] } : made;
}

interface Found {
  wanted: Wanted;
  /** Relative to the folder, with `/` between folders, in the order of the rows. */
  paths: readonly string[];
  problems: Problem[];
  notes: string[];
  /** Some folders could not be read. */
  isPartial: boolean;
}

function sourceOf({ wanted, paths, problems, notes }: Found): Source {
  const [first] = problems;
  if (paths.length === 0 && first !== undefined) return { ...unreadSource(first), problems, notes };
  const { place, hasIds } = wanted;
  const ids = hasIds ? null : idsOf(paths);
  const rows: SourceRow[] = [];
  const wrong: Problem[] = [];
  const used = new Set<string>();
  for (const [index, path] of paths.entries()) {
    const row = { number: index + 1, file: place.file };
    const field = fieldOf(path);
    const cells = { ...(ids === null ? {} : { id: ids[index] as string }), ...cellsOf(path, field) };
    if (field === null) wrong.push(noMedia(path, row));
    else if (isTemplate(path)) wrong.push(likeTemplate(path, row));
    else {
      used.add(field);
      rows.push({ ...row, cells });
    }
  }
  return {
    columns: [...(hasIds ? [] : ["id"]), ...columnsOfFile, ...fields.filter((field) => used.has(field))],
    addedColumns: columnsOfFile,
    problems,
    notes,
    batches: rowsInMemory({ rows, problems: wrong }),
  };
}

function cellsOf(path: string, field: MediaField | null): Record<string, string> {
  const { dir, name, ext } = posix.parse(path);
  // An address has a colon too, and a reference begins with @.
  const isPlain = isLocalPath(path) && path.trim() === path;
  const input = isPlain ? path : `./${path}`;
  return {
    path,
    ...(dir === "" ? {} : { dir }),
    stem: name,
    ...(ext === "" ? {} : { ext: ext.slice(1) }),
    ...(field === null ? {} : { [field]: input }),
  };
}

/** Paths without their extensions, which are kept in the names of files that differ in nothing else. */
function idsOf(paths: readonly string[]): string[] {
  const stems = paths.map((path) => path.slice(0, path.length - posix.extname(path).length));
  const alike = (text: string) => text.normalize("NFC").toLowerCase();
  const times = new Map<string, number>();
  for (const stem of stems) times.set(alike(stem), (times.get(alike(stem)) ?? 0) + 1);
  return paths.map((path, index) => {
    const stem = stems[index] as string;
    const isShared = (times.get(alike(stem)) ?? 0) > 1;
    const extension = posix.extname(path).slice(1);
    // With a dot, it would be taken for the extension of the output.
    return isShared && extension !== "" ? `${stem}-${extension}` : stem;
  });
}

function fieldOf(path: string): MediaField | null {
  const extension = posix.extname(path).slice(1).toLowerCase();
  return fields.find((field) => extensions[field].includes(extension)) ?? null;
}

/** The values of columns are templates too, so the file would not be found. */
function likeTemplate(path: string, { file, number }: { file: string; number: number }): Problem {
  return {
    place: { file, row: number, column: "path" },
    message: "the name of the file looks like a template",
    expected: "a name without {{ and {%",
    got: path,
  };
}

function noMedia(path: string, { file, number }: { file: string; number: number }): Problem {
  return {
    place: { file, row: number, column: "path" },
    message: "the file is no picture, video or sound by its extension",
    expected: `a pattern that matches only files with extensions such as .${fields.map((field) => extensions[field][0]).join(", .")}`,
    got: path,
  };
}

async function found(wanted: Wanted): Promise<Found> {
  const { place, folder, patterns } = wanted;
  const made: Found = { wanted, paths: [], problems: [], notes: [], isPartial: false };
  const outside = patterns.filter((written) => isOutside(folder, exceptionOf(written) ?? written));
  if (outside.length > 0) return { ...made, problems: outside.map((got) => filesOutside(place, got)) };
  const { glob, escapePath } = await import("tinyglobby");
  const globs = patterns.map((written) => {
    const except = exceptionOf(written);
    const { start, rest } = partsOf(folder, except ?? written, escapePath, except === null ? media : "**");
    return {
      start,
      text: `${except === null ? "" : "!"}${posix.join(escapePath(within(folder, start)), rest)}`,
    };
  });
  const crawl = new Crawl(globs.filter(({ text }) => !text.startsWith("!")).map(({ start }) => start));
  const paths = await glob(
    globs.map(({ text }) => text),
    {
      cwd: folder,
      caseSensitiveMatch: false,
      expandDirectories: false,
      followSymbolicLinks: false,
      fs: { readdir: crawl.readdir },
    },
  );
  const unread = crawl.unread.map(({ path, why }) => ({
    place,
    message: `the files of a folder cannot be listed: ${why}`,
    expected: "folders that can be read, or a pattern that leaves this one out",
    got: within(folder, path) || folder,
  }));
  const missing = globs.find(({ start }) => !isThere(start));
  const isOpen = patterns.some((each) => each.split("{").length > each.split("}").length);
  const none = {
    place,
    message:
      missing === undefined
        ? `no file in ${folder} matches${isOpen ? ", for a brace is not closed" : ""}`
        : `there is no folder ${missing.start}`,
    expected: "a pattern that matches files, such as photos/**/*.jpg",
    got: patterns.join(", "),
  };
  return {
    wanted,
    paths: inNaturalOrder(paths),
    problems: paths.length === 0 && unread.length === 0 ? [none] : unread,
    notes: crawl.notes(folder),
    isPartial: unread.length > 0,
  };
}

/** All files whose extensions are known. */
const media = `**/*.{${fields.flatMap((field) => extensions[field]).join(",")}}`;

/** The pattern whose files are left out, if it is one. */
function exceptionOf(pattern: string): string | null {
  return /^!(?!\()/.test(pattern) ? pattern.slice(1) : null;
}

/** The folder that a pattern names and what it says of the files in it; of a folder, `all` of them. */
function partsOf(
  folder: string,
  pattern: string,
  literal: (path: string) => string,
  all: string,
): { start: string; rest: string } {
  const path = resolve(folder, pattern);
  if (!isThere(path)) {
    const start = fixedFolder(path);
    return { start, rest: within(start, path) };
  }
  return isOfFiles(path)
    ? { start: path, rest: all }
    : { start: dirname(path), rest: literal(basename(path)) };
}

function within(folder: string, path: string): string {
  return relative(folder, path).replaceAll(sep, "/");
}

function filesOutside(place: Problem["place"], got: string): Problem {
  return {
    place,
    message: "the files cannot be used: they lie outside the manifest's folder",
    expected: "a pattern of files in the manifest's folder, such as photos/**/*.jpg",
    got,
  };
}

/** Folder by folder, with numbers by their value: `photo-2` comes before `photo-10`. The same on every machine. */
function inNaturalOrder(paths: readonly string[]): string[] {
  const { compare } = new Intl.Collator("en", { numeric: true });
  const byParts = (one: readonly string[], other: readonly string[]): number => {
    for (let at = 0; at < Math.min(one.length, other.length); at++) {
      const [a, b] = [one[at] as string, other[at] as string];
      if (a === b) continue;
      return compare(a, b) || (a < b ? -1 : 1);
    }
    return one.length - other.length;
  };
  return paths
    .map((path) => path.split("/"))
    .sort(byParts)
    .map((parts) => parts.join("/"));
}

/** What the archive keeps beside its outputs. */
const besideOutputs = /^_(?:quarantine|superseded|thumbs?|gallery)$/;

/** Lists folders for the search, and remembers what it does not look into. */
class Crawl {
  readonly unread: { path: string; why: string }[] = [];
  private readonly own: string[] = [];
  private readonly links: string[] = [];
  private readonly broken: string[] = [];

  /** `named` are the folders that the patterns name without a wildcard. */
  constructor(private readonly named: readonly string[]) {}

  readonly readdir = ((
    path: string,
    options: { withFileTypes: true },
    done: (error: Error | null, entries: Entry[]) => void,
  ) => {
    readdir(path, options, (error, entries) => {
      if (error === null) {
        void this.kept(path, entries).then((kept) => done(null, kept));
        return;
      }
      if (error.code !== "ENOENT") this.unread.push({ path, why: error.code ?? error.message });
      done(null, []);
    });
  }) as unknown as typeof readdir;

  notes(folder: string): string[] {
    const listed = (paths: readonly string[], one = "other folder", several = `${one}s`) => {
      const [first, ...others] = paths.map((path) => within(folder, path)).toSorted();
      return others.length === 0 ? `${first}` : `${first} and ${count(others.length, one, several)}`;
    };
    const { broken } = this;
    const whose = broken.length === 1 ? "its link is" : "their links are";
    return [
      ...(this.own.length === 0
        ? []
        : [
            `left out: ${listed(this.own)}, with outputs of jobs; a pattern that names the folder takes them`,
          ]),
      ...(this.links.length === 0 ? [] : [`left out: ${listed(this.links)}, because links are not followed`]),
      ...(broken.length === 0
        ? []
        : [`left out: ${listed(broken, "other", "others")}, because ${whose} broken`]),
    ];
  }

  private async kept(path: string, entries: readonly Dirent[]): Promise<Entry[]> {
    const names = new Set(entries.map(({ name }) => name));
    const isArchive = names.has(indexName);
    if (isArchive && !this.isNamed(path)) {
      this.own.push(path);
      return [];
    }
    const kept: Entry[] = [];
    for (const entry of entries) {
      const { name } = entry;
      const below = join(path, name);
      if (!this.isNamed(below)) {
        if (name === "node_modules" || (isArchive && besideOutputs.test(name))) continue;
        if (names.has(".bulkgen") && outputFolders.includes(name)) {
          this.own.push(below);
          continue;
        }
        if (entry.isDirectory() && /[\n\r\u2028\u2029]/.test(name)) {
          this.unread.push({ path: below, why: "its name has a line break" });
          continue;
        }
      }
      const seen = entry.isSymbolicLink() ? await this.followed(below, name) : entry;
      if (seen !== null) kept.push(seen);
    }
    return kept;
  }

  /** What a link leads to, if it is a file, or a folder that a pattern names. Where it lies is checked with each input. */
  private async followed(path: string, name: string): Promise<Entry | null> {
    const facts = await stat(path).catch(() => null);
    const isFolder = facts?.isDirectory() ?? false;
    if (facts === null || (isFolder && !this.isNamed(path))) {
      if (!name.startsWith(".")) (facts === null ? this.broken : this.links).push(path);
      return null;
    }
    const no = () => false;
    return { name, isFile: () => facts.isFile(), isDirectory: () => isFolder, isSymbolicLink: no };
  }

  private isNamed(path: string): boolean {
    return this.named.some((named) => !leaves(path, named));
  }
}

type Entry = Pick<Dirent, "name" | "isFile" | "isDirectory" | "isSymbolicLink">;

/** Where a workspace keeps its outputs, and the file in each folder of an archive. */
const outputFolders = ["outputs", "sandbox-outputs"];
const indexName = "index.jsonl";
