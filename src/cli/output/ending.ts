import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { CommanderError } from "commander";
import { EarlyExit, type ExitName, exitCode } from "../../core/exit.js";

/** Sets the code that the process ends with. */
export function endWith(exit: ExitName): void {
  process.exitCode = exitCode(exit);
}

/**
 * Runs a command to its end and turns whatever it throws into one clear message and the documented exit code. What is
 * not foreseen is a defect: it is shown with its stack, so that it can be reported.
 */
export async function ended(command: () => Promise<unknown>): Promise<void> {
  try {
    await command();
  } catch (error) {
    if (error instanceof CommanderError) {
      // Commander has printed its message; help and version are no errors.
      process.exitCode = error.exitCode === 0 ? 0 : exitCode("usage");
      return;
    }
    if (error instanceof EarlyExit) {
      if (error.problems) {
        const { problemsText } = await import("../../report/problem-text.js");
        process.stderr.write(`${problemsText(error.problems, process.cwd())}\n`);
      }
      process.stderr.write(`bulkgen: ${error.message}\n`);
      endWith(error.exit);
      return;
    }
    const { message, stack } = error instanceof Error ? error : new Error(String(error));
    const exit = exitOf(error);
    const text = exit === "crash" ? stackWithModules(stack ?? message) : await refusal(error, message);
    process.stderr.write(`bulkgen: ${text}\n`);
    endWith(exit);
  }
}

/** What the system refuses, or SQLite on its behalf; `ERR_…` and any other code of SQLite mean a defect of ours. */
const refusals = /^(E[A-Z0-9]+|SQLITE_(BUSY|CANTOPEN|CORRUPT|FULL|IOERR|NOTADB|PERM|READONLY)\w*)$/;

/** The exit that something thrown leads to. What the system or a newer database refuses was foreseen. */
export function exitOf(error: unknown): ExitName {
  if (error instanceof EarlyExit) return error.exit;
  const { name, code } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
  return name === "NewerDatabase" || refusals.test(code ?? "") ? "usage" : "crash";
}

/** What is refused, and what to do about it; a newer database's own words say that already. */
async function refusal(error: unknown, message: string): Promise<string> {
  const { wayOut } = await import("../../store/open.js");
  const todo = (error as Error).name === "NewerDatabase" ? null : wayOut(error);
  return todo === null ? message : `${message}; ${todo}`;
}

/**
 * A stack in which each place in the bundle is followed by the module that it lies in: a file of the bundle holds many,
 * and its name tells only one of them.
 */
export function stackWithModules(stack: string): string {
  return stack.replace(
    /(file:\/\/\S+\/dist\/bin\/\S+\.js):(\d+):\d+/g,
    (place, file: string, line: string) => {
      const found = moduleAt(file, Number(line));
      return found === undefined ? place : `${place}, ${found}`;
    },
  );
}

/** The bundler heads the code of each module with its path. */
function moduleAt(file: string, line: number): string | undefined {
  try {
    const before = readFileSync(fileURLToPath(file), "utf8").split("\n").slice(0, line);
    const head = /^\/\/ (?:\.\.\/)*(\S+\.[cm]?js)$/;
    return head.exec(before.findLast((text) => head.test(text)) ?? "")?.[1];
  } catch {
    // A file that is gone by now: the stack is told as it is.
    return undefined;
  }
}
