import { EarlyExit } from "../../core/exit.js";
import type { Log } from "../../core/ports/send.js";

const levels = ["debug", "info", "warn", "error", "silent"];

/** The log on stderr: readable on a terminal, a JSON document a line otherwise. Throws EarlyExit on a bad level. */
export async function openLog(level: string): Promise<Log> {
  if (!levels.includes(level)) {
    throw new EarlyExit(
      "usage",
      `--log-level: expected one of ${levels.join(", ")}, got ${JSON.stringify(level)}`,
    );
  }
  const { pino } = await import("pino");
  const destination = process.stderr.isTTY ? await readable() : pino.destination({ dest: 2, sync: true });
  // A log that cannot be written, on a full disk, stops nothing.
  destination.on("error", () => {});
  const logger = pino({ level, base: null }, destination);
  // An async function may not return a logger itself: it has a method that a promise would take for its own.
  return {
    debug: (facts, message) => logger.debug(facts, message),
    info: (facts, message) => logger.info(facts, message),
    warn: (facts, message) => logger.warn(facts, message),
    error: (facts, message) => logger.error(facts, message),
  };
}

async function readable() {
  const { default: pretty } = await import("pino-pretty");
  return pretty({ destination: 2, sync: true, ignore: "pid,hostname", translateTime: "HH:MM:ss" });
}
