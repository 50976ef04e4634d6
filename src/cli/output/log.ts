import { pino } from "pino";
import { EarlyExit } from "../../core/exit.js";
import type { Log } from "../../core/ports/send.js";
import type { Machine } from "../../machine.js";
import { terminalText } from "../../text/terminal.js";

const levels = ["debug", "info", "warn", "error", "silent"];

/** The log on stderr: readable on a terminal, otherwise one JSON document a line. Throws EarlyExit on a bad level. */
export async function openLog(level: string, { stderr, clock }: Machine): Promise<Log> {
  if (!levels.includes(level)) {
    throw new EarlyExit(
      "usage",
      `--log-level: expected one of ${levels.join(", ")}, got ${JSON.stringify(level)}`,
    );
  }
  const destination = stderr.isTTY ? await readable(stderr) : stderr;
  const timestamp = () => `,"time":${clock.now()}`;
  const logger = pino({ level, base: null, timestamp }, destination);
  // A logger cannot be returned from an async function: it has a `then`-like method that the promise would call.
  return {
    debug: (facts, message) => logger.debug(clean(facts), terminalText(message)),
    info: (facts, message) => logger.info(clean(facts), terminalText(message)),
    warn: (facts, message) => logger.warn(clean(facts), terminalText(message)),
    error: (facts, message) => logger.error(clean(facts), terminalText(message)),
  };
}

/** The log is read on terminals, and facts may be the service's texts. */
function clean(facts: object): object {
  const texts = Object.entries(facts).map(([name, value]) => [
    name,
    typeof value === "string" ? terminalText(value) : value,
  ]);
  return Object.fromEntries(texts);
}

async function readable(destination: Machine["stderr"]) {
  const { default: pretty } = await import("pino-pretty");
  return pretty({ destination, sync: true, ignore: "pid,hostname", translateTime: "HH:MM:ss" });
}
