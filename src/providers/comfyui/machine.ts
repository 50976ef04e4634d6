import type { Json } from "../provider.js";
import type { ProviderAnswer, ProviderRequest, Sender } from "../send.js";
import type { ObjectInfo } from "./workflow.js";

/** A machine with ComfyUI, as its `server.py` speaks. */

/** How long a machine may take to answer what it knows at once (ms): models load in the same process. */
const answerMs = 20_000;

/** How long to leave a machine alone that cannot be reached (ms). */
export const goneMs = 15_000;

/** A job as /queue and /history list it: number, id, workflow, extra data, nodes to execute. */
export type QueuedJob = readonly [number, string, unknown, { client_id?: string }?, ...unknown[]];

export interface MachineQueue {
  running: QueuedJob[];
  pending: QueuedJob[];
}

/** A finished job. */
export interface Ended {
  outputs: Record<string, Record<string, unknown>>;
  status?: { status_str?: string; messages?: [string, Record<string, unknown>][] } | null;
}

/** An answer that ComfyUI gives with a status of 400: why a workflow cannot run. */
export interface Rejection {
  error?: { type?: string; message?: string; details?: string } | string;
  node_errors?: Record<
    string,
    {
      class_type?: string;
      errors?: { message?: string; details?: string; extra_info?: { input_name?: string } }[];
    }
  >;
}

export type PromptAnswer =
  | { accepted: string }
  | { rejected: Rejection }
  /** A status that ComfyUI itself does not answer a workflow with: a proxy, or no ComfyUI at all. */
  | { status: number };

export class ComfyMachine {
  constructor(
    /** Without a slash at its end. */
    readonly address: string,
    private readonly sender: Sender,
    private readonly headers: () => Record<string, string>,
    /** How long a workflow or an upload may go unanswered (ms). */
    private readonly timeoutMs = answerMs,
  ) {}

  async queue(signal: AbortSignal): Promise<MachineQueue> {
    const { queue_running, queue_pending } = (await this.get("/queue", signal)) as {
      queue_running?: unknown;
      queue_pending?: unknown;
    };
    if (!Array.isArray(queue_running) || !Array.isArray(queue_pending))
      throw new Error(`${this.address} answered /queue in another way than ComfyUI does`);
    // The list of those that wait is a heap, in no order that says anything.
    const pending = (queue_pending as QueuedJob[]).toSorted(([a], [b]) => a - b);
    return { running: queue_running as QueuedJob[], pending };
  }

  async ended(id: string, signal: AbortSignal): Promise<Ended | null> {
    const found = (await this.get(`/history/${encodeURIComponent(id)}`, signal)) as unknown as Record<
      string,
      Ended
    >;
    return Object.hasOwn(found, id) ? (found[id] ?? null) : null;
  }

  /** The job, wherever it is. Read in this order a job that moves on meanwhile is not missed: it only goes forward. */
  async whereIs(id: string, signal: AbortSignal): Promise<JobPlace> {
    const before = await this.ended(id, signal);
    if (before !== null) return { ended: before };
    const queue = await this.queue(signal);
    if (queue.running.some((job) => isJob(job, id))) return { running: true };
    const place = queue.pending.findIndex((job) => isJob(job, id));
    if (place >= 0) return { place, waiting: queue.pending.length };
    const after = await this.ended(id, signal);
    return after === null ? null : { ended: after };
  }

  /** Sends a workflow. An error that is not `JobLater` leaves open whether it was accepted. */
  async prompt(id: string, workflow: unknown, signal: AbortSignal): Promise<PromptAnswer> {
    const body = JSON.stringify({ prompt: workflow, prompt_id: id, client_id: id });
    const request = this.request("POST", "/prompt", body, this.timeoutMs);
    const { status, body: answered } = await this.sender.pay(request, signal);
    if (status !== 200 && status !== 400) return { status };
    const answer = this.json(answered, "/prompt") as { prompt_id?: unknown } & Rejection;
    if (status === 400) return { rejected: answer };
    if (typeof answer.prompt_id !== "string")
      throw new Error(`${this.address} answered a workflow without a prompt_id`);
    return { accepted: answer.prompt_id };
  }

  /** Puts a file into its input folder, and answers with the name that nodes know it by; the status if it does not take it. */
  async upload(bytes: Uint8Array, name: string, type: string, signal: AbortSignal): Promise<string | number> {
    const { contentType, body } = multipart(bytes, name, type);
    const request = this.request("POST", "/upload/image", body, this.timeoutMs, contentType);
    const { status, body: answered } = await this.sender.ask(request, signal);
    if (status !== 200) return status;
    const answer = this.json(answered, "/upload/image") as { name?: string; subfolder?: string };
    if (!answer.name) throw new Error(`${this.address} answered an upload without a name`);
    return answer.subfolder ? `${answer.subfolder}/${answer.name}` : answer.name;
  }

  async removeFromQueue(id: string, signal: AbortSignal): Promise<void> {
    await this.post("/queue", { delete: [id] }, signal);
  }

  /** Older versions take no id here, and stop whatever runs: look first whether this job does. */
  async interrupt(id: string, signal: AbortSignal): Promise<void> {
    await this.post("/interrupt", { prompt_id: id }, signal);
  }

  async systemStats(signal: AbortSignal): Promise<void> {
    const { system } = (await this.get("/system_stats", signal)) as { system?: unknown };
    if (typeof system !== "object") throw new Error("it is no ComfyUI");
  }

  /** Whether it has a node of this class. */
  async has(nodeClass: string, signal: AbortSignal): Promise<boolean> {
    const found = (await this.get(`/object_info/${encodeURIComponent(nodeClass)}`, signal)) as object;
    return Object.hasOwn(found, nodeClass);
  }

  /** What it says of all its nodes. */
  async objectInfo(signal: AbortSignal): Promise<ObjectInfo> {
    return (await this.get("/object_info", signal)) as unknown as ObjectInfo;
  }

  /** The address of a finished file, with the headers that a proxy before the machine may want. */
  file(name: string, folder: string, type: string): { url: string; headers?: Record<string, string> } {
    const query = new URLSearchParams({ filename: name, subfolder: folder, type });
    const headers = this.headers();
    const url = `${this.address}/view?${query}`;
    return Object.keys(headers).length === 0 ? { url } : { url, headers };
  }

  private async get(path: string, signal: AbortSignal): Promise<Json> {
    const { status, body } = await this.sender.ask(this.request("GET", path), signal);
    if (status !== 200) throw new Error(`${this.address} answered ${path} with ${status}`);
    return this.json(body, path);
  }

  private async post(path: string, body: Json, signal: AbortSignal): Promise<void> {
    const { status } = await this.sender.ask(this.request("POST", path, JSON.stringify(body)), signal);
    if (status !== 200) throw new Error(`${this.address} answered ${path} with ${status}`);
  }

  private request(
    method: "GET" | "POST",
    path: string,
    body?: string | Uint8Array,
    timeoutMs = answerMs,
    contentType = "application/json",
  ): ProviderRequest {
    const own: Record<string, string> = body === undefined ? {} : { "content-type": contentType };
    const headers = { accept: "application/json", ...own, ...this.headers() };
    return {
      method,
      url: new URL(this.address + path),
      headers,
      timeoutMs,
      ...(body === undefined ? {} : { body }),
    };
  }

  private json(body: ProviderAnswer["body"], path: string): Json {
    let value: Json;
    try {
      value = JSON.parse(body.toString("utf8")) as Json;
    } catch {
      throw new Error(`${this.address} answered ${path} with something else than JSON`);
    }
    if (value === null || typeof value !== "object")
      throw new Error(`${this.address} answered ${path} in another way than ComfyUI does`);
    return value;
  }
}

export type JobPlace = { ended: Ended } | { running: true } | { place: number; waiting: number } | null;

/** Versions that do not know `prompt_id` give a job an id of their own; ours is then its client's. */
function isJob(job: QueuedJob, id: string): boolean {
  return job[1] === id || job[3]?.client_id === id;
}

/** A form with one file, which takes the place of one of the same name. The name has no character that a form would quote. */
function multipart(bytes: Uint8Array, name: string, type: string): { contentType: string; body: Uint8Array } {
  // No file holds this by chance, because its name has the job's id.
  const boundary = `----${name}`.slice(0, 70);
  const part = (head: string) => `--${boundary}\r\ncontent-disposition: form-data; ${head}\r\n\r\n`;
  return {
    contentType: `multipart/form-data; boundary="${boundary}"`,
    body: Buffer.concat([
      Buffer.from(`${part('name="overwrite"')}true\r\n`),
      Buffer.from(
        part(
          `name="image"; filename="${name}"\r\ncontent-type: ${/^[\w.+-]+\/[\w.+-]+$/.test(type) ? type : "application/octet-stream"}`,
        ),
      ),
      bytes,
      Buffer.from(`\r\n--${boundary}--\r\n`),
    ]),
  };
}
