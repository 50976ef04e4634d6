import { describe, expect, test } from "vitest";
import type { LockedChoice, RunOptions } from "../../src/core/next/options.js";
import type { SameType } from "../../src/documents/same-type.js";
import { type PlanSettings, type RunDetails, runOptionsOf } from "../../src/library/plan.js";
import { checkManifestSettings } from "../../src/library/settings.js";
import { type FlagDefinition, nameOf } from "../../src/options/definition.js";
import { manifestFlags } from "../../src/options/manifest.js";
import { changedOptions, resumeFlags, runFlags, runOptions } from "../../src/options/run.js";
import { changedFlags } from "../../src/report/run-options.js";

/** A value of each flag that a run keeps, other than its default. */
const values: Readonly<Record<string, string | true>> = {
  sandbox: true,
  maxCredits: "60",
  maxCreditsPerModel: "aurora-image-mini=20",
  keepCredits: "5",
  maxCreditsPerDay: "0.5",
  onInsufficient: "fit",
  onDailyLimit: "wait",
  maxFailures: "5%",
  retries: "3",
  until: "06:00",
  maxDuration: "90m",
  overdueWait: "2h",
  lanes: "2",
  downloads: "9",
  rpm: "7",
  rpd: "100",
  share: "50%",
  poll: "frugal",
  archive: "s3://bucket/prefix",
  archiveOnly: true,
  canary: true,
  afterFile: "true",
  afterSet: "false",
  afterTimeout: "20m",
  sidecars: true,
  settle: "wait",
  settleSeconds: "10,20",
  maxUnsettled: "4",
  generationError: "free",
  orphans: "resubmit",
  orphanCredits: "8",
};

/** A program has its own clock, folders and buckets, and stops a run by its signal. */
const notInLibrary = (
  "maxCreditsPerDay until maxDuration overdueWait downloads poll archive archiveOnly canary sidecars settle settleSeconds " +
  "maxUnsettled generationError orphans orphanCredits afterFile afterSet afterTimeout"
).split(" ");

/** What the job sets, which knows the manifest too. */
const ofJob = ["publish", "publishFor"];

/** Flags of one call: what they say ends with it, or `resume` has them itself. */
const ofCall =
  "yes maxPrice out workspace databaseUrl json quiet models baseUrl apiKeyFile trustAddress logLevel logFormat acceptForeignUse skipInvalid gallery publishCommand unreachableWait work ifLocked events notify notifyCommand smtpUrl smtpFrom".split(
    " ",
  );

const definitions: Readonly<Record<string, FlagDefinition>> = runFlags as never;

/** The values as a command gets them: read from text, with the defaults of what is not given. */
function flags(given: Readonly<Record<string, string | true>>): never {
  const defaults = Object.entries(definitions).map(([name, { default: usual }]) => [name, usual]);
  const read = Object.entries(given).map(([name, text]) => [name, definitions[name]?.parse(String(text))]);
  return Object.fromEntries(defaults.concat(read).filter(([, value]) => value !== undefined)) as never;
}

function line(given: Readonly<Record<string, string | true>>): string[] {
  return Object.entries(given).map(([name, text]) => `--${nameOf(name)}${text === true ? "" : ` ${text}`}`);
}

describe("what a run keeps of its flags", () => {
  test("is shown as it was given, flag by flag", () => {
    expect(changedFlags(runOptions(flags(values))).toSorted()).toEqual(line(values).toSorted());
    expect(changedFlags(runOptions(flags({})))).toEqual([]);
  });

  test.each(
    Object.keys(values).filter((name) => !["archiveOnly", "orphans", "orphanCredits"].includes(name)),
  )("--%s alone", (name) => {
    const given = { [name]: values[name] ?? "" };
    expect(changedFlags(runOptions(flags(given)))).toEqual(line(given));
  });

  test("is a setting of the library under the same name, unless it is named here", () => {
    const inLibrary = Object.keys(values).filter((name) => !notInLibrary.includes(name));
    const settings = {
      maxCredits: 60,
      maxCreditsPerModel: { "aurora-image-mini": 20 },
      keepCredits: 5,
      onInsufficient: "fit",
      onDailyLimit: "wait",
      maxFailures: 4,
      retries: 3,
      lanes: 2,
      limits: { rpm: 7, rpd: 100, share: 50 },
    };
    checkManifestSettings("set.csv", settings);
    const shown = line({ ...values, maxFailures: "4" });
    const expected = shown.filter((flag) =>
      inLibrary.some((name) => flag.split(" ")[0] === `--${nameOf(name)}`),
    );
    expect(changedFlags(runOptionsOf(settings as never, true)).toSorted()).toEqual(expected.toSorted());
  });

  test("is chosen in the library from the words that a flag takes", () => {
    type Settings = Required<PlanSettings & RunDetails>;
    const onInsufficient: SameType<Settings["onInsufficient"], RunOptions["onInsufficient"]> = true;
    const onDailyLimit: SameType<Settings["onDailyLimit"], RunOptions["onDailyLimit"]> = true;
    const ifLocked: SameType<Settings["ifLocked"], LockedChoice> = true;
    expect([onInsufficient, onDailyLimit, ifLocked]).toEqual([true, true, true]);
  });

  test("is decided for every flag: it is kept, the job sets it, it belongs to one call, or it reads the manifest", () => {
    const undecided = Object.keys(definitions).filter(
      (name) => ![ofJob, ofCall, Object.keys(manifestFlags)].flat().includes(name) && !(name in values),
    );
    expect(undecided).toEqual([]);
    for (const [name, { kept }] of Object.entries(definitions))
      expect(kept !== undefined, name).toBe(name in values || ofJob.includes(name));
  });

  test("is changed by resume where a flag is given, and only there", () => {
    const before = runOptions(flags({ maxCreditsPerModel: "film-8=3", retries: "2", until: "05:00" }));
    const changed = changedOptions({ maxCreditsPerModel: { voice: 4 }, lanes: 3 } as never, before);
    expect(changedFlags({ ...before, ...changed })).toEqual([
      "--max-credits-per-model film-8=3",
      "--max-credits-per-model voice=4",
      "--retries 2",
      "--until 05:00",
      "--lanes 3",
    ]);
    expect(Object.values(resumeFlags).filter((flag) => "default" in flag && "changeable" in flag)).toEqual(
      [],
    );
  });
});
