import { createReadStream, lstatSync, realpathSync } from "node:fs";
import { dirname, sep } from "node:path";
import { Readable } from "node:stream";
import PQueue from "p-queue";
import { thumbnailOf } from "../archive/check/thumbnail.js";
import { bucketAddress } from "../archive/disk/bucket-disk.js";
import { jobFolder } from "../archive/disk/names.js";
import { nodeDisk } from "../archive/disk/node-disk.js";
import type { Disk } from "../core/ports/disk.js";
import type { BrowsedFile } from "../store/browse/browser.js";
import type { Environment } from "../text/environment.js";
import { diskWith } from "../workspace/outputs-place.js";
import { pathOf } from "./answers.js";
import { Refused } from "./refused.js";

/** Shrinking a picture is the most expensive request of the page, and a run may need the processor more. */
const shrinking = new PQueue({ concurrency: 1 });

/** Content types that a browser shows; anything else is only downloaded. */
const shown = /^(image\/(png|jpeg|webp|gif|avif)|video\/(mp4|webm)|audio\/[\w.+-]+)$/;

/** The page shows an SVG as an image, which runs no script. Opened by itself, it is saved. */
const drawing = "image/svg+xml";

/** Answers with an archived file, or with the part of it that a player asks for. */
export async function fileAnswer(
  file: BrowsedFile,
  range: string | undefined,
  environment: Environment,
): Promise<Response> {
  const { disk, path } = await found(file, environment);
  const size = (await disk.size(path)) ?? 0;
  const part = partOf(range, size);
  const headers = {
    "Content-Type": shown.test(file.mime) || file.mime === drawing ? file.mime : "application/octet-stream",
    "Accept-Ranges": "bytes",
    // The address names the item's output, and its content never changes.
    "Cache-Control": "private, max-age=3600",
    ...(shown.test(file.mime) ? {} : { "Content-Disposition": "attachment" }),
  };
  if (part === "unsatisfiable")
    return new Response(null, { status: 416, headers: { ...headers, "Content-Range": `bytes */${size}` } });
  const { start, end } = part ?? { start: 0, end: size - 1 };
  const body = size === 0 ? null : Readable.toWeb(Readable.from(disk.read(path, { start, end: end + 1 })));
  return new Response(body as ReadableStream | null, {
    status: part === null ? 200 : 206,
    headers: {
      ...headers,
      "Content-Length": String(end - start + 1),
      ...(part === null ? {} : { "Content-Range": `bytes ${start}-${end}/${size}` }),
    },
  });
}

/**
 * Answers with a thumbnail of an archived picture. It is made once, and stored where the gallery stores its thumbnails; a
 * light picture is its own.
 */
export async function thumbnailAnswer(file: BrowsedFile, environment: Environment): Promise<Response> {
  const { disk } = await found(file, environment);
  const folder = folderOf(file);
  const small = await shrinking.add(() => thumbnailOf(disk, folder, file));
  if (!small || small.file === file.file) return fileAnswer(file, undefined, environment);
  const headers = { "Content-Type": "image/webp", "Cache-Control": "private, max-age=86400" };
  const body = Readable.toWeb(createReadStream(`${folder}/${small.file}`)) as ReadableStream;
  return new Response(body, { headers });
}

function folderOf({ outFolder, job }: BrowsedFile): string {
  return jobFolder({ outFolder, jobName: job });
}

/** A file, on this disk or in the bucket that has it. Rejects with Refused if it is in neither. */
async function found(file: BrowsedFile, environment: Environment): Promise<{ disk: Disk; path: string }> {
  const path = pathOf(file);
  if (file.bucket === null || (await nodeDisk.size(path)) !== null)
    return { disk: nodeDisk, path: existing(file) };
  const address = bucketAddress(file.bucket, folderOf(file), file.file);
  try {
    const disk = diskWith([file.bucket], folderOf(file), environment);
    if ((await disk.size(path)) !== null) return { disk, path };
  } catch (error) {
    throw new Refused(`${address} cannot be read: ${(error as Error).message}`, "missing");
  }
  throw new Refused(`${address} is gone. \`bulkgen verify\` finds out what is missing.`, "missing");
}

/** The path of the file. Throws Refused if it is gone, is a link, or is not in the folder of its job. */
export function existing(file: BrowsedFile): string {
  const path = pathOf(file);
  try {
    const folder = realpathSync(folderOf(file));
    if (`${realpathSync(dirname(path))}${sep}`.startsWith(`${folder}${sep}`) && lstatSync(path).isFile())
      return path;
  } catch {
    // Said below.
  }
  if (file.bucket !== null)
    throw new Refused(
      `${bucketAddress(file.bucket, folderOf(file), file.file)} is not on this disk. Download the folder first, such as with \`aws s3 sync\`.`,
      "missing",
    );
  throw new Refused(
    `${file.file} is not where it was archived. \`bulkgen verify\` finds out what is missing.`,
    "missing",
  );
}

/**
 * The part that a Range header asks for; null for the whole file. For several ranges the whole file is sent, as HTTP
 * allows.
 */
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
