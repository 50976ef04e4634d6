import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import { clientText } from "../client-text.js";
import {
  type Accepted,
  type Done,
  JobLater,
  type JobOutput,
  JobRefused,
  type Json,
  type MediaFile,
  type MediaName,
  type ModelSettings,
  type Provider,
  type ProviderJob,
  type ProviderPlace,
  type ProviderSettings,
  type Running,
} from "../provider.js";
import { openSender, type Sender } from "../send.js";
import { type Bind, boundWorkflow, mediaNames } from "./bind.js";
import { type Workflow, workflowFile } from "./graph.js";
import { ComfyMachine, type Ended, goneMs, type Rejection } from "./machine.js";

/** What a model of ComfyUI says besides. */
export interface WorkflowModel {
  /** Relative to the folder of the models file. */
  workflow: string;
  bind: Bind;
}

/** All that is needed to ask for a job, which stays with its machine. */
interface Resume {
  address: string;
  /** As the machine calls it: the job's own id, except on versions that do not know `prompt_id`. */
  id: string;
  /** How many machines could not be reached when the job was sent, of how many. */
  gone?: number;
  of?: number;
  /** How often in a row the machine did not know the job. */
  missing?: number;
}

/**
 * How often in a row a machine has to say that it does not know a job before the job counts as lost. ComfyUI has queue and
 * history in memory, so after a restart they are empty. One such answer may come from another machine: some stand behind an
 * address that leads to several.
 */
const missingMax = 3;

/** Jobs of one or several machines with ComfyUI. */
export class ComfyJobs implements Provider {
  /** A repeated id runs twice, but a machine says whether it has a job. */
  readonly repeatable = "by id";
  private readonly machines: readonly ComfyMachine[];
  /** How many jobs are being sent to a machine, which its queue does not show yet. */
  private readonly sending = new Map<string, number>();

  private readonly sender: Sender;

  constructor(
    settings: ProviderSettings,
    private readonly place: Pick<ProviderPlace, "folder" | "key" | "clock" | "proxies">,
  ) {
    const headers = () => headersWith(settings.headers, place.key());
    const sender = openSender({ ...place, key: () => place.key() });
    this.sender = sender;
    this.machines = settings.addresses.map(
      (address) => new ComfyMachine(address, sender, headers, settings.timeoutMs),
    );
  }

  async submit(job: ProviderJob, signal: AbortSignal): Promise<Accepted> {
    const { workflow, bind } = job.model.details as unknown as WorkflowModel;
    const saved = this.workflow(workflow);
    const { machine, gone } = await this.leastBusy(signal);
    this.count(machine, 1);
    try {
      const files = await this.uploaded(job, bind, machine, signal);
      const id = await sent(machine, job.id, boundWorkflow(saved, bind, job, files), signal);
      const unreached = gone === 0 ? {} : { gone, of: this.machines.length };
      return acceptedAs({ address: machine.address, id, ...unreached });
    } finally {
      this.count(machine, -1);
    }
  }

  async poll(resume: Json, signal: AbortSignal): Promise<Done | Running> {
    const state = resume as unknown as Resume;
    const machine = this.machineAt(state.address);
    const where = await machine.whereIs(state.id, signal);
    if (where === null) return missed(state);
    const { missing: _, ...known } = state;
    if ("ended" in where) return finished(machine, state.id, where.ended);
    const note = [
      "running" in where
        ? "it is being made"
        : `${ordinal(where.place + 1)} of ${where.waiting} in the queue`,
      ...(state.gone ? [`${state.gone} of ${state.of} machines could not be reached`] : []),
    ].join("; ");
    return { running: true, note, ...(state.missing ? { resume: asJson(known) } : {}) };
  }

  /** Looks on every machine. One that does not answer may have the job, so then nobody knows, and this throws. */
  async find({ id }: Pick<ProviderJob, "id">, signal: AbortSignal): Promise<Accepted | null> {
    const found = await Promise.all(
      this.machines.map(async (machine) => {
        const where = await machine.whereIs(id, signal).catch((error: unknown) => error as Error);
        return { machine, where };
      }),
    );
    const has = found.find(({ where }) => where !== null && !(where instanceof Error));
    if (has !== undefined) return acceptedAs({ address: has.machine.address, id });
    const silent = found.flatMap(({ where }) => (where instanceof Error ? [where] : []));
    if (silent[0] !== undefined)
      throw new Error(
        `${silent.length} of ${this.machines.length} machines did not say whether they have the job: ${silent[0].message}`,
      );
    return null;
  }

  async named(_: ProviderJob, ref: string, signal: AbortSignal): Promise<Accepted> {
    const found = await this.find({ id: ref }, signal);
    if (found === null) throw new Error("no machine knows a job of that id");
    return found;
  }

  async cancel(resume: Json, signal: AbortSignal): Promise<{ billed: boolean | null }> {
    const { address, id } = resume as unknown as Resume;
    const machine = this.machineAt(address);
    await machine.removeFromQueue(id, signal);
    const where = await machine.whereIs(id, signal);
    if (where !== null && "running" in where) await machine.interrupt(id, signal);
    return { billed: false };
  }

  async check(signal: AbortSignal, models: readonly ModelSettings[]): Promise<string | null> {
    const needed = this.classes(models);
    if (typeof needed === "string") return needed;
    const wrong = await Promise.all(this.machines.map((machine) => machineTrouble(machine, needed, signal)));
    return wrong.filter((each) => each !== null).join("; ") || null;
  }

  /** The classes of nodes that these models need, with one model for each; or what is wrong with a workflow. */
  private classes(models: readonly ModelSettings[]): Map<string, string> | string {
    const classes = new Map<string, string>();
    for (const { key, details } of models) {
      try {
        const nodes = workflowFile(this.place.folder, (details as unknown as WorkflowModel).workflow);
        for (const { class_type } of Object.values(nodes)) classes.set(class_type, key);
      } catch (error) {
        return `the model ${key}: ${(error as Error).message}`;
      }
    }
    return classes;
  }

  private workflow(name: string): Workflow {
    try {
      return workflowFile(this.place.folder, name);
    } catch (error) {
      throw new JobRefused("provider", clientText((error as Error).message), false);
    }
  }

  /** The machine with the fewest jobs among those that answer. Throws `JobLater` if none does: nothing was sent. */
  private async leastBusy(signal: AbortSignal): Promise<{ machine: ComfyMachine; gone: number }> {
    const asked = await Promise.all(
      this.machines.map(async (machine) => {
        const queue = await machine.queue(signal).catch((error: unknown) => error as Error);
        return { machine, queue };
      }),
    );
    let best: { machine: ComfyMachine; jobs: number } | null = null;
    const reasons: string[] = [];
    for (const { machine, queue } of asked) {
      if (queue instanceof Error) {
        reasons.push(queue.message);
        continue;
      }
      const jobs = queue.running.length + queue.pending.length + (this.sending.get(machine.address) ?? 0);
      if (best === null || jobs < best.jobs) best = { machine, jobs };
    }
    if (best !== null) return { machine: best.machine, gone: reasons.length };
    const none = this.machines.length === 1 ? "ComfyUI does not answer" : "no machine with ComfyUI answers";
    throw new JobLater(`${none}: ${reasons[0] ?? "there is none"}`, goneMs, "provider");
  }

  private count(machine: ComfyMachine, by: number): void {
    this.sending.set(machine.address, (this.sending.get(machine.address) ?? 0) + by);
  }

  /** Uploads come before the job is sent, so that whatever goes wrong with them it was not accepted. */
  private async uploaded(
    { id, media }: ProviderJob,
    bind: Bind,
    machine: ComfyMachine,
    signal: AbortSignal,
  ): Promise<Partial<Record<MediaName, string>>> {
    const files: Partial<Record<MediaName, string>> = {};
    for (const name of mediaNames) {
      const file = media[name];
      if (file === undefined || !Object.hasOwn(bind, name)) continue;
      const answer = await uploadedAs(machine, file, `bulkgen-${id}-${name}`, signal);
      if (typeof answer === "number")
        throw new JobRefused("input", `ComfyUI did not take the ${name}: it answered ${answer}`, false);
      files[name] = answer;
    }
    return files;
  }

  /** A machine that the models file does not name any more still has the jobs that it was given. */
  private machineAt(address: string): ComfyMachine {
    return (
      this.machines.find((machine) => machine.address === address) ??
      new ComfyMachine(address, this.sender, () => ({}))
    );
  }
}

/** Headers with the key in place of `{{ key }}`. */
function headersWith(headers: Readonly<Record<string, string>>, key: string | null): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      value.replace(/\{\{\s*key\s*\}\}/g, () => key ?? ""),
    ]),
  );
}

function acceptedAs(resume: Resume): Accepted {
  return { ref: resume.id, resume: asJson(resume) };
}

function asJson(resume: Resume): Json {
  return { ...resume } as Record<string, Json>;
}

/** Sends the workflow once, and answers with the machine's id of it. */
async function sent(
  machine: ComfyMachine,
  id: string,
  workflow: Workflow,
  signal: AbortSignal,
): Promise<string> {
  const answer = await machine.prompt(id, workflow, signal);
  if ("accepted" in answer) return answer.accepted;
  if ("rejected" in answer) throw new JobRefused("parameter", rejectionText(answer.rejected), false);
  // A client's error says that the request was understood and not taken; a server's says nothing.
  if (answer.status >= 400 && answer.status < 500)
    throw new JobRefused(
      "provider",
      `ComfyUI answered ${answer.status}: is base_url its address, and the key good?`,
      false,
    );
  throw new Error(`${machine.address} answered a workflow with ${answer.status}`);
}

async function uploadedAs(
  machine: ComfyMachine,
  { path, type }: MediaFile,
  name: string,
  signal: AbortSignal,
): Promise<string | number> {
  try {
    const answer = await machine.upload(await readFile(path), `${name}${endingOf(path, type)}`, type, signal);
    if (typeof answer === "number" && answer >= 500) throw new Error(`it answered ${answer}`);
    return answer;
  } catch (error) {
    throw new JobLater(
      `an input could not be given to ComfyUI: ${(error as Error).message}`,
      goneMs,
      "provider",
    );
  }
}

const endings: Readonly<Record<string, string>> = {
  jpeg: "jpg",
  mpeg: "mp3",
  "svg+xml": "svg",
  quicktime: "mov",
};

function endingOf(path: string, type: string): string {
  const subtype = type.split("/")[1]?.split(";")[0] ?? "";
  const ending = extname(path) || `.${endings[subtype] ?? subtype.replace(/^x-/, "")}`;
  return /^\.[a-z0-9]{1,8}$/i.test(ending) ? ending : "";
}

/** What ComfyUI says of a workflow that it does not run. */
function rejectionText({ error, node_errors = {} }: Rejection): string {
  const found = Object.entries(node_errors).flatMap(([id, { class_type = "node", errors = [] }]) =>
    errors.map(({ message = "", details = "", extra_info }) => {
      // Details begin with the input's name in most cases.
      const about = details || (extra_info?.input_name ?? "");
      return `node ${id} (${class_type}): ${[message, about].filter(Boolean).join(": ")}`;
    }),
  );
  const whole =
    typeof error === "string" ? error : [error?.message, error?.details].filter(Boolean).join(": ");
  return clientText(`ComfyUI refused the workflow: ${found.join("; ") || whole || "it does not say why"}`);
}

function missed(state: Resume): Running {
  const missing = (state.missing ?? 0) + 1;
  if (missing >= missingMax)
    throw new JobRefused(
      "provider",
      "ComfyUI does not know the job any more: it was restarted, or the job was removed from its queue",
      false,
    );
  return {
    running: true,
    note: "ComfyUI does not know the job at the moment",
    resume: asJson({ ...state, missing }),
  };
}

function finished(machine: ComfyMachine, id: string, { status, outputs }: Ended): Done {
  const messages = status?.messages ?? [];
  const fault = messages.find(([event]) => event === "execution_error")?.[1];
  if (fault !== undefined) {
    const { node_id, node_type, exception_message } = fault as Record<string, string | undefined>;
    const why = (exception_message ?? "").trim().split("\n")[0];
    throw new JobRefused(
      "provider",
      clientText(`ComfyUI stopped at node ${node_id} (${node_type}): ${why}`),
      false,
    );
  }
  if (messages.some(([event]) => event === "execution_interrupted"))
    throw new JobRefused("provider", "the job was stopped in ComfyUI", false);
  if (status?.status_str === "error")
    throw new JobRefused("provider", "ComfyUI failed without saying why", false);
  const files = filesOf(outputs).map(({ filename, subfolder = "", type = "output" }) =>
    machine.file(filename, subfolder, type),
  );
  if (files.length === 0)
    throw new JobRefused(
      "provider",
      "ComfyUI ended the job without a file: does the workflow save its result?",
      false,
    );
  return { outputs: files satisfies JobOutput[], ref: id };
}

interface SavedFile {
  filename: string;
  subfolder?: string;
  type?: string;
}

/** The files of all nodes, whatever their lists are called (`images`, `gifs`, `audio` …); previews only if nothing was saved. */
function filesOf(outputs: Ended["outputs"]): SavedFile[] {
  const all = Object.entries(outputs ?? {})
    .toSorted(([a], [b]) => a.localeCompare(b, "en", { numeric: true }))
    .flatMap(([, lists]) => Object.values(lists))
    .flatMap((list) => (Array.isArray(list) ? (list as unknown[]) : []))
    .filter((file): file is SavedFile => typeof (file as SavedFile | null)?.filename === "string");
  const saved = all.filter(({ type }) => type !== "temp");
  return saved.length > 0 ? saved : all;
}

/** What is wrong with a machine, or null. */
async function machineTrouble(
  machine: ComfyMachine,
  classes: ReadonlyMap<string, string>,
  signal: AbortSignal,
): Promise<string | null> {
  try {
    await machine.systemStats(signal);
    const has = await Promise.all(
      [...classes.keys()].map(async (name) => ({ name, isThere: await machine.has(name, signal) })),
    );
    const missing = has.filter(({ isThere }) => !isThere).map(({ name }) => name);
    if (missing.length === 0) return null;
    const models = [...new Set(missing.map((name) => classes.get(name)))].join(", ");
    return `${machine.address} has no node ${missing.join(", ")}, which ${models} needs: install it with ComfyUI-Manager`;
  } catch (error) {
    return `${machine.address} is no ComfyUI that answers: ${(error as Error).message}`;
  }
}

const suffixes: Readonly<Record<string, string>> = { one: "st", two: "nd", few: "rd", other: "th" };
const ordinals = new Intl.PluralRules("en", { type: "ordinal" });

function ordinal(number: number): string {
  return `${number}${suffixes[ordinals.select(number)]}`;
}
