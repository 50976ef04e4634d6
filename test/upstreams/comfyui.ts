import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Clock } from "../../src/clock.js";
import { isLink, type Workflow } from "../../src/providers/comfyui/graph.js";
import type { ObjectInfo } from "../../src/providers/comfyui/workflow.js";
import { comfyuiNodes } from "./comfyui-nodes.js";

/**
 * A stand-in for ComfyUI, after its public `server.py` and `execution.py`: the routes and statuses, the checks of a workflow
 * with their words, a heap of jobs that wait, a history that a restart empties. A repeated `prompt_id` runs once more. Jobs
 * run at once, unless `holds` is set.
 */

/**
 * What is wrong with a route: it does its work and hangs up (`drop`), answers nothing (`hang`), answers a status of a proxy,
 * or 200 with no body or a page.
 */
export type Trouble = "drop" | "hang" | "empty" | "html" | number;

interface Task {
  number: number;
  id: string;
  workflow: Workflow;
  extra: Record<string, unknown>;
  ends: string[];
}

interface Reason {
  type: string;
  message: string;
  details: string;
  extra_info: Record<string, unknown>;
}

/** A picture of one pixel. */
export const pixel = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export class ComfyUi {
  address = "";
  /** Every execution that began, in order. An id may be there twice. */
  readonly ledger: { id: string; workflow: Workflow; client: unknown }[] = [];
  /** Trouble by route, such as `POST /prompt` or `GET /history`. */
  readonly trouble: Record<string, Trouble> = {};
  /** Jobs wait until `start` and `finish`. */
  holds = false;
  /** Each job takes so long by this clock (ms). */
  takes: { clock: Clock; ms: () => number } | null = null;
  /** Of the jobs that took time: how long all of them took, when the first began, and when the last ended. */
  readonly work = { ms: 0, from: 0, to: 0 };
  /** The next executions stop with this error. */
  fails: string | null = null;
  /** Versions before `prompt_id` gave each job an id of their own. */
  ignoresIds = false;
  /** The headers of the last request. */
  headers: IncomingMessage["headers"] = {};
  readonly uploads = new Map<string, Buffer>();
  private readonly files = new Map<string, Buffer>();
  private queue: Task[] = [];
  private running: Task | null = null;
  private history: Record<string, object> = {};
  private number = 0;
  private port = 0;
  private server: Server | null = null;

  constructor(readonly nodes: ObjectInfo = comfyuiNodes) {}

  /** Listens; after `stop` on the same port again, with nothing in queue and history. */
  async listen(): Promise<this> {
    const server = createServer((request, response) => void this.serve(request, response));
    server.listen(this.port, "127.0.0.1");
    await once(server, "listening");
    this.server = server;
    this.port = (server.address() as AddressInfo).port;
    this.address = `http://127.0.0.1:${this.port}`;
    return this;
  }

  /** The process ends. */
  async stop(): Promise<void> {
    const { server } = this;
    if (server === null) return;
    this.server = null;
    this.queue = [];
    this.running = null;
    this.history = {};
    this.number = 0;
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  }

  private async workOff({ clock, ms }: NonNullable<ComfyUi["takes"]>): Promise<void> {
    const { work } = this;
    while (this.running === null && this.queue.length > 0) {
      this.start();
      if (work.ms === 0) work.from = clock.now();
      const took = ms();
      work.ms += took;
      await clock.sleep(took);
      work.to = clock.now();
      this.finish();
    }
  }

  /** Begins the next job. */
  start(): void {
    this.queue.sort((a, b) => a.number - b.number);
    const next = this.queue.shift();
    if (this.running !== null || next === undefined) throw new Error("nothing can be started");
    this.running = next;
    this.ledger.push({ id: next.id, workflow: next.workflow, client: next.extra["client_id"] });
  }

  /** Ends the job that runs. */
  finish(interrupted = false): void {
    const task = this.running;
    if (task === null) throw new Error("nothing is running");
    this.running = null;
    const [end = ""] = task.ends;
    const about = { prompt_id: task.id, node_id: end, node_type: task.workflow[end]?.class_type };
    const messages: [string, object][] = [["execution_start", { prompt_id: task.id }]];
    if (interrupted) messages.push(["execution_interrupted", { ...about, executed: [] }]);
    else if (this.fails !== null)
      messages.push([
        "execution_error",
        {
          ...about,
          executed: [],
          exception_message: this.fails,
          exception_type: "RuntimeError",
          traceback: [],
        },
      ]);
    else messages.push(["execution_success", { prompt_id: task.id }]);
    const isDone = !interrupted && this.fails === null;
    this.history[task.id] = {
      prompt: listed(task),
      outputs: isDone ? Object.fromEntries(task.ends.map((id) => [id, this.saved(task, id)])) : {},
      status: { status_str: isDone ? "success" : "error", completed: isDone, messages },
      meta: {},
    };
  }

  private saved({ workflow }: Task, id: string): object {
    const { class_type, inputs } = workflow[id] ?? { class_type: "", inputs: {} };
    const prefix = String(inputs["filename_prefix"] ?? "ComfyUI_temp").split("/");
    const subfolder = prefix.slice(0, -1).join("/");
    const type = class_type === "PreviewImage" ? "temp" : "output";
    const ending = class_type === "SaveVideo" ? "mp4" : "png";
    const filename = `${prefix.at(-1)}_${String(this.files.size + 1).padStart(5, "0")}_.${ending}`;
    this.files.set(`${type}/${subfolder}/${filename}`, pixel);
    const list = [{ filename, subfolder, type }];
    return class_type === "SaveVideo" ? { images: list, animated: [true] } : { images: list };
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.headers = request.headers;
    const { pathname, searchParams } = new URL(request.url ?? "/", this.address);
    const [, first = "", second] = pathname.split("/");
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const route = `${request.method} /${first}`;
    const trouble = this.trouble[route];
    const reply = (status: number, body: unknown = null) => {
      if (trouble === "drop") return void response.socket?.destroy();
      response.statusCode = status;
      if (body === null) return void response.end();
      if (Buffer.isBuffer(body)) return void response.end(body);
      response.setHeader("content-type", "application/json; charset=utf-8");
      response.end(JSON.stringify(body));
    };
    if (trouble === "hang") return;
    if (trouble === "empty") return void response.end();
    if (trouble === "html") return void response.end("<html><title>Sign in</title></html>");
    if (typeof trouble === "number") return reply(trouble, Buffer.from("upstream"));
    try {
      await this.route(
        route,
        decodeURIComponent(second ?? ""),
        searchParams,
        request,
        Buffer.concat(chunks),
        reply,
      );
    } catch {
      reply(500, Buffer.from("500 Internal Server Error"));
    }
  }

  private async route(
    route: string,
    name: string,
    query: URLSearchParams,
    { headers }: IncomingMessage,
    body: Buffer,
    reply: (status: number, body?: unknown) => void,
  ): Promise<void> {
    const json = () => JSON.parse(body.toString()) as Record<string, unknown>;
    switch (route) {
      case "POST /prompt":
        return reply(...this.prompt(json()));
      case "GET /queue":
        return reply(200, {
          queue_running: this.running === null ? [] : [listed(this.running)],
          // A heap: only its first is in its place.
          queue_pending: this.queue.toSorted((a, b) => b.number - a.number).map(listed),
        });
      case "POST /queue": {
        const { delete: ids = [], clear } = json() as { delete?: string[]; clear?: boolean };
        this.queue = this.queue.filter(({ id }) => !clear && !ids.includes(id));
        return reply(200);
      }
      case "POST /interrupt": {
        const { prompt_id } = body.length > 0 ? json() : {};
        if (
          this.running !== null &&
          (prompt_id === undefined || this.ignoresIds || this.running.id === prompt_id)
        )
          this.finish(true);
        return reply(200);
      }
      case "GET /history":
        if (name === "") return reply(200, this.history);
        return reply(200, Object.hasOwn(this.history, name) ? { [name]: this.history[name] } : {});
      case "GET /view": {
        const path = ["type", "subfolder", "filename"].map((key) => query.get(key) ?? "").join("/");
        const file = this.files.get(path);
        return file === undefined ? reply(404) : reply(200, file);
      }
      case "POST /upload":
        return reply(...(await this.upload(headers["content-type"] ?? "", body)));
      case "GET /object_info":
        if (name === "") return reply(200, this.nodes);
        return reply(200, Object.hasOwn(this.nodes, name) ? { [name]: this.nodes[name] } : {});
      case "GET /system_stats":
        return reply(200, { system: { os: "posix", comfyui_version: "0.36.0" }, devices: [] });
      default:
        return reply(404, Buffer.from("404: Not Found"));
    }
  }

  private prompt(asked: Record<string, unknown>): [number, unknown] {
    const number = this.number++;
    const workflow = asked["prompt"] as Workflow | undefined;
    if (workflow === undefined)
      return [400, { error: reason("no_prompt", "No prompt provided"), node_errors: {} }];
    const given = asked["prompt_id"];
    if (given !== undefined && !this.ignoresIds && !uuid.test(String(given)))
      return [
        400,
        {
          error: reason("invalid_prompt_id", "prompt_id must be a valid UUID"),
          node_errors: {},
        },
      ];
    const id =
      given === undefined || this.ignoresIds
        ? `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`
        : String(given);
    const { error, errors, ends } = this.validated(workflow);
    if (error !== null) return [400, { error, node_errors: errors }];
    const extra = { ...(asked["extra_data"] as object), client_id: asked["client_id"] };
    this.queue.push({ number, id, workflow, extra, ends });
    if (this.takes !== null) void this.workOff(this.takes);
    else if (!this.holds) {
      this.start();
      this.finish();
    }
    return [200, { prompt_id: id, number, node_errors: errors }];
  }

  private validated(workflow: Workflow): {
    error: Reason | null;
    errors: Record<string, object>;
    ends: string[];
  } {
    const none = (error: Reason) => ({ error, errors: {}, ends: [] });
    for (const [id, { class_type, _meta }] of Object.entries(workflow))
      if (!Object.hasOwn(this.nodes, class_type))
        return none(
          reason(
            "missing_node_type",
            `Node '${_meta?.title ?? class_type}' not found. The custom node may not be installed.`,
            `Node ID '#${id}'`,
          ),
        );
    const ends = Object.keys(workflow).filter((id) => this.classOf(workflow, id)?.output_node === true);
    if (ends.length === 0) return none(reason("prompt_no_outputs", "Prompt has no outputs"));
    const reasons = new Map<string, Reason[]>();
    const isGood = (id: string): boolean => {
      const inputs = workflow[id]?.inputs ?? {};
      if (!reasons.has(id)) reasons.set(id, this.reasonsFor(workflow, id));
      const behind = Object.values(inputs)
        .filter(isLink)
        .map(([source]) => isGood(source));
      return behind.every(Boolean) && reasons.get(id)?.length === 0;
    };
    const good = ends.filter(isGood);
    const faulty = [...reasons].filter(([, each]) => each.length > 0);
    const errors = Object.fromEntries(
      faulty.map(([id, each]) => [
        id,
        { errors: each, dependent_outputs: ends, class_type: workflow[id]?.class_type },
      ]),
    );
    if (good.length > 0) return { error: null, errors, ends: good };
    return {
      ...none(reason("prompt_outputs_failed_validation", "Prompt outputs failed validation")),
      errors,
    };
  }

  private reasonsFor(workflow: Workflow, id: string): Reason[] {
    const { input } = this.classOf(workflow, id) ?? {};
    const inputs = workflow[id]?.inputs ?? {};
    const found: Reason[] = [];
    for (const [name, spec] of Object.entries({ ...input?.required, ...input?.optional })) {
      const add = (type: string, message: string, details: string) =>
        found.push({ type, message, details, extra_info: { input_name: name } });
      const [type, how = {}] = spec as [unknown, { min?: number; max?: number; options?: unknown[] }?];
      let value = inputs[name];
      if (value === undefined) {
        if (input?.required !== undefined && name in input.required)
          add("required_input_missing", "Required input is missing", name);
        continue;
      }
      if (isLink(value)) {
        const outputs = this.classOf(workflow, value[0])?.output as string[] | undefined;
        const given = outputs?.[value[1]];
        if (given !== type)
          add(
            "return_type_mismatch",
            "Return type mismatch between linked nodes",
            `${name}, received_type(${given}) mismatch input_type(${String(type)})`,
          );
        continue;
      }
      if (type === "INT" || type === "FLOAT") {
        const number = Number(value);
        if (Number.isNaN(number)) {
          add(
            "invalid_input_type",
            `Failed to convert an input value to a ${type} value`,
            `${name}, ${String(value)}, invalid literal`,
          );
          continue;
        }
        value = type === "INT" ? Math.trunc(number) : number;
        if (how.min !== undefined && value < how.min)
          add("value_smaller_than_min", `Value ${value} smaller than min of ${how.min}`, name);
        if (how.max !== undefined && value > how.max)
          add("value_bigger_than_max", `Value ${value} bigger than max of ${how.max}`, name);
      }
      const options = Array.isArray(type) ? (type as unknown[]) : type === "COMBO" ? how.options : undefined;
      const isUpload = workflow[id]?.class_type === "LoadImage" && name === "image";
      if (isUpload && !this.uploads.has(String(value)) && !options?.includes(value))
        add(
          "custom_validation_failed",
          "Custom validation failed for node",
          `image - Invalid image file: ${String(value)}`,
        );
      if (!isUpload && options !== undefined && !options.includes(value))
        add(
          "value_not_in_list",
          "Value not in list",
          `${name}: '${String(value)}' not in [${options.join(", ")}]`,
        );
    }
    return found;
  }

  private classOf(workflow: Workflow, id: string) {
    return this.nodes[workflow[id]?.class_type ?? ""];
  }

  private async upload(type: string, body: Buffer): Promise<[number, unknown?]> {
    const form = await new Response(body as Uint8Array<ArrayBuffer>, {
      headers: { "content-type": type },
    }).formData();
    const image = form.get("image");
    if (image === null || typeof image === "string" || image.name === "") return [400];
    const bytes = Buffer.from(await image.arrayBuffer());
    const isOver = ["true", "1"].includes(String(form.get("overwrite")));
    let name = image.name;
    for (let copy = 1; !isOver && this.uploads.has(name) && !this.uploads.get(name)?.equals(bytes); copy++)
      name = image.name.replace(/(\.[^.]*)?$/, ` (${copy})$1`);
    this.uploads.set(name, bytes);
    return [200, { name, subfolder: "", type: "input" }];
  }
}

function listed({ number, id, workflow, extra, ends }: Task): unknown[] {
  return [number, id, workflow, extra, ends];
}

function reason(type: string, message: string, details = ""): Reason {
  return { type, message, details, extra_info: {} };
}
