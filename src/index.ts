import type { IndexLine } from "./archive/index-file.js";
import type { RunEvent } from "./documents/run.js";
import { type Client, type ClientOptions, openClient } from "./library/client.js";
import { type PlannedJob, type PlanSettings, planManifest } from "./library/plan.js";
import { type RunRequirements, runManifest } from "./library/run.js";
import { type LocalSandbox, type SandboxSettings, startSandbox } from "./library/sandbox.js";
import { type ReadManifest, type ReadSettings, readRows } from "./library/sheet.js";
import { openReader, readIndexOf, type WorkspaceOptions, type WorkspaceReader } from "./library/workspace.js";
import { systemHost } from "./system.js";

/**
 * bulkgen as a library. It does what the command does, without its flags, settings files and messages: nothing is read
 * from the environment but the place of shared state (`XDG_STATE_HOME`, `HOME`), the proxies (`HTTPS_PROXY`, `HTTP_PROXY`,
 * `NO_PROXY`) and, for buckets, their keys; nothing is printed. Credits are plain numbers, times are ISO 8601 in UTC,
 * durations are milliseconds.
 *
 * Anything that cannot begin rejects with an EarlyExit, whose `exit` is the name of the command's exit code and whose
 * `problems` are those of the manifest, if they are the reason. A ServiceError says what came of a client's request.
 */

export type { ErrorCode } from "./api/errors.js";
export type { Me, Model, ModelList, ModelParameter, Task } from "./api/records.js";
export type { IndexLine } from "./archive/index-file.js";
export { type ModelFilter, ServiceError } from "./client/service.js";
export { EarlyExit, type ExitName } from "./core/exit.js";
export type { Log } from "./core/ports/send.js";
export type { Digest, Place, Problem, ProblemGroup } from "./core/problem.js";
export { NoRequestsUntil } from "./core/quota/quota.js";
export type { FileDocument } from "./documents/file.js";
export type { ItemDocument } from "./documents/item.js";
export type { ReportDocument, RunDocument, RunEvent, StatusDocument } from "./documents/run.js";
export type { Client, ClientOptions } from "./library/client.js";
export type { PlannedJob, PlanSettings } from "./library/plan.js";
export type { RunRequirements } from "./library/run.js";
export type { LocalSandbox, SandboxSettings } from "./library/sandbox.js";
export type { ServiceAddress } from "./library/service.js";
export type { ManifestRow, ReadManifest, ReadSettings, SheetSettings } from "./library/sheet.js";
export type { WorkspaceOptions, WorkspaceReader } from "./library/workspace.js";
export type { FinalSet } from "./upkeep/archive/final-files.js";

/**
 * Opens a client that reads from the service: GET models, GET me, GET task. It never pays; `run` does. Its requests share
 * the account's quota with runs. Opening the client sends nothing. Throws EarlyExit if the address or the key is not valid,
 * and RangeError if a setting is unknown or has no valid value.
 */
export function createClient(options: ClientOptions): Promise<Client> {
  return openClient(systemHost(), options);
}

/**
 * Reads a manifest (CSV, Excel, JSON, JSONL, YAML) into rows, each in every combination of its job and with its
 * templates rendered, and finds the problems that can be found without the service. Works offline. Returns problems and
 * never throws them. Throws RangeError if a setting is unknown or has no valid value.
 */
export function readManifest(manifest: string, settings: ReadSettings = {}): Promise<ReadManifest> {
  return readRows(systemHost(), manifest, settings);
}

/**
 * Checks a manifest against the models and the account, and returns what a run would make, what it would cost and how
 * long it would take. Spends nothing and changes nothing; makes two requests, GET me and GET models. Prices are the
 * highest charges seen so far, or the service's list prices; the forecast uses the durations of earlier generations.
 * `problems` lists what is wrong with rows, `blockers` what would stop a run. Throws EarlyExit if nothing can be planned,
 * and RangeError if a setting is unknown or has no valid value.
 */
export function plan(manifest: string, settings: PlanSettings): Promise<PlannedJob> {
  return planManifest(systemHost(), manifest, settings);
}

/**
 * Runs a manifest: plans, submits, polls and archives. Continues an interrupted run of the manifest. Finished items are
 * never paid again. **Spends credits**: at most `maxCredits`, and only if `agree` (when given) returns true; one of the
 * two is required. The run starts when the first event is requested.
 *
 * Leaving the loop or aborting `signal` interrupts the run: it submits nothing more, waits for the answers in flight and
 * saves them. The next run of the manifest collects what the service has made by then. The last event of a run is always
 * `run_finished`. Throws EarlyExit if the run cannot start or `agree` does not return true, and RangeError if a setting
 * is unknown or has no valid value.
 */
export function run(manifest: string, settings: RunRequirements): AsyncGenerator<RunEvent, void, void> {
  return runManifest(systemHost(), manifest, settings);
}

/**
 * Opens a workspace to read its runs, items and outputs, or with `sandbox` those of its rehearsals. Throws EarlyExit if
 * there are no runs yet, and RangeError if an argument is unknown or has no valid value.
 */
export function openWorkspace(folder: string, place: WorkspaceOptions = {}): Promise<WorkspaceReader> {
  return openReader(systemHost(), folder, place);
}

/**
 * Reads the index of a job's folder (`outputs/JOB/index.jsonl`): one entry for each file, with its prompt, params, task,
 * hash and cost. Also reads a copy of the folder. Throws EarlyExit if the folder has no index.
 */
export function readIndex(folder: string): Promise<IndexLine[]> {
  return readIndexOf(systemHost(), folder);
}

/**
 * Starts the sandbox, a local copy of the service, in this process, for tests and rehearsals without a key and without
 * cost. It makes real files, and can inject faults. The process does not end until the sandbox is closed. Throws RangeError
 * if a setting is unknown or has no valid value.
 */
export function createSandbox(settings: SandboxSettings = {}): Promise<LocalSandbox> {
  return startSandbox(systemHost(), settings);
}
