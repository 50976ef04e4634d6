import { resolve } from "node:path";
import type { ExitName } from "../../core/exit.js";
import type { GalleryFlags } from "../../options/archive.js";
import { galleryPage } from "../../report/gallery/document.js";
import { shownPath } from "../../report/problem-text.js";
import { count } from "../../text/amounts.js";
import { terminalText } from "../../text/terminal.js";
import { writeGallery } from "../../upkeep/archive/gallery.js";
import { sayLostPicks, sayMissing, sayMixed } from "../output/missing-rows.js";
import { openDisplay } from "../output/open-display.js";
import { print } from "../output/print.js";
import { workspaceOf } from "../settings/workspace.js";
import type { Call } from "./call.js";

export async function gallery({
  flags,
  args,
  machine,
}: Call<GalleryFlags, { run?: number }>): Promise<ExitName | undefined> {
  const display = openDisplay(flags.quiet ?? false, machine);
  const { missing, ...made } = await writeGallery({
    workspace: workspaceOf(flags, machine),
    run: args.run,
    clock: machine.clock,
    only: flags.picked ? "picked" : flags.final ? "final" : null,
    prices: flags.prices ?? false,
    to: flags.to === undefined ? undefined : resolve(machine.cwd, flags.to),
    signal: machine.interrupt(),
    render: galleryPage,
    onProgress: (done, all) => display.counting(`${done} of ${all} files`),
  }).finally(display.end);
  sayLostPicks(made.lostPicks, machine);
  sayMixed(made.mixed, machine);
  const exit = sayMissing(missing, machine);
  if (flags.quiet && !flags.json) return exit;
  const page = shownPath(made.page, machine.cwd);
  print(
    flags,
    machine,
    "gallery",
    { ...made, missing: missing.map(({ row, rowId, reason }) => ({ row, rowId, reason })) },
    () =>
      `${page}: ${count(made.files, flags.picked ? "picked file" : flags.final ? "final file" : "file")} of job ${terminalText(made.job)}`,
  );
  return exit;
}
