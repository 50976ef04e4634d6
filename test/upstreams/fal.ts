import { type Asked, type Executed, type Route, type Said, Upstream } from "./upstream.js";

/** The queue of fal. */
export class FalUpstream extends Upstream {
  readonly key = "fal-id:fal-secret";
  private readonly left = new Map<string, number>();
  private readonly cancelled = new Set<string>();

  protected routeOf({ method, path }: Asked): Route {
    if (method === "POST") return "submit";
    if (method === "PUT") return "cancel";
    return path.includes("/status") ? "poll" : "result";
  }

  protected refuseKey({ headers }: Asked): Said | null {
    if (headers["authorization"] === `Key ${this.key}`) return null;
    return { status: 401, body: { detail: "Cannot access application. Authentication is required." } };
  }

  protected answer(asked: Asked): Said {
    const [path = ""] = asked.path.split("?");
    if (asked.method === "POST") return this.submit(path, asked.json);
    const id = /\/requests\/([^/]+)/.exec(path)?.[1] ?? "";
    const job = this.books.find((one) => one.id === id);
    if (job === undefined) return { status: 404, body: { detail: "Request not found" } };
    if (path.endsWith("/cancel")) return this.cancel(job);
    return path.endsWith("/status") ? this.status(path, job) : this.result(job);
  }

  protected errorBody(status: number): unknown {
    return { detail: status === 429 ? "Too many requests" : "Service unavailable" };
  }

  private submit(path: string, input: Record<string, unknown>): Said {
    const job = this.enter(String(input["prompt"] ?? ""), { ...input, path });
    this.left.set(job.id, this.polls);
    // Owner and app alone: what else the path has is not part of the queue's addresses.
    const base = `${this.url}${path.split("/").slice(0, 3).join("/")}/requests/${job.id}`;
    return {
      body: {
        status: "IN_QUEUE",
        request_id: job.id,
        response_url: base,
        status_url: `${base}/status`,
        cancel_url: `${base}/cancel`,
        queue_position: 0,
      },
    };
  }

  private status(path: string, job: Executed): Said {
    const left = this.left.get(job.id) ?? 0;
    this.left.set(job.id, left - 1);
    const response_url = this.url + path.replace(/\/status$/, "");
    if (left > 1)
      return {
        status: 202,
        body: { status: "IN_QUEUE", queue_position: left, request_id: job.id, response_url },
      };
    if (left > 0)
      return { status: 202, body: { status: "IN_PROGRESS", logs: null, request_id: job.id, response_url } };
    return {
      body: {
        status: "COMPLETED",
        logs: null,
        metrics: { inference_time: 1 },
        request_id: job.id,
        response_url,
      },
    };
  }

  private result(job: Executed): Said {
    const { prompt, input } = job;
    if (this.cancelled.has(job.id))
      return { status: 499, body: { detail: "Request was cancelled", error_type: "client_cancelled" } };
    if ((this.left.get(job.id) ?? 0) > 0)
      return { status: 202, body: { detail: "Request is still in progress" } };
    if (prompt.includes("forbidden"))
      return this.invalid(
        "content_policy_violation",
        "The content was flagged by a content checker.",
        "prompt",
      );
    if (input["duration"] !== undefined && typeof input["duration"] !== "string")
      return this.invalid("string_type", "Input should be a valid string", "duration");
    if (prompt.includes("broken"))
      return { status: 503, body: { detail: "Runner disconnected", error_type: "runner_disconnected" } };
    if (prompt.includes("nothing")) return { body: { images: [] } };
    const url = `${this.url}/files/${job.id}.png`;
    if (String(input["path"]).includes("video"))
      return { body: { video: { url, content_type: "video/mp4" } } };
    return { body: { images: [{ url, width: 1, height: 1, content_type: "image/png" }], seed: 1 } };
  }

  private invalid(type: string, msg: string, field: string): Said {
    return {
      status: 422,
      body: { detail: [{ loc: ["body", field], msg, type, url: "https://docs.fal.ai/errors", input: null }] },
    };
  }

  private cancel(job: Executed): Said {
    if ((this.left.get(job.id) ?? 0) <= 0) return { status: 400, body: { status: "ALREADY_COMPLETED" } };
    this.cancelled.add(job.id);
    this.left.set(job.id, 0);
    return { status: 202, body: { status: "CANCELLATION_REQUESTED" } };
  }
}
