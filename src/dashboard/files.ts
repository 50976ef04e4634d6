import { createReadStream, realpathSync, statSync } from "node:fs";
import { dirname, sep } from "node:path";
import { Readable } from "node:stream";
import PQueue from "p-queue";
import { thumbnailOf } from "../archive/check/thumbnail.js";
import { jobFolder } from "../archive/disk/names.js";
import { nodeDisk } from "../archive/disk/node-disk.js";
import type { BrowsedFile } from "../store/browse/pages.js";
import { pathOf } from "./answers.js";
import { Refused } from "./refused.js";

/** Shrinking a picture is the dearest thing that the page asks for, and a run may need the processor more. */
const shrinking = new PQueue({ concurrency: 1 });

/** Content types that a browser shows; anything else is only downloaded. */
const shown = /^(image\/(png|jpeg|webp|gif|avif)|video\/(mp4|webm)|audio\/[\w.+-]+)$/;

/** Answers with an archived file, or with the part of it that a player asks for. */
export function fileAnswer(file: BrowsedFile, range: string | undefined): Response {
  const path = existing(file);
  const { size } = statSync(path);
  const part = partOf(range, size);
  const headers = {
    "Content-Type": shown.test(file.mime) ? file.mime : "application/octet-stream",
    "Accept-Ranges": "bytes",
    // The address names the item's output, and its content never changes.
    "Cache-Control": "private, max-age=3600",
    ...(shown.test(file.mime) ? {} : { "Content-Disposition": "attachment" }),
  };
  if (part === "unsatisfiable")
    return new Response(null, { status: 416, headers: { ...headers, "Content-Range": `bytes */${size}` } });
  const { start, end } = part ?? { start: 0, end: size - 1 };
  const body = size === 0 ? null : Readable.toWeb(createReadStream(path, { start, end }));
  return new Response(body as ReadableStream | null, {
    status: part === null ? 200 : 206,
    headers: {
      ...headers,
      "Content-Length": String(end - start + 1),
      ...(part === null ? {} : { "Content-Range": `bytes ${start}-${end}/${size}` }),
    },
  });
}

/** Answers with a small picture of an archived one. It is made once, and kept where the gallery keeps it. */
export async function thumbnailAnswer(file: BrowsedFile): Promise<Response> {
  existing(file);
  const folder = jobFolder({ outFolder: file.outFolder, jobName: file.job });
  const small = await shrinking.add(() => thumbnailOf(nodeDisk, folder, file));
  if (!small) return fileAnswer(file, undefined);
  const headers = { "Content-Type": "image/webp", "Cache-Control": "private, max-age=86400" };
  const body = Readable.toWeb(createReadStream(`${folder}/${small.file}`)) as ReadableStream;
  return new Response(body, { headers });
}

/** The path of the file. Throws Refused if it is gone, or is not in the folder of its job. */
export function existing(file: BrowsedFile): string {
  const path = pathOf(file);
  try {
    const folder = realpathSync(jobFolder({ outFolder: file.outFolder, jobName: file.job }));
    if (`${realpathSync(dirname(path))}${sep}`.startsWith(`${folder}${sep}`) && statSync(path).isFile())
      return path;
  } catch {
    // Said below.
  }
  throw new Refused(
    `${file.file} is not where it was archived. \`bulkgen verify\` finds out what is missing.`,
    "missing",
  );
}

/** The part that a Range header asks for; null for the whole. Of several ranges the whole is sent, as HTTP allows. */
function partOf(
  range: string | undefined,
  size: number,
): { start: number; end: number } | "unsatisfiable" | null {
  const [match, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(range ?? "") ?? [];
  if (match === undefined || (first === "" && last === "")) return null;
  const start = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size - 1 : Math.min(Number(last), size - 1);
  return start > end || start >= size ? "unsatisfiable" : { start, end };
}
