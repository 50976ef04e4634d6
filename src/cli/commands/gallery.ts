import type { Command } from "commander";
import { type SharedFlags, withWorkspace } from "../flags/shared.js";
import { positive } from "../flags/values.js";

export function defineGallery(program: Command): void {
  withWorkspace(program.command("gallery"))
    .description("write a contact sheet of a run: gallery.html in its folder, to open in a browser")
    .argument("[run]", "number of the run (default: the newest)", positive)
    .action(gallery);
}

async function gallery(run: number | undefined, flags: SharedFlags): Promise<void> {
  const [
    { writeGallery },
    { galleryPage },
    { workspaceOf },
    { openDisplay },
    { interruption },
    { shownPath },
    { systemClock },
  ] = await Promise.all([
    import("../../job/archive/gallery.js"),
    import("../../report/gallery.js"),
    import("../output/session.js"),
    import("../output/display.js"),
    import("../output/signals.js"),
    import("../../report/problem-text.js"),
    import("../../system.js"),
  ]);
  const display = openDisplay(flags.quiet ?? false);
  const made = await writeGallery({
    workspace: workspaceOf(flags),
    run,
    clock: systemClock,
    signal: interruption(),
    render: galleryPage,
    onProgress: (done, all) => display.status(`${done} of ${all} files`),
  });
  display.end();
  const page = shownPath(made.page, process.cwd());
  const text = flags.json ? JSON.stringify(made) : `${page}: ${made.files} files of run ${made.run}`;
  process.stdout.write(`${text}\n`);
}
