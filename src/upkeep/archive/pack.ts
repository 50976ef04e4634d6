import { extname, join } from "node:path";
import { type PassThrough, Readable } from "node:stream";
import type { ZipFile } from "yazl";
import { bucketAddress } from "../../archive/disk/bucket-disk.js";
import { jobFolder } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { Indexes } from "../../archive/index-file.js";
import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import type { Run } from "../../core/ports/store.js";
import { count } from "../../text/amounts.js";
import { shellWord } from "../../text/shell.js";
import { writeWhole } from "../../whole-file.js";
import type { PackedFile } from "./export.js";
import { locator } from "./folder-of-file.js";

export interface Pack {
  /** Absolute path of the archive to write. */
  zip: string;
  /** Every run of the job, oldest first. */
  runs: readonly Run[];
  files: readonly PackedFile[];
  /** Name and content of the sheet to include beside the index; null for the files alone. */
  sheet: { name: string; content: AsyncIterable<string | Uint8Array> } | null;
  /** Whether a text file with its prompt stands beside each file. */
  captions: boolean;
  /** A page of the files and its thumbnails; null for none. */
  page: { html: string; thumbnails: readonly { path: string; name: string }[] } | null;
  clock: Clock;
  signal: AbortSignal;
}

/**
 * Streams files and their index lines into a ZIP: media do not fit into memory. The ZIP gets its final name only when it
 * is complete. Throws EarlyExit, and writes nothing, when a file is missing or has another size than when it was archived.
 */
export async function pack({ zip, runs, files, clock, signal, ...more }: Pack): Promise<void> {
  const found = located(files, runs);
  const { ZipFile: NewZip } = await import("yazl");
  const archive = new NewZip();
  const over = new AbortController();
  const output = archive.outputStream as PassThrough;
  const written = writeWhole(zip, output, AbortSignal.any([signal, over.signal]));
  // The ZIP library reports a file that it cannot read by its own event.
  archive.on("error", (error) => output.destroy(error));
  try {
    addTo(archive, found, { ...more, mtime: new Date(clock.now()) });
    await written;
  } catch (error) {
    over.abort();
    await written.catch(() => undefined);
    if (signal.aborted) throw new EarlyExit("interrupted", "interrupted; nothing was packed");
    throw error;
  }
}

/** The files, their lines of the index, and the sheet: each is read when the ones before it are written. */
function addTo(
  archive: ZipFile,
  found: readonly FoundFile[],
  { sheet, captions, page, mtime }: Pick<Pack, "sheet" | "captions" | "page"> & { mtime: Date },
): void {
  // Media are compressed already.
  for (const { folder, file, name } of found) archive.addFile(join(folder, file), name, { compress: false });
  for (const { path, name } of page?.thumbnails ?? []) archive.addFile(path, name, { compress: false });
  const captioned = new Set<string>();
  for (const { name, prompt } of captions ? found : []) {
    const plain = `${name.slice(0, name.length - extname(name).length)}.txt`;
    // Two files may differ in their extensions alone.
    const caption = captioned.has(plain) ? `${name}.txt` : plain;
    captioned.add(caption);
    archive.addBuffer(Buffer.from(prompt ?? ""), caption, { mtime });
  }
  if (page) archive.addBuffer(Buffer.from(page.html), "gallery.html", { mtime });
  const add = (name: string, content: AsyncIterable<string | Uint8Array>) =>
    archive.addReadStreamLazy(name, { mtime }, (give) => {
      const stream = Readable.from(content);
      stream.on("error", (error) => archive.emit("error", error));
      give(null, stream);
    });
  if (sheet) {
    add("index.jsonl", indexLines(found));
    add(sheet.name, sheet.content);
  }
  archive.end();
}

async function* indexLines(found: readonly FoundFile[]): AsyncGenerator<string> {
  const indexes = new Indexes(nodeDisk);
  for (const { folder, file, name } of found) {
    const index = await indexes.of(folder);
    const identity = index.identityAt(file);
    const line = typeof identity === "string" ? index.find(identity) : undefined;
    if (line) yield `${JSON.stringify({ ...line, file: name })}\n`;
  }
}

interface FoundFile {
  folder: string;
  file: string;
  /** In the ZIP. */
  name: string;
  prompt: string | null;
}

/** The path of each file. Throws EarlyExit if one is missing. */
function located(files: Pack["files"], runs: Pack["runs"]): FoundFile[] {
  const folderOf = locator(runs);
  const missing: string[] = [];
  let inBucket: string | null = null;
  const found = files.flatMap((each) => {
    const { file, name, prompt, bucket = null } = each;
    const folder = folderOf(each);
    if (folder === undefined) {
      missing.push(file);
      inBucket ??= bucket;
    }
    return folder === undefined ? [] : [{ folder, file, name, prompt }];
  });
  if (missing.length === 0) return found;
  const named = missing.slice(0, namesMax).join(", ");
  const more = missing.length > namesMax ? ` and ${missing.length - namesMax} more` : "";
  const newest = runs.at(-1);
  const own = newest === undefined ? "" : jobFolder(newest);
  if (inBucket !== null)
    throw new EarlyExit(
      "usage",
      `${count(missing.length, "file is", "files are")} in ${inBucket} and not on this disk: ${named}${more}. ` +
        `Nothing was packed. Download the folder first, such as with \`aws s3 sync ${bucketAddress(inBucket, own, "")} ${shellWord(own)}\`.`,
    );
  const sandbox = newest?.options.sandbox ? " --sandbox" : "";
  throw new EarlyExit(
    "failed",
    `${count(missing.length, "file is", "files are")} missing or changed: ${named}${more}. ` +
      `Nothing was packed. \`bulkgen verify${sandbox} --repair\` downloads them again, free of charge.`,
  );
}

const namesMax = 5;
