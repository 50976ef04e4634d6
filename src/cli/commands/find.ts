import type { Command } from "commander";
import { type SharedFlags, withWorkspace } from "../flags/shared.js";
import { day, parameter } from "../flags/values.js";

interface FindFlags extends SharedFlags {
  model?: string;
  param?: Record<string, string>;
  since?: number;
  until?: number;
}

export function defineFind(program: Command): void {
  withWorkspace(program.command("find"))
    .description("find archived files by prompt, model, parameter or date; or the row that a file came from")
    .argument("[text...]", "words of the prompt, id or file name; or the path of a file, also of a copy")
    .option("--model <key>", "made by this model")
    .option("--param <key=value>", "made with this parameter; may be repeated", parameter)
    .option("--since <date>", "saved on this day (YYYY-MM-DD, local time) or later", day)
    .option("--until <date>", "saved before this day", day)
    .action(find);
}

async function find(words: string[], flags: FindFlags): Promise<void> {
  const [
    { findOutputs },
    { foundJson, foundTable },
    { terminalStyle },
    { shownPath },
    { workspaceOf },
    { systemClock },
  ] = await Promise.all([
    import("../../job/archive/find.js"),
    import("../../report/find.js"),
    import("../../text/table.js"),
    import("../../report/problem-text.js"),
    import("../output/session.js"),
    import("../../system.js"),
  ]);
  const { model, param = {}, since, until } = flags;
  const wanted = {
    ...(words.length === 0 ? {} : { text: words.join(" ") }),
    ...(model === undefined ? {} : { model }),
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
    params: param,
  };
  const found = await findOutputs(workspaceOf(flags), wanted, systemClock);
  const shown = found.map((output) => ({ ...output, path: shownPath(output.path, process.cwd()) }));
  const text = flags.json
    ? JSON.stringify(found.map(foundJson))
    : foundTable(shown, terminalStyle(process.stdout, process.env));
  process.stdout.write(`${text}\n`);
}
