import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

/**
 * P21: the key that commands are given here belongs to nobody, so wherever it turns up it was copied. Every output of
 * every process, and at the end every file in every place, is searched for it, also as it looks when it was encoded.
 */
export const testKey = "svc_CANARYcanaryCANARYcanaryCANARY01";

/** What of a key is secret, in the forms in which programs write such things down. */
function formsOf(key: string): Map<string, Buffer> {
  const secret = Buffer.from(key.slice(4));
  const forms = new Map([
    ["as it is", secret],
    ["in hexadecimal", Buffer.from(secret.toString("hex"))],
    ["in capital hexadecimal", Buffer.from(secret.toString("hex").toUpperCase())],
    ["URL-encoded", Buffer.from([...secret].map((byte) => `%${byte.toString(16)}`).join(""))],
    ["in UTF-16", Buffer.from(secret.toString("latin1"), "utf16le")],
  ]);
  // What stands before it shifts the letters of base64; those that mix it with a neighbour say nothing.
  for (const shift of [0, 1, 2]) {
    const text = Buffer.concat([Buffer.alloc(shift), secret])
      .toString("base64")
      .replaceAll("=", "");
    forms.set(`in base64, shifted by ${shift}`, Buffer.from(text.slice(shift === 0 ? 0 : shift + 1, -1)));
  }
  return forms;
}

const forms = [...formsOf(testKey)];

/** How the key stands in these bytes, in words; null when it does not. */
export function tracesOfKey(bytes: Uint8Array | string): string | null {
  const found = Buffer.from(bytes as Uint8Array);
  return forms.find(([, form]) => found.includes(form))?.[0] ?? null;
}

/** Files in which a person keeps a key: there it may be, for they or the test put it there. */
const keyFiles = new Set([".env", "key"]);

export interface Searched {
  files: number;
  bytes: number;
  outputs: number;
  /** Where the key was found, and how it stood there. */
  found: string[];
}

/** Outputs of processes that have ended, since the last search. */
const outputs: { of: string; trace: string | null }[] = [];

export function searchOutput(of: string, text: string): void {
  outputs.push({ of, trace: tracesOfKey(text) });
}

/** Searches all files below these folders, and reports the outputs so far. */
export function searchPlaces(folders: readonly string[]): Searched {
  const searched: Searched = { files: 0, bytes: 0, outputs: outputs.length, found: [] };
  for (const { of, trace } of outputs.splice(0))
    if (trace !== null) searched.found.push(`${trace} in what ${of} printed`);
  const files = folders
    .flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && !keyFiles.has(basename(entry.name)));
  for (const entry of files) {
    const path = join(entry.parentPath, entry.name);
    const bytes = readFileSync(path);
    searched.files++;
    searched.bytes += bytes.length;
    const trace = tracesOfKey(bytes);
    if (trace !== null) searched.found.push(`${trace} in ${path}`);
  }
  return searched;
}
