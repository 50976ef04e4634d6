import { readFileSync } from "node:fs";
import { withoutKeys } from "../../api/key.js";
import { EarlyExit, type ExitName, exitCode } from "../../core/exit.js";
import type { Machine } from "../../machine.js";
import { packageFile } from "../../package-file.js";
import { terminalLines } from "../../text/terminal.js";
import { fileTrouble } from "../settings/file-trouble.js";

/**
 * Turns what a command throws into one clear message and the documented exit code. Errors that no command foresaw are
 * defects: their stack is printed, so that they can be reported.
 */
export async function reportError(error: unknown, { stderr, cwd }: Machine): Promise<number> {
  if (error instanceof EarlyExit) {
    if (error.problems) {
      const { problemsText } = await import("../../report/problem-text.js");
      stderr.write(`${withoutKeys(problemsText(error.problems, cwd))}\n`);
    }
    stderr.write(`bulkgen: ${withoutKeys(terminalLines(error.message))}\n`);
    return exitCode(error.exit);
  }
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  const exit = exitOf(error);
  const text =
    exit === "crash" ? `${stackWithModules(stack ?? message)}\n${defect}` : await refusal(error, message);
  stderr.write(`bulkgen: ${withoutKeys(terminalLines(text))}\n`);
  return exitCode(exit);
}

const defect =
  "This is a defect of bulkgen, unless a file of the workspace is damaged: `bulkgen doctor` checks them.";

/** Codes of refusals by the system or by SQLite. `ERR_…` and any other code of SQLite mean a defect of ours. */
const refusals = /^(E[A-Z0-9]+|SQLITE_(BUSY|CANTOPEN|CORRUPT|FULL|IOERR|NOTADB|PERM|READONLY)\w*)$/;

/**
 * The exit of an error. Refusals by the system and databases of a newer bulkgen are usage errors, not crashes. A
 * database on a server may be reachable later.
 */
export function exitOf(error: unknown): ExitName {
  if (error instanceof EarlyExit) return error.exit;
  const { name, code } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
  if (name === "DatabaseTrouble") return "unreachable";
  return saysWhatToDo(name) || refusals.test(code ?? "") ? "usage" : "crash";
}

/** Whether the message of the error already says what to do. */
function saysWhatToDo(name: string | undefined): boolean {
  return name === "NewerDatabase" || name === "SqliteMissing";
}

/** The refusal and what to do about it. */
async function refusal(error: unknown, message: string): Promise<string> {
  const { wayOut } = await import("../../store/open.js");
  const { name, code } = error as NodeJS.ErrnoException;
  const todo = saysWhatToDo(name) ? null : wayOut(error);
  const what = code?.startsWith("E") ? fileTrouble(error) : message;
  return todo === null ? what : `${what}; ${todo}`;
}

/** Adds the name of its module to each place of a stack in the bundle, where one file holds many modules. */
export function stackWithModules(stack: string, fileOf = packageFile): string {
  return stack.replace(/(dist\/bin\/[^\s:]+\.c?js):(\d+):\d+/g, (place, file: string, line: string) => {
    const found = moduleAt(fileOf(file), Number(line));
    return found === undefined ? place : `${place}, ${found}`;
  });
}

/** The bundler heads the code of each module with its path. */
function moduleAt(file: string, line: number): string | undefined {
  try {
    const before = readFileSync(file, "utf8").split("\n").slice(0, line);
    const head = /^\/\/ (?:\.\.\/)*(\S+\.[cm]?js)$/;
    return head.exec(before.findLast((text) => head.test(text)) ?? "")?.[1];
  } catch {
    // The file is gone: print the stack unchanged.
    return undefined;
  }
}
