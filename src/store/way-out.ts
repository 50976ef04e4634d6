import { NewerDatabase } from "./open.js";

/** What each database is for, and what is to be done where it is damaged: by its file's name. */
const whereDamaged: Readonly<Record<string, string>> = {
  "state.db":
    "restore it from a backup, or `bulkgen doctor --rebuild` makes it again from the receipts and the archive",
  "accounts.db":
    "it holds what all workspaces share: the request ledger and the books of the keys. Restore it from a backup, or put it aside while nothing runs, with its -wal and -shm, and it begins anew: requests sent so far are no longer counted against the limits, learned times are learned again, and paid requests without an answer are held for you to decide. No task and no file is lost",
  "service.db":
    "it holds the sandbox's accounts and tasks, which cost nothing. Put it aside while no sandbox runs, with its -wal and -shm, and it begins anew",
  "schedules.db":
    "it holds the schedules and their nights. Restore it from a backup, or put it aside while no daemon runs, with its -wal and -shm, and give the schedules again with `bulkgen schedule add`. No run is lost",
};

/**
 * What to do about a database, or a file of the workspace, that cannot be used, by what was thrown, which names it;
 * null where that is not known. Only one that is damaged is to be replaced: a newer program's, or one on a full disk, is whole.
 */
export function wayOut(error: unknown): string | null {
  const { code, message, path } = error as NodeJS.ErrnoException;
  if (error instanceof NewerDatabase) return "update bulkgen";
  if (path !== undefined && /^(EACCES|EPERM|EROFS)$/.test(String(code)))
    return `let this user read and write ${path}`;
  switch (/^SQLITE_(FULL|IOERR|READONLY|CANTOPEN|PERM|BUSY|CORRUPT|NOTADB)/.exec(String(code))?.[1]) {
    case "FULL":
      return "free some space on its disk";
    case "IOERR":
      return "see that its disk has room and may be written";
    case "READONLY":
    case "CANTOPEN":
    case "PERM":
      return "make it and its folder writable";
    case "BUSY":
      return "another process is writing in it: try again when that has ended";
    case "CORRUPT":
    case "NOTADB":
      return damaged(message);
    default:
      return null;
  }
}

/** Whether a database cannot be opened for what it is stored on, or for another process: nothing is known of what is in it. */
export function isRefused(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return /^SQLITE_(FULL|READONLY|CANTOPEN|PERM|BUSY)/.test(String(code));
}

function damaged(message: string): string | null {
  if (/[/\\]sandbox[/\\]state\.db: /.test(message))
    return "nothing in it was paid for: `bulkgen doctor --sandbox --rebuild` makes it again, or remove it";
  if (/\.lock: /.test(message)) return "it holds nothing: remove it while no bulkgen runs";
  return whereDamaged[/([a-z]+\.db): /.exec(message)?.[1] ?? ""] ?? null;
}
