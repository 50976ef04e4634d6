import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { withoutKeys } from "../../api/key.js";
import { EarlyExit, type ExitName, exitCode, type RefusedCommand } from "../../core/exit.js";
import { digestOf } from "../../core/problem.js";
import type { Machine } from "../../machine.js";
import { packageFile } from "../../package-file.js";
import { shellWord } from "../../text/shell.js";
import { jsonText, terminalLines } from "../../text/terminal.js";
import { fileTrouble } from "../settings/file-trouble.js";
import { print } from "./print.js";

/**
 * Turns what a command throws into one clear message and the documented exit code. Errors that no command foresaw are
 * defects: their stack is printed, so that they can be reported.
 */
export async function reportError(error: unknown, machine: Machine, how: Reporting): Promise<number> {
  if (error instanceof EarlyExit) {
    if (error.problems) {
      const { problemsText } = await import("../../report/problem-text.js");
      machine.stderr.write(`${withoutKeys(problemsText(error.problems, machine.cwd))}\n`);
    }
    const reason = error.problems ? "manifest" : error.exit;
    // A program that reads the document, such as the daemon of schedules, has not read the list.
    const document = { message: await reasonOf(error, machine.cwd), next: nextOf(error, machine.cwd) };
    return tell(error.exit, reason, error.message, machine, { ...how, document });
  }
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  const exit = exitOf(error);
  const text =
    exit === "crash" ? `${stackWithModules(stack ?? message)}\n${defect}` : await refusal(error, message);
  return tell(exit, exit, text, machine, how);
}

/** What a program reads: `json`, a document on stdout, if the command has not printed its own; `jsonLines`, the log on stderr. */
export interface Reporting {
  json: boolean;
  jsonLines: boolean;
}

function tell(
  exitName: ExitName,
  reason: RefusedCommand["reason"],
  text: string,
  { stdout, stderr, env, clock }: Machine,
  { json, jsonLines, document }: Reporting & { document?: Pick<RefusedCommand, "message" | "next"> },
): number {
  const message = withoutKeys(terminalLines(text));
  const exit = exitCode(exitName);
  const next = document ? document.next : nextAfter(exitName, message);
  const refusal: RefusedCommand = { exit, exitName, reason, message, next };
  const told = document ? { ...refusal, message: withoutKeys(terminalLines(document.message)) } : refusal;
  if (jsonLines) {
    const time = new Date(clock.now()).toISOString();
    stderr.write(`${jsonText({ level: "error", time, ...refusal, msg: message })}\n`);
  } else stderr.write(`bulkgen: ${message}\n`);
  if (json) print({ json }, { stdout, env }, "refusal", told, () => message);
  return exit;
}

/** Why a command has ended, with the first problem of its manifest: for those who do not see the list. */
export async function reasonOf(error: Error, folder: string): Promise<string> {
  const first = error instanceof EarlyExit ? error.problems?.reported[0] : undefined;
  if (first === undefined) return error.message;
  const { problemsText } = await import("../../report/problem-text.js");
  return `${error.message}: ${problemsText(digestOf([first.problem]), folder)}`;
}

/** The command to type after an error; null if the message says all there is to do. */
export function nextOf(error: Error, folder: string, sandbox = ""): string | null {
  const first = error instanceof EarlyExit ? error.problems?.reported[0] : undefined;
  if (first === undefined) return nextAfter(exitOf(error), error.message);
  const { file } = first.problem.place;
  const seen = relative(folder, file);
  return `bulkgen plan ${shellWord(seen.startsWith("..") ? file : seen)}${sandbox}`;
}

/** The command that the message names, else what usually helps; null if the message says all there is to do. */
function nextAfter(exit: ExitName, message: string): string | null {
  const [, named] = /`(bulkgen [^`]+)`/.exec(message) ?? [];
  return named ?? usualNext[exit] ?? null;
}

const usualNext: Partial<Record<ExitName, string>> = {
  crash: "bulkgen doctor",
  key: "bulkgen doctor",
  unreachable: "bulkgen doctor",
  locked: "bulkgen status",
  interrupted: "bulkgen resume",
};

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
  // Another process was stopped, or works long, in the middle of a transaction.
  if (code?.startsWith("SQLITE_BUSY")) return "locked";
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
