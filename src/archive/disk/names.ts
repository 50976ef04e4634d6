import { join, posix } from "node:path";
import filenamify from "filenamify";
import type { Disk, FileContent } from "../../core/ports/disk.js";
import type { Run } from "../../core/ports/store.js";
import { sha256Of } from "../../text/pieces.js";

/**
 * Names of output files. A wanted name is untrusted text: it may lead out of the output folder, differ from another name
 * only by case, or be forbidden on a system to which the archive is copied later.
 */

/** Bytes of UTF-8 in one segment of a name. File systems allow 255; suffix, extension and sync tools need room. */
export const segmentBytesMax = 120;
/** Folders deeper than this are joined into the last segment. */
export const segmentsMax = 8;

const mediaExtension =
  /\.(?:png|jpe?g|webp|gif|avif|tiff?|bmp|heic|svg|mp4|m4v|mov|mkv|webm|mp3|m4a|wav|ogg|oga|opus|flac|aac)$/i;

/** Names at the top of a job's folder that the archive itself uses. */
const ownFolders = /^_+(?=(?:quarantine|superseded|thumbs?|gallery)$)/i;

/** Whether the archive itself uses a folder of this name at the top of a job's folder. */
export function isOwnFolder(name: string): boolean {
  return ownFolders.test(name);
}

/**
 * The safe form of a wanted name: a relative path with `/` between segments, without extension, never empty. A
 * media extension at the end is dropped, because the extension comes from the content. `16:9` becomes `16x9`.
 */
export function safeName(wanted: string): string {
  const segments = wanted
    .replace(mediaExtension, "")
    .replace(/(?<=\d):(?=\d)/g, "x")
    .split(/[/\\]+/)
    .map(safeSegment)
    .filter((segment) => segment !== "");
  const kept = segments.slice(0, segmentsMax - 1);
  const rest = segments.slice(segmentsMax - 1);
  if (rest.length > 0) kept.push(safeSegment(rest.join("-")));
  const first = kept[0]?.replace(ownFolders, "");
  return first === undefined ? "untitled" : [first, ...kept.slice(1)].join("/");
}

function safeSegment(text: string): string {
  // Half a surrogate pair cannot be written in UTF-8. Leading dots would hide the file, or be `..`.
  const whole = text.replace(/\p{Surrogate}/gu, "").replace(/^[.\s]+/, "");
  if (/^[.\s]*$/.test(whole)) return "";
  const named = filenamify(whole, { replacement: "-", maxLength: Number.POSITIVE_INFINITY });
  const short = cutToBytes(named, segmentBytesMax);
  // The cut may end in a dot or a space, or leave a reserved name such as `con`.
  return short === named
    ? named
    : filenamify(short, { replacement: "-", maxLength: Number.POSITIVE_INFINITY });
}

/** The longest prefix of whole code points that fits. */
function cutToBytes(text: string, bytesMax: number): string {
  let bytes = 0;
  let end = 0;
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > bytesMax) return text.slice(0, end);
    end += character.length;
  }
  return text;
}

/** The name of one of several outputs: `-1`, `-2` … when there is more than one; `outputNumber` counts from 1. */
export function outputName(name: string, outputNumber: number, outputCount: number): string {
  return outputCount > 1 ? `${name}-${outputNumber}` : name;
}

/** Equal for two names that some filesystem treats as the same. */
export function foldName(path: string): string {
  return path.normalize("NFC").toUpperCase().toLowerCase().normalize("NFC");
}

/** The names to try for a file, in order: `name.ext`, `name-2.ext`, `name-3.ext` … */
export function numberedName(name: string, number: number, extension: string): string {
  return `${number === 1 ? name : `${name}-${number}`}.${extension}`;
}

/**
 * Makes a folder below the job's folder, level by level, and returns its path. A symbolic link on the way is refused,
 * because it would lead files elsewhere; the job's folder itself may be a link. For the job's folder itself (`.`) nothing
 * is done, to save the checks: `openTemporary` makes it. Rejects with ELOOP and errors of the disk.
 */
export async function folderBelow(disk: Disk, jobFolder: string, below: string): Promise<string> {
  if (below === ".") return jobFolder;
  await disk.makeFolder(jobFolder);
  let real = await disk.realPath(jobFolder);
  let folder = jobFolder;
  for (const level of below.split("/")) {
    folder = join(folder, level);
    real = join(real, level);
    await disk.makeFolder(folder);
    // Some systems normalise accents and case.
    if (foldName(await disk.realPath(folder)) !== foldName(real))
      throw Object.assign(new Error(`${folder} is a symbolic link; expected a folder`), { code: "ELOOP" });
  }
  return folder;
}

/** Errors that a disk gives for one name and not for others. */
const aboutName = new Set([
  "ELOOP",
  "ENOTDIR",
  "EEXIST",
  "EISDIR",
  "ENAMETOOLONG",
  "EINVAL",
  "EILSEQ",
  "EACCES",
  "EPERM",
]);

/** Whether another name may do: the disk as a whole accepts files, as far as this error shows. */
export function isAboutName(error: unknown): boolean {
  return aboutName.has(String((error as { code?: unknown } | null)?.code));
}

/**
 * The folder for a file of that name, and the name in it. Where its own folder cannot be made, because a link or a file is
 * in its place, the file lies at the top of the job's folder, as `FOLDER-NAME`: one row's name never keeps its file from
 * being saved. Rejects with errors of the disk.
 */
export async function placeFor(
  disk: Disk,
  jobFolder: string,
  name: string,
): Promise<{ folder: string; name: string }> {
  try {
    return { folder: await folderBelow(disk, jobFolder, posix.dirname(name)), name };
  } catch (error) {
    if (!isAboutName(error)) throw error;
    return { folder: jobFolder, name: safeName(name.replaceAll("/", "-")) };
  }
}

/** The folder of a run's files: one below the output folder, named after the job. Absolute. */
export function jobFolder(run: Pick<Run, "outFolder" | "jobName">): string {
  return join(run.outFolder, safeName(run.jobName));
}

/** Removes a name. It may be gone already, on a filesystem without hard links or because of another process. */
export async function removeName(disk: Disk, path: string): Promise<void> {
  try {
    await disk.unlink(path);
  } catch (error) {
    if ((error as { code?: unknown }).code !== "ENOENT") throw error;
  }
}

/** False when the name is taken. */
export async function linked(disk: Disk, from: string, to: string, content?: FileContent): Promise<boolean> {
  try {
    await disk.link(from, to, content);
    return true;
  } catch (error) {
    if ((error as { code?: unknown }).code === "EEXIST") return false;
    throw error;
  }
}

/** Whether the file at `path` has that content. For a file in a bucket, the hash from its upload is enough. */
export async function holds(
  disk: Disk,
  path: string,
  { bytes, sha256 }: { bytes: number; sha256: string },
): Promise<boolean> {
  if ((await disk.size(path)) !== bytes) return false;
  const inBucket = await disk.inBucket?.(path);
  if (inBucket) return inBucket.sha256 === sha256;
  return (await sha256Of(disk.read(path))) === sha256;
}
