import { EarlyExit } from "../../core/exit.js";
import type { PickFlags } from "../../options/archive.js";
import { pickedText, picksTable } from "../../report/picks.js";
import { shownPath } from "../../report/problem-text.js";
import { listPicks, pickItems } from "../../upkeep/archive/picks.js";
import { print } from "../output/print.js";
import { namesIn } from "../output/review-file.js";
import { flagsTo, workspaceOf, workspaceToChange } from "../settings/workspace.js";
import type { Call } from "./call.js";

export async function pick({
  flags,
  args,
  machine,
}: Call<PickFlags, { items: string[] }>): Promise<undefined> {
  const { cwd, clock } = machine;
  const { undo = false, also = false } = flags;
  if (flags.from !== undefined && args.items.length > 0)
    throw new EarlyExit("usage", "expected items or --from FILE, got both");
  if (args.items.length === 0 && flags.from === undefined) {
    if (undo) throw new EarlyExit("usage", "--undo: name the items that are not picked any more");
    const place = workspaceOf(flags, machine);
    const picked = await listPicks(place, clock);
    const there = flagsTo(place, flags.sandbox ?? false, machine);
    const shown = picked.map((one) => ({ ...one, files: one.files.map((file) => shownPath(file, cwd)) }));
    print(flags, machine, "picks", picked, (style) => picksTable(shown, there, style));
    return;
  }
  const workspace = workspaceToChange(flags, machine);
  const names = flags.from === undefined ? args.items : await namesIn(flags.from, ["pick"], machine);
  const items = await pickItems({ workspace, clock, names, cwd, also, undo });
  print(flags, machine, "pick", items, () => pickedText(items, undo));
}
