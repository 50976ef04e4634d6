import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

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
