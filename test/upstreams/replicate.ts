import { type Asked, type Executed, type Route, type Said, Upstream } from "./upstream.js";

interface Prediction extends Executed {
  model: string;
  version: string;
  createdAt: number;
  left: number;
  ended: string | null;
}

/** `/v1/predictions` and its siblings for official models and deployments. */
export class ReplicateUpstream extends Upstream {
  readonly key = "r8_0123456789";
  /** Whether inputs and outputs are removed, as they are after an hour. */
  removed = false;
  pageSize = 100;
  private readonly predictions: Prediction[] = [];

  protected routeOf({ method, path }: Asked): Route {
    if (path.endsWith("/cancel")) return "cancel";
    if (method === "POST") return "submit";
    return /^\/v1\/predictions\/./.test(path) ? "poll" : "list";
  }

  protected refuseKey({ headers }: Asked): Said | null {
    if (headers["authorization"] === `Bearer ${this.key}`) return null;
    return {
      status: 401,
      body: {
        title: "Unauthenticated",
        detail: "You did not pass a valid authentication token",
        status: 401,
      },
    };
  }

  protected answer(asked: Asked): Said {
    const { pathname, searchParams } = new URL(asked.path, this.url);
    if (pathname === "/v1/account") return { body: { type: "organization", username: "team" } };
    if (asked.method === "GET" && pathname === "/v1/predictions")
      return this.list(Number(searchParams.get("cursor") ?? 0));
    if (asked.method === "POST" && pathname.endsWith("/predictions"))
      return this.create(pathname, asked.json);
    const [, id, cancel] = /^\/v1\/predictions\/([^/]+)(\/cancel)?$/.exec(pathname) ?? [];
    const job = this.predictions.find((one) => one.id === id);
    if (job === undefined)
      return {
        status: 404,
        body: { title: "Not found", detail: "The requested resource could not be found.", status: 404 },
      };
    if (cancel !== undefined && job.ended === null)
      job.ended = job.left > this.polls ? "aborted" : "canceled";
    if (cancel === undefined && job.left > 0) job.left -= 1;
    return { body: this.shown(job) };
  }

  protected errorBody(status: number): unknown {
    return {
      title: "Error",
      detail: status === 429 ? "Request was throttled." : "Service unavailable",
      status,
    };
  }

  private create(path: string, json: Record<string, unknown>): Said {
    const input = json["input"] as Record<string, unknown> | undefined;
    if (input === undefined)
      return {
        status: 422,
        body: {
          title: "Input validation failed",
          detail: "input is required",
          status: 422,
          invalid_fields: [],
        },
      };
    const [, model = "owner/name"] = /^\/v1\/(?:models|deployments)\/(.+)\/predictions$/.exec(path) ?? [];
    const version = String(json["version"] ?? "hidden");
    const prompt = String(input["prompt"] ?? "");
    const job = {
      ...this.enter(prompt, input),
      model,
      version,
      createdAt: this.now,
      left: this.polls + 1,
      ended: null,
    };
    this.predictions.unshift(job);
    return { status: 201, body: this.shown(job) };
  }

  private shown(job: Prediction): Record<string, unknown> {
    const { id, model, version, prompt } = job;
    const isBad = prompt.includes("forbidden") || prompt.includes("broken");
    const end = job.ended ?? (isBad ? "failed" : "succeeded");
    const status = job.ended ?? (job.left > this.polls ? "starting" : job.left > 0 ? "processing" : end);
    const error = prompt.includes("forbidden")
      ? "The input or output was flagged as sensitive. Please try again with different inputs. (E005)"
      : "CUDA out of memory";
    const url = `${this.url}/files/${id}.png`;
    return {
      id,
      model,
      version,
      status,
      input: this.removed ? {} : job.input,
      output: status === "succeeded" && !this.removed ? (prompt.includes("list") ? [url] : url) : null,
      error: status === "failed" ? error : null,
      source: "api",
      data_removed: this.removed,
      created_at: new Date(job.createdAt).toISOString(),
      metrics: status === "succeeded" ? { predict_time: 1.5, total_time: 2 } : {},
      urls: { get: `${this.url}/v1/predictions/${id}`, cancel: `${this.url}/v1/predictions/${id}/cancel` },
    };
  }

  private list(from: number): Said {
    const results = this.predictions.slice(from, from + this.pageSize).map((one) => this.shown(one));
    const next = from + this.pageSize;
    return {
      body: {
        previous: null,
        next: next < this.predictions.length ? `${this.url}/v1/predictions?cursor=${next}` : null,
        results,
      },
    };
  }
}
