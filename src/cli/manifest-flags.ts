import type { Command } from "commander";
import type { EditionChoice } from "../job/edition.js";
import type { Defaults } from "../manifest/manifest.js";
import { parameter } from "./values.js";

/** Flags that say how a manifest is read: shared by `plan` and `run`. */
export interface ManifestFlags {
  model?: string;
  prompt?: string;
  param?: Record<string, string>;
  edition?: string;
  fresh?: boolean;
}

export function withManifest(command: Command): Command {
  return command
    .option("--model <key>", "model of the rows that name none")
    .option("--prompt <text>", "prompt of the rows that have none")
    .option("--param <key=value>", "parameter of the rows that do not set it; may be repeated", parameter)
    .option("--edition <name>", "make everything anew under this name, once")
    .option("--fresh", "start a new edition, or go on with the newest unfinished one");
}

export function defaultsOf({ model, prompt, param }: ManifestFlags): Defaults {
  return {
    ...(model === undefined ? {} : { model }),
    ...(prompt === undefined ? {} : { prompt }),
    ...(param === undefined ? {} : { params: param }),
  };
}

export function editionOf({ edition, fresh }: ManifestFlags): EditionChoice {
  return fresh ? "fresh" : edition === undefined ? "first" : { name: edition };
}
