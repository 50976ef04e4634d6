import { pino } from "pino";
import { EarlyExit } from "../../core/exit.js";
import type { Log } from "../../core/ports/send.js";
import type { Machine } from "../../machine.js";

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
    debug: (facts, message) => logger.debug(facts, message),
    info: (facts, message) => logger.info(facts, message),
    warn: (facts, message) => logger.warn(facts, message),
    error: (facts, message) => logger.error(facts, message),
  };
}

async function readable(destination: Machine["stderr"]) {
  const { default: pretty } = await import("pino-pretty");
  return pretty({ destination, sync: true, ignore: "pid,hostname", translateTime: "HH:MM:ss" });
}
