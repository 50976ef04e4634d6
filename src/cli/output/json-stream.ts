import { Writable } from "node:stream";
import type { Machine, OutputStream } from "../../machine.js";

/**
 * The standard error of a command with `--log-format json`: a program reads it, so everything on it is one JSON document a
 * line, also what is not a line of the log. A terminal stays as it is, because there a person is asked.
 */
export function withJsonLines(machine: Machine): Machine {
  return machine.stderr.isTTY ? machine : { ...machine, stderr: jsonLines(machine) };
}

/** Whether the words or the environment ask for it: what the settings files say is known only after they are read. */
export function asksForJsonLines(argv: readonly string[], { env }: Pick<Machine, "env">): boolean {
  const words = untilRest(argv);
  const at = words.findLastIndex((word) => /^--log-format(=|$)/.test(word));
  if (at < 0) return env["BULKGEN_LOG_FORMAT"] === "json";
  return words[at] === "--log-format=json" || (words[at] === "--log-format" && words[at + 1] === "json");
}

/** Whether a document is to stand on stdout: the lines of `--events` have it to themselves. */
export function asksForDocument(argv: readonly string[]): boolean {
  const words = untilRest(argv);
  return words.includes("--json") && !words.includes("--events");
}

function untilRest(argv: readonly string[]): readonly string[] {
  const rest = argv.indexOf("--");
  return rest < 0 ? argv : argv.slice(0, rest);
}

function jsonLines({ stderr, clock }: Pick<Machine, "stderr" | "clock">): OutputStream {
  let unfinished = "";
  return new Writable({
    decodeStrings: false,
    write(piece: string | Buffer, _encoding, done) {
      unfinished += piece.toString();
      if (unfinished.endsWith("\n")) {
        stderr.write(asLines(unfinished, clock.now()));
        unfinished = "";
      }
      done();
    },
  });
}

/** Lines that are JSON stay as they are; other lines that came together are one message. */
function asLines(text: string, now: number): string {
  let lines = "";
  let others: string[] = [];
  const tell = () => {
    const message = others.join("\n").trim();
    others = [];
    if (message === "") return;
    // What a command says of its own end begins so; see `reportError`.
    const said = message.startsWith("bulkgen: ") ? message.slice("bulkgen: ".length) : message;
    lines += `${JSON.stringify({ level: "info", time: new Date(now).toISOString(), msg: said })}\n`;
  };
  for (const line of text.split("\n")) {
    if (isDocument(line)) {
      tell();
      lines += `${line}\n`;
    } else others.push(line);
  }
  tell();
  return lines;
}

function isDocument(line: string): boolean {
  if (!line.startsWith("{")) return false;
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}
