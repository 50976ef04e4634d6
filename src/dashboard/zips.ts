import { createReadStream, type ReadStream, statSync } from "node:fs";
import { posix } from "node:path";
import { type PassThrough, Readable } from "node:stream";
import { safeName } from "../archive/disk/names.js";
import type { Clock } from "../clock.js";
import type { Zipped } from "../documents/page.js";
import type { BrowsedFile, Browser } from "../store/browse/browser.js";
import { finalNames, finalSetOf, missingText, readRows } from "../upkeep/archive/sheet-rows.js";
import { newestRun } from "../workspace/find-run.js";
import { withStore } from "../workspace/state.js";
import type { Workspace } from "../workspace/workspace.js";
import { existing } from "./files.js";
import { Refused } from "./refused.js";
import type { WorkspaceWatch } from "./workspace-watch.js";

/** Lists that can still be loaded; older ones are forgotten. */
const keptMax = 20;
const pageFiles = 500;

/** A file, and how it is called in the ZIP if that differs. */
type NamedFile = BrowsedFile & { packedAs?: string };

/** Archived files as one ZIP, packed while it is sent: media do not fit into memory. */
export class Zips {
  private readonly prepared = new Map<number, { name: string; files: NamedFile[] }>();
  private lastId = 0;

  constructor(
    private readonly watch: WorkspaceWatch,
    private readonly workspace: Workspace,
    private readonly clock: Clock,
  ) {}

  /**
   * `note` says what the set of a sheet lacks, and which of its files do not go together; null if it is whole. Rejects with Refused
   * when a file is missing, before anything is sent.
   */
  async prepare(wanted: Zipped): Promise<{ id: number; name: string; note: string | null }> {
    const browser = await this.watch.browser();
    const isFinal = "run" in wanted && wanted.final === true;
    if ("run" in wanted && (await browser.run(wanted.run)) === null)
      throw new Refused(`there is no run ${wanted.run}`, "missing");
    const files = isFinal
      ? await this.finalFiles(browser, wanted.run)
      : "run" in wanted
        ? (await filesOfRun(browser, wanted.run)).filter(({ approval }) => approval !== "rejected")
        : await filesNamed(browser, wanted.files);
    if (files.length === 0)
      throw new Refused(isFinal ? "no row has a final file yet" : "there are no files to pack");
    for (const file of files) existing(file);
    const jobs = new Set(files.map(({ job }) => job));
    const name = `${jobs.size === 1 ? safeName([...jobs][0] ?? "").replaceAll("/", "-") : "bulkgen"}.zip`;
    const id = ++this.lastId;
    this.prepared.set(id, { name, files });
    this.prepared.delete(id - keptMax);
    return { id, name, note: isFinal ? await this.noteOn(wanted.run) : null };
  }

  private async finalFiles(browser: Browser, run: number): Promise<NamedFile[]> {
    const names = await withStore(this.workspace, this.clock, async (store) => {
      const { rows } = await readRows(store, await newestRun(run)(store), true);
      return finalNames(rows);
    });
    const files: NamedFile[] = [];
    for (const [id, own] of names)
      for (let number = 1; number <= own.size; number++) {
        const file = await browser.file(id, number);
        if (file !== null) files.push({ ...file, packedAs: own.get(file.file) ?? file.file });
      }
    return files;
  }

  private noteOn(run: number): Promise<string | null> {
    return withStore(this.workspace, this.clock, async (store) => {
      const { missing, mixed } = await finalSetOf(store, await newestRun(run)(store));
      const notes = [missingText(missing), mixed].filter((text) => text !== null);
      return notes.length === 0 ? null : notes.join("\n");
    });
  }

  async answer(id: number): Promise<Response> {
    const zip = this.prepared.get(id);
    if (zip === undefined) throw new Refused("this ZIP is no longer prepared; ask for it again", "missing");
    const { ZipFile } = await import("yazl");
    const archive = new ZipFile();
    const output = archive.outputStream as PassThrough;
    // It tells of a file that it cannot read by an event of its own.
    archive.on("error", (error) => output.destroy(error));
    // It would keep the file open that it reads while the download is given up.
    let reading: ReadStream | null = null;
    output.once("close", () => reading?.destroy());
    const names = new Set<string>();
    for (const file of zip.files) {
      const name = freeName(`${safeName(file.job)}/${file.packedAs ?? file.file}`, names);
      const path = existing(file);
      const { size, mode } = statSync(path);
      // Media are compressed already.
      const facts = { compress: false, mtime: new Date(file.savedAt), size, mode };
      archive.addReadStreamLazy(name, facts, (give) => {
        if (output.destroyed) return;
        reading = createReadStream(path);
        give(null, reading);
      });
    }
    archive.end();
    const body = Readable.toWeb(output) as ReadableStream;
    return new Response(body, {
      headers: {
        "Content-Type": "application/zip",
        "Content-Disposition": `attachment; filename*=UTF-8''${encodeURIComponent(zip.name)}`,
        "Cache-Control": "no-store",
      },
    });
  }
}

/** Two runs may have files of one name in two folders. Names that differ in case alone are one file on many disks. */
function freeName(name: string, taken: Set<string>): string {
  const { dir, name: stem, ext } = posix.parse(name);
  let free = name;
  for (let number = 2; taken.has(free.toLowerCase()); number++) free = `${dir}/${stem} (${number})${ext}`;
  taken.add(free.toLowerCase());
  return free;
}

async function filesNamed(
  browser: Browser,
  wanted: readonly { item: number; number: number }[],
): Promise<BrowsedFile[]> {
  // A file that is asked for many times is packed once.
  const once = new Map(wanted.map((each) => [`${each.item} ${each.number}`, each]));
  const files: BrowsedFile[] = [];
  for (const { item, number } of once.values()) {
    const file = await browser.file(item, number);
    if (file !== null) files.push(file);
  }
  return files;
}

async function filesOfRun(browser: Browser, run: number): Promise<BrowsedFile[]> {
  const files: BrowsedFile[] = [];
  for (let before: number | null = null; ; ) {
    const page = await browser.files({ text: "", before, run, limit: pageFiles });
    const last = page.at(-1)?.itemId ?? 0;
    // The last item may have more files: they come with the next page.
    const whole = page.length < pageFiles ? page : page.filter(({ itemId }) => itemId !== last);
    files.push(...whole);
    if (page.length < pageFiles) return files;
    before = last + 1;
  }
}
