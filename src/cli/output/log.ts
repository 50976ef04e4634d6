import { Writable } from "node:stream";
import { pino } from "pino";
import type { Log } from "../../core/ports/send.js";
import type { Machine } from "../../machine.js";
import type { LogFlags } from "../../options/shared.js";
import { terminalText } from "../../text/terminal.js";
import { terminalStyle } from "../../text/terminal-style.js";

/**
 * The log on stderr: a readable line for each event, with the date if it goes to a file; or, if requested, one JSON
 * document per line.
 */
export async function openLog(
  { logLevel: level, logFormat }: LogFlags,
  { stderr, env, clock }: Machine,
): Promise<Log> {
  const timestamp = () => `,"time":"${new Date(clock.now()).toISOString()}"`;
  const formatters = { level: (label: string) => ({ level: label }) };
  const destination = logFormat === "json" ? stderr : await readable(stderr, env);
  const logger = pino({ level, base: null, timestamp, formatters }, destination);
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

async function readable(stderr: Machine["stderr"], env: Machine["env"]) {
  const { default: pretty } = await import("pino-pretty");
  return pretty({
    // It listens to its destination permanently, and a worker opens a log for every run that it continues.
    destination: new Writable({
      decodeStrings: false,
      write(text: string | Buffer, _encoding, done) {
        stderr.write(text);
        done();
      },
    }),
    sync: true,
    singleLine: true,
    colorize: terminalStyle(stderr, env).colour,
    // Local times, as everywhere.
    translateTime: stderr.isTTY ? "SYS:HH:MM:ss" : "SYS:yyyy-mm-dd HH:MM:ss",
  });
}
