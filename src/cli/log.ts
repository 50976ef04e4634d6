import { EarlyExit } from "../core/exit.js";
import type { Log } from "../core/log.js";

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
  if (!process.stderr.isTTY) return pino({ level, base: null }, pino.destination({ dest: 2, sync: true }));
  const { default: pretty } = await import("pino-pretty");
  return pino(
    { level, base: null },
    pretty({ destination: 2, sync: true, ignore: "pid,hostname", translateTime: "HH:MM:ss" }),
  );
}
