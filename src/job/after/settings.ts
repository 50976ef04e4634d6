import type { RunOptions } from "../../core/next/options.js";
import type { Run } from "../../core/ports/store.js";
import type { Manifest } from "../../manifest/shape/manifest.js";
import { duration } from "../../text/amounts.js";
import { type FolderValue, withLineEnds } from "../../trust/trust.js";

/**
 * Commands of the user's own that are run after each archived file and once everything is archived. A flag or a variable
 * says them, else the job file, else a settings file. An empty one runs nothing.
 */
export interface AfterCommands {
  file: string;
  set: string;
  /** How long one of them may take (ms). */
  timeoutMs: number;
}

export interface AfterSettings {
  /** By a flag or a variable. */
  given: Partial<AfterCommands>;
  /** By the settings files. */
  configured: Partial<AfterCommands>;
}

/** How long a command may take (ms), unless something says otherwise. */
const afterMsDefault = 600_000;

type OfJob = { [Name in keyof AfterCommands]?: AfterCommands[Name] | null | undefined };

/** The commands of a job. */
export function afterCommands({ given, configured }: AfterSettings, ofJob: OfJob | null): AfterCommands {
  return {
    file: given.file ?? ofJob?.file ?? configured.file ?? "",
    set: given.set ?? ofJob?.set ?? configured.set ?? "",
    timeoutMs: given.timeoutMs ?? ofJob?.timeoutMs ?? configured.timeoutMs ?? afterMsDefault,
  };
}

/** The commands that a run keeps. */
export function commandsOf({ afterFile, afterSet, afterMs }: Run["options"]): AfterCommands {
  return { file: afterFile ?? "", set: afterSet ?? "", timeoutMs: afterMs ?? afterMsDefault };
}

/** The options of a run that keep these commands. A run of only some rows never makes the whole set. */
export function keptCommands({ file, set, timeoutMs }: AfterCommands, isWhole: boolean): Partial<RunOptions> {
  return {
    ...(file === "" ? {} : { afterFile: file }),
    ...(set === "" || !isWhole ? {} : { afterSet: set }),
    ...(timeoutMs === afterMsDefault ? {} : { afterMs: timeoutMs }),
  };
}

/** The commands of a job file, which may come from somebody else: those that no flag or variable replaces. */
export function commandsOfJob(
  { after, file: from }: Pick<Manifest, "after" | "file">,
  { given }: Pick<AfterSettings, "given">,
): FolderValue[] {
  if (after === undefined) return [];
  return (["file", "set"] as const).flatMap((name) => {
    const [command, { line, lineColumn }] = [after[name], after.marks[name]];
    if (command === undefined || given[name] !== undefined) return [];
    return [commandValue(name, command, `${from}:${line}:${lineColumn}`)];
  });
}

/** A command as something to agree to. Equal for a job file, a setting, a saved plan and a run that has it. */
export function commandValue(after: "file" | "set", value: string, from: string): FolderValue {
  return { setting: `after-${after}`, value, from };
}

/** What a plan says of them, one line each. */
export function commandNotes({ file, set, timeoutMs }: AfterCommands, isWhole: boolean): string[] {
  const each = `for at most ${duration(timeoutMs)}`;
  return [
    ...(file === "" ? [] : [`a command is run after each archived file, ${each}: ${withLineEnds(file)}`]),
    ...(set === ""
      ? []
      : [
          isWhole
            ? `a command is run once everything is archived, ${each}: ${withLineEnds(set)}`
            : "the command after the set is not run, because not all rows are made",
        ]),
  ];
}
