import { missedChoices } from "../core/scheduled-run.js";
import { asChanges, type FlagsOf, option, toggle } from "./definition.js";
import { type RunFlags, runFlags } from "./run.js";
import { logFlags, workspaceFlags } from "./shared.js";
import { anyText, oneOf, pathName, portNumber, repeated } from "./values.js";

/** Flags of every command about schedules. */
export const scheduleFlags = {
  workspace: option(
    "<folder>",
    "folder with .bulkgen/ (default: the nearest at or above this one)",
    pathName,
    {
      isPath: true,
      inFiles: "never",
    },
  ),
  databaseUrl: workspaceFlags.databaseUrl,
  json: toggle("print one JSON document on stdout", { inFiles: "never" }),
};
export type ScheduleFlags = FlagsOf<typeof scheduleFlags>;

export const scheduleAddFlags = {
  cron: option("<line>", 'when: minute hour day month weekday, such as "0 2 * * *"', anyText, {
    required: true,
    inFiles: "never",
  }),
  tz: option("<zone>", "time zone of --cron, such as Europe/Berlin (default: this machine's)", anyText, {
    inFiles: "never",
  }),
  missed: option(
    "<what>",
    "runs that were due while the daemon was off: once (catch up once, with the latest) or skip",
    oneOf(...missedChoices),
    { default: "once", inFiles: "never" },
  ),
  ...runFlags,
  yes: toggle("not needed: who adds a schedule agrees to what its runs spend", { inFiles: "never" }),
};
export type ScheduleAddFlags = RunFlags & Omit<FlagsOf<typeof scheduleAddFlags>, "cron"> & { cron: string };

/** What is not given stays as it was. */
const { required: _, ...cron } = scheduleAddFlags.cron;
export const scheduleEditFlags = {
  unset: option("<flag>", "drop a flag of its runs, such as --unset max-credits; repeatable", repeated, {
    inFiles: "never",
  }),
  ...asChanges({ ...scheduleAddFlags, cron }),
  ...scheduleFlags,
};
export type ScheduleEditFlags = FlagsOf<typeof scheduleEditFlags>;

export const scheduleRunFlags = {
  quiet: toggle("print nothing unless the run fails, as cron wants it"),
  ...scheduleFlags,
};
export type ScheduleRunFlags = FlagsOf<typeof scheduleRunFlags>;

export const scheduleStartFlags = {
  port: option("<n>", "port of /healthz on 127.0.0.1", portNumber, {
    default: 0,
    defaultText: "any free port",
    inFiles: "never",
  }),
  metrics: option(
    "<port>",
    "serve figures for Prometheus at /metrics on this port of 127.0.0.1",
    portNumber,
    {
      inFiles: "never",
    },
  ),
  ...logFlags("info"),
  ...scheduleFlags,
};
export type ScheduleStartFlags = FlagsOf<typeof scheduleStartFlags>;
