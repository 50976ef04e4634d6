import { resolve } from "node:path";
import type { GalleryFlags } from "../../options/archive.js";
import { galleryPage } from "../../report/gallery/document.js";
import { shownPath } from "../../report/problem-text.js";
import { count } from "../../text/amounts.js";
import { terminalText } from "../../text/terminal.js";
import { writeGallery } from "../../upkeep/archive/gallery.js";
import { openDisplay } from "../output/open-display.js";
import { print } from "../output/print.js";
import { workspaceOf } from "../settings/workspace.js";
import type { Call } from "./call.js";

export async function gallery({
  flags,
  args,
  machine,
}: Call<GalleryFlags, { run?: number }>): Promise<undefined> {
  const display = openDisplay(flags.quiet ?? false, machine);
  const made = await writeGallery({
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
  if (made.lostPicks !== null) machine.stderr.write(`bulkgen: ${terminalText(made.lostPicks)}.\n`);
  if (flags.quiet && !flags.json) return undefined;
  const page = shownPath(made.page, machine.cwd);
  print(
    flags,
    machine,
    "gallery",
    made,
    () =>
      `${page}: ${count(made.files, flags.picked ? "picked file" : flags.final ? "final file" : "file")} of job ${terminalText(made.job)}`,
  );
}
