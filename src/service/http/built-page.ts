import { readdirSync, readFileSync } from "node:fs";
import { extname, join, relative } from "node:path";

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

export interface PageFile {
  type: string;
  content: Uint8Array<ArrayBuffer>;
}

/** A page as it was built (scripts/page.mjs). Its files are read when the first of them is asked for: a rehearsal asks for none. */
export class BuiltPage {
  private files: ReadonlyMap<string, PageFile> | undefined;

  constructor(private readonly folder: string) {}

  /** The file at this path below the page's address, such as `index.html`. */
  file(path: string): PageFile | undefined {
    this.files ??= this.read();
    return this.files.get(path);
  }

  private read(): ReadonlyMap<string, PageFile> {
    const entries = readdirSync(this.folder, { recursive: true, withFileTypes: true });
    return new Map(
      entries.flatMap((entry) => {
        const type = types[extname(entry.name)];
        if (!entry.isFile() || type === undefined) return [];
        const path = join(entry.parentPath, entry.name);
        const name = relative(this.folder, path).replaceAll("\\", "/");
        return [[name, { type, content: new Uint8Array(readFileSync(path)) }] as const];
      }),
    );
  }
}
