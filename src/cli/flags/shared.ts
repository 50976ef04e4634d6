import { type Command, Option } from "commander";
import type { Configured } from "../settings/settings.js";
import { amount, duration, gathered, oneOf } from "./values.js";

/** Flags that every command with a workspace takes. */
export interface SharedFlags {
  baseUrl?: string;
  apiKeyFile?: string;
  sandbox?: boolean;
  workspace?: string;
  json?: boolean;
  quiet?: boolean;
  logLevel: string;
  /** What the settings files say of address and key. */
  configured?: Configured;
}

/** Adds the flags by which a command finds its service. */
export function withService(command: Command): Command {
  return withWorkspace(command)
    .option("--base-url <url>", "address of the service (or BULKGEN_BASE_URL)")
    .option("--api-key-file <file>", "file with the API key (or BULKGEN_API_KEY)")
    .option("--log-level <level>", "debug, info, warn, error or silent", "warn");
}

/** Adds the flags by which a command finds its workspace and says how to print. */
export function withWorkspace(command: Command): Command {
  return command
    .option("--sandbox", "use the local sandbox: no key, no cost")
    .option("--workspace <folder>", "the folder with .bulkgen/ (default: found from the manifest upwards)")
    .option("--json", "one JSON document on stdout")
    .option("--quiet", "no progress on stderr");
}

/** Adds the flags of every command that carries a run on. */
export function withCarry(command: Command, ifLocked = whenLocked()): Command {
  return command
    .addOption(
      new Option("--unreachable-wait <time>", "give up when the service is out of reach for so long")
        .argParser(duration)
        .default(300_000, "5m"),
    )
    .addOption(ifLocked)
    .addOption(
      new Option("--events", "one JSON line on stdout for each event; the summary goes to stderr").conflicts(
        "json",
      ),
    )
    .option("--notify <target>", "tell the end to an https:// address or mailto:; may be repeated", gathered)
    .option(
      "--notify-command <command>",
      "run this in the shell at the end, with what came of it in BULKGEN_…",
    )
    .option("--smtp-url <url>", "mail server of mailto:, such as smtp://HOST:587; $NAME reads a variable")
    .option("--smtp-from <address>", "sender of the mails");
}

/** Adds the cap that is the account's and not one run's: it holds as it is set now, also for a run that began before. */
export function withDailyCap(command: Command): Command {
  return command.option(
    "--max-credits-per-day <n>",
    "spend at most so much from midnight to midnight, over all runs of the account",
    amount,
  );
}

function whenLocked(): Option {
  return new Option("--if-locked <what>", "when another run holds the workspace: fail, wait or skip")
    .argParser(oneOf("fail", "wait", "skip"))
    .default("fail");
}
