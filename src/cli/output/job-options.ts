import { credits } from "../../core/money.js";
import type { Log } from "../../core/ports/send.js";
import { type Events, openEvents } from "../../job/run/events.js";
import type { JobOptions } from "../../job/run/run-job.js";
import type { Machine } from "../../machine.js";
import { dailyOf } from "../../options/run.js";
import { type CarryFlags, publishSettings } from "../../options/shared.js";
import { jsonText } from "../../text/terminal.js";
import { outputsPlace } from "../../workspace/outputs-place.js";
import { openNews } from "../../workspace/state.js";
import type { Workspace } from "../../workspace/workspace.js";
import { connect } from "../settings/connect.js";
import { agreeToValues } from "./agreement.js";
import type { Display } from "./display.js";
import { agreesToForeignUse } from "./foreign-use.js";
import type { LiveGallery } from "./live-gallery.js";
import { openLog } from "./log.js";
import { type Notifier, openNotifier } from "./notifier.js";
import { openDisplay } from "./open-display.js";

/** What a command that continues a run works with. */
export interface PreparedRun {
  options: JobOptions;
  display: Display;
  log: Log;
  events: Events | null;
  notifier: Notifier | null;
  gallery: LiveGallery | null;
  machine: Machine;
}

/** What `run` and `resume` have in common: the service, the workspace, and how progress is shown. */
export async function jobOptions(
  flags: CarryFlags & { gallery?: boolean; maxPrice?: number },
  machine: Machine,
  workspace: Workspace,
  trustCommand = "bulkgen trust",
): Promise<PreparedRun> {
  const { clock } = machine;
  const display = openDisplay(flags.quiet ?? false, machine);
  const stderr = display.beside(machine.stderr);
  const stdout = machine.stdout.isTTY ? display.beside(machine.stdout) : machine.stdout;
  const log = await openLog(flags, { ...machine, stderr });
  const interrupt = machine.interrupt(() =>
    display.say(
      "interrupted: waiting for requests in flight. Press Ctrl-C again to quit now; items whose answers are lost may then be held.",
    ),
  );
  const events = flags.events
    ? openEvents(workspace, clock, (event) => stdout.write(`${jsonText(event)}\n`))
    : null;
  const say = (line: string) => {
    if (!flags.quiet) stderr.write(`bulkgen: ${line}\n`);
  };
  const gallery = flags.gallery
    ? (await import("./live-gallery.js")).openLiveGallery(workspace, machine, say)
    : null;
  const notifier = await openNotifier(flags, { ...machine, stderr }, workspace);
  const options: JobOptions = {
    workspace,
    connect: (manifest) => connect(flags, machine, workspace, { manifest }),
    clock,
    environment: machine.env,
    publish: publishSettings(flags),
    agreeTo: (values) => agreeToValues(values, workspace, { ...machine, stderr }, trustCommand),
    log,
    interrupt,
    unreachableMs: flags.unreachableWait,
    ...(flags.work === false ? { work: false } : {}),
    ...dailyOf(flags),
    maxPrice: flags.maxPrice === undefined ? null : credits(flags.maxPrice),
    agreeToForeignUse: (what) => agreesToForeignUse(what, flags, { machine, interrupt, display }),
    async onBegin(run) {
      const { id, jobName, options } = run;
      const news = () => openNews(workspace, id, clock);
      display.begin({ id, sandbox: options.sandbox, jobName, folder: outputsPlace(run), elapsedMs: 0, news });
      await events?.begin(run);
      notifier?.begin(run);
      gallery?.begin(run);
    },
    onProgress(progress) {
      display.progress(progress);
      events?.progress(progress);
      notifier?.waits(progress.reason);
      gallery?.progress(progress);
    },
    onWait(reason) {
      display.waiting(reason);
      events?.waiting(reason);
    },
    ifLocked: flags.ifLocked,
    onLocked: (message) => display.status(message),
  };
  return { options, display, log, events, notifier, gallery, machine };
}
