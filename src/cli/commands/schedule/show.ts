import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { EarlyExit } from "../../../core/exit.js";
import type { Machine } from "../../../machine.js";
import type { RunFlags } from "../../../options/run.js";
import type { ScheduleFlags } from "../../../options/schedule.js";
import { localText } from "../../../schedule/due.js";
import { withRunResults } from "../../../schedule/due-runs.js";
import { cronLine, systemdService } from "../../../schedule/print.js";
import { flagOf } from "../../../schedule/scheduled-run.js";
import {
  listedSchedule,
  schedulesTable,
  type UpcomingRun,
  upcomingText,
} from "../../../schedule/upcoming.js";
import type { Schedule, ScheduledRun, Schedules } from "../../../store/schedules.js";
import type { TerminalStyle } from "../../../text/terminal-style.js";
import { disagree, scheduleSetting, shownFolderValue } from "../../../trust/trust.js";
import { checkedAddress } from "../../../workspace/connection.js";
import { historyOf } from "../../../workspace/status.js";
import { type Workspace, workspaceExists } from "../../../workspace/workspace.js";
import { print } from "../../output/print.js";
import { schedulesFile, scheduleValue } from "../../settings/brought.js";
import { workspaceConfig } from "../../settings/config-file.js";
import { envFile, serviceSettings } from "../../settings/env.js";
import { configFiles, effectiveSettings, runFlagsOf } from "../../settings/settings.js";
import { flagsTo, workspaceOf, workspaceToChange } from "../../settings/workspace.js";
import type { Call } from "../call.js";
import {
  daemonMissing,
  endNoteOf,
  scheduleNamed,
  whyNotAgreed,
  withSchedules,
  workspaceOfRuns,
} from "./place.js";

/** How many of its last runs are shown for a schedule. */
const runsMax = 10;

export async function listSchedules({ flags, machine }: Call<ScheduleFlags>): Promise<undefined> {
  const { clock } = machine;
  const place = workspaceOf(flags, machine);
  const none = existsSync(schedulesFile(place)) ? null : [];
  const all =
    none ??
    (await withSchedules(flags, machine, async (schedules, workspace) =>
      Promise.all((await schedules.all()).map((each) => upcomingOf(schedules, each, workspace, machine))),
    ));
  const documents = all.map((each) => listedSchedule(each, clock.now()));
  print(flags, machine, "schedules", documents, (style) =>
    all.length === 0
      ? `no schedules in ${place.root}; \`bulkgen schedule add\` adds one`
      : withHint(
          withHint(schedulesTable(all, clock, style), strangersText(all, place)),
          daemonMissing(place, machine),
        ),
  );
}

export async function showSchedules({
  flags,
  args,
  machine,
}: Pick<Call<ScheduleFlags, { name?: string }>, "flags" | "args" | "machine">): Promise<undefined> {
  const { clock } = machine;
  const { name } = args;
  await withSchedules(flags, machine, async (schedules, workspace) => {
    const { root } = workspace;
    const chosen = name === undefined ? await schedules.all() : [await scheduleNamed(schedules, name)];
    if (chosen.length === 0)
      throw new EarlyExit("usage", `there is no schedule in ${root}. \`bulkgen schedule add\` adds one.`);
    const all = await Promise.all(chosen.map((each) => upcomingOf(schedules, each, workspace, machine)));
    const documents = all.map((each) => listedSchedule(each, clock.now()));
    const text = (style: TerminalStyle) =>
      withHint(
        withHint(
          all.map((each) => upcomingText(each, clock, style)).join("\n\n"),
          strangersText(all, workspace),
        ),
        daemonMissing(workspace, machine),
      );
    const [first] = documents;
    if (name === undefined || first === undefined) print(flags, machine, "schedules", documents, text);
    else print(flags, machine, "schedule", first, text);
  });
}

/** What the schedules that this user has neither added nor agreed to would run; null if there are none. */
function strangersText(all: readonly UpcomingRun[], place: Workspace): string | null {
  const strangers = all.filter(({ isAgreed }) => !isAgreed);
  if (strangers.length === 0) return null;
  const lines = strangers.map(
    ({ schedule }) => `  ${shownFolderValue(scheduleValue(schedule, schedulesFile(place)))}`,
  );
  return `Not added on this machine, and not agreed to, so they do nothing until \`bulkgen trust\`:\n${lines.join("\n")}`;
}

function withHint(text: string, hint: string | null): string {
  return hint === null ? text : `${text}\n${hint}`;
}

export async function removeSchedule({
  flags,
  args,
  machine,
}: Call<ScheduleFlags, { name: string }>): Promise<undefined> {
  const { name } = args;
  await withSchedules(flags, machine, async (schedules, workspace) => {
    const schedule = await scheduleNamed(schedules, name);
    const [last] = await schedules.scheduledRuns(name, 1);
    await schedules.remove(name, await endNoteOf("removed", schedule, workspace, machine));
    // Put back by somebody else, it asks again.
    disagree(workspace.sharedFolder, workspace.root, scheduleSetting(name));
    const left = last === undefined ? "" : openRunText(last, schedule, workspace, machine);
    print(flags, machine, "schedule-remove", { removed: name }, () => `removed ${name}${left}`);
  });
}

/** What happens with the last run of a schedule that was removed; empty if the run is over. */
function openRunText(
  { dueAt, state }: ScheduledRun,
  schedule: Schedule,
  workspace: Workspace,
  machine: Machine,
): string {
  const run = `; its run of ${localText(dueAt, schedule.zone)}`;
  const there = flagsTo(workspace, flagOf(schedule, "--sandbox") !== null, machine);
  if (state === "running")
    return `${run} goes on until it ends: \`bulkgen status${there}\` shows it, \`bulkgen pause${there}\` stops it`;
  if (state === "waiting")
    return `${run} is not over, and no longer continues automatically: \`bulkgen resume${there}\` continues it`;
  return "";
}

/** A schedule with its last runs and the settings that apply to the next one. */
export async function upcomingOf(
  schedules: Schedules,
  schedule: Schedule,
  place: Workspace,
  machine: Machine,
): Promise<UpcomingRun> {
  const { clock, env } = machine;
  const scheduledRuns = await schedules.scheduledRuns(schedule.name, runsMax);
  const files = await configFiles(place.root, env);
  const settings = [
    ...effectiveSettings(schedule.flags, files, env),
    ...ofThisSchedule(schedule, runFlagsOf(schedule.flags, files, env), place, machine),
  ];
  if (whyNotAgreed(schedule, place) !== null) return { schedule, scheduledRuns, settings, isAgreed: false };
  const workspace = await workspaceOfRuns(schedule, place, machine);
  const since = scheduledRuns.at(-1)?.dueAt ?? clock.now();
  const runs = workspaceExists(workspace) ? await historyOf(workspace, clock, since) : [];
  return {
    schedule,
    scheduledRuns: scheduledRuns.map((run) => withRunResults(run, runs)),
    settings,
    isAgreed: true,
  };
}

/** What belongs to one call, and a schedule keeps for its runs: the agreed price, and the address of the service. */
function ofThisSchedule(
  schedule: Schedule,
  ofRuns: RunFlags,
  { root }: Workspace,
  machine: Machine,
): UpcomingRun["settings"] {
  const price = flagOf(schedule, "--max-price");
  return [
    ...(price === null ? [] : [{ name: "max-price", value: price, from: "--max-price" }]),
    ...(ofRuns.sandbox ? [] : addressSettings(ofRuns, root, machine)),
  ];
}

function addressSettings(ofRuns: RunFlags, root: string, machine: Machine): UpcomingRun["settings"] {
  try {
    const { baseUrl } = serviceSettings(ofRuns, root, machine);
    if (!baseUrl?.value) return [];
    return [{ name: "base-url", value: checkedAddress(baseUrl.value).baseUrl, from: baseUrl.from }];
  } catch (error) {
    // The run itself says what is wrong with the settings.
    if (error instanceof EarlyExit) return [];
    throw error;
  }
}

export async function printSchedule({ flags, machine }: Call<ScheduleFlags>): Promise<undefined> {
  const { root } = workspaceToChange(flags, machine);
  const [node, main] = machine.program;
  const [systemd, cron] = [systemdService({ node, main, root }), cronLine({ node, main, root })];
  // The crontab's own PATH is short: with this one, cron finds what this shell has found.
  const path = `PATH=${machine.env["PATH"] ?? dirname(node)}`;
  const own = `# In a crontab of your own, this line first, so that cron finds bulkgen and Node:\n${path}`;
  const hint = "# Or, without systemd, one line for crontab -e:";
  const only = onlyHere(machine, root);
  const missing =
    only.length === 0
      ? ""
      : `\n\n# Set in this shell, and not for systemd and cron: ${only.join(", ")}.\n# Put the address and the key into ${envFile(root)} (\`bulkgen init\` writes it), settings into ${workspaceConfig(root)},\n# and the rest into the service (Environment=NAME=VALUE) or the crontab (NAME=VALUE).`;
  print(
    flags,
    machine,
    "schedule-print",
    { systemd, cron, path },
    () => `${systemd}\n\n${hint}\n${cron}\n\n${own}${missing}`,
  );
}

/** Variables by which a run finds its state and settings, and reaches the service, its proxy and its buckets. */
const ofRuns = /^(BULKGEN_|AWS_|XDG_(STATE|CONFIG)_HOME$|NODE_EXTRA_CA_CERTS$|(https?|no)_proxy$)/i;

/** Those of them that only the environment of this shell has. */
function onlyHere({ env, cwd }: Machine, root: string): string[] {
  const inFile = serviceSettings({}, root, { env: {}, cwd });
  const known = [inFile.baseUrl && "BULKGEN_BASE_URL", inFile.key && "BULKGEN_API_KEY"];
  return Object.keys(env)
    .filter((name) => ofRuns.test(name) && env[name] && !known.includes(name))
    .toSorted();
}
