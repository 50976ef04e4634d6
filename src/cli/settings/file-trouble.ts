import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { wholeName } from "../../whole-file.js";

/**
 * Why the system refused a file or folder, in words; the system's own message if there are no better words. `file` is
 * needed if the error does not name it, as when a folder is read like a file.
 */
export function fileTrouble(error: unknown, file?: string): string {
  const { code, message, path = file, dest } = error as NodeJS.ErrnoException & { dest?: string };
  if (path === undefined) return message;
  // Files are written under another name first.
  const named = dest ?? wholeName(path);
  const folder = dirname(path);
  switch (code) {
    case "ENOENT":
      return existsSync(folder) ? `there is no file ${named}` : `there is no folder ${folder}`;
    case "ENOTDIR":
      return `part of the path ${named} is a file; expected a folder`;
    case "EISDIR":
      return `${named} is a folder; expected a file`;
    case "EEXIST":
      return `${named} exists already, as a file; expected a folder`;
    case "EACCES":
    case "EPERM":
      return `this user has no permission for ${named}`;
    case "EROFS":
      return `${named} is on a read-only file system`;
    case "ENAMETOOLONG":
      return `the name ${named} is too long`;
    case "ENOSPC":
      return `there is no space left for ${named}`;
    case "EDQUOT":
      return `this user's quota on the disk leaves no space for ${named}`;
    case "EFBIG":
      return `${named} would be larger than a file may be here (\`ulimit -f\` shows this user's limit; the disk may have one too)`;
    default:
      return message;
  }
}

/** Does what writes a file, and names the file in an error: the system's own error of a write does not. */
export async function namingFile<Result>(
  file: string,
  work: () => Result | Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    const { syscall, path } = error as NodeJS.ErrnoException;
    throw syscall === "write" && path === undefined ? Object.assign(error as Error, { path: file }) : error;
  }
}
