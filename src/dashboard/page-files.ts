import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** The files of the page itself, as they were built. They are few and small, so they are read once. */
export class PageFiles {
  private readonly files = new Map<string, { type: string; content: Uint8Array<ArrayBuffer> }>();

  constructor(folder: string) {
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      const type = types[extname(entry.name)];
      if (!entry.isFile() || type === undefined) continue;
      const path = join(entry.parentPath, entry.name);
      const address = path.slice(folder.length).replaceAll("\\", "/");
      this.files.set(address.startsWith("/") ? address : `/${address}`, {
        type,
        content: new Uint8Array(readFileSync(path)),
      });
    }
  }

  answer(path: string): Response | null {
    const file = this.files.get(path === "/" ? "/index.html" : path);
    if (file === undefined) return null;
    // The names of the parts change with their content.
    const caching = path.startsWith("/assets/") ? "public, max-age=31536000, immutable" : "no-cache";
    return new Response(file.content, { headers: { "Content-Type": file.type, "Cache-Control": caching } });
  }
}
