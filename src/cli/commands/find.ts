import { defined } from "../../core/defined.js";
import type { FindFlags } from "../../options/archive.js";
import { foundJson, foundTable, shownMax } from "../../report/find.js";
import { shownPath } from "../../report/problem-text.js";
import { findOutputs } from "../../upkeep/archive/find.js";
import { print } from "../output/print.js";
import { workspaceOf } from "../settings/workspace.js";
import type { Call } from "./call.js";

export async function find({
  flags,
  args,
  machine,
}: Call<FindFlags, { text: string[] }>): Promise<undefined> {
  const { cwd, clock } = machine;
  const { model, param = {}, since, until } = flags;
  const wanted = {
    ...(args.text.length === 0 ? {} : { text: args.text.join(" ") }),
    ...defined({ model, since, until }),
    params: param,
    cwd,
  };
  const most = flags.json ? undefined : shownMax;
  const { newest, count } = await findOutputs(workspaceOf(flags, machine), wanted, clock, most);
  const shown = newest.map((output) => ({ ...output, path: shownPath(output.path, cwd) }));
  print(flags, machine, "find", newest.map(foundJson), (style) =>
    foundTable({ newest: shown, count }, style),
  );
}
