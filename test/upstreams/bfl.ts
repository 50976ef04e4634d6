import { type Asked, type Executed, type Route, type Said, Upstream } from "./upstream.js";

/** FLUX: the polling address is on another host, and needs the key there. */
export class BflUpstream extends Upstream {
  readonly key = "bfl-0123456789";
  private readonly left = new Map<string, number>();

  protected routeOf({ method }: Asked): Route {
    return method === "POST" ? "submit" : "poll";
  }

  protected refuseKey({ headers }: Asked): Said | null {
    return headers["x-key"] === this.key ? null : { status: 403, body: { detail: "Not authenticated" } };
  }

  protected answer(asked: Asked): Said {
    const { pathname, searchParams } = new URL(asked.path, this.url);
    if (asked.method === "POST") return this.submit(asked.json);
    if (pathname === "/v1/credits") return { body: { credits: 100 } };
    const job = this.books.find((one) => one.id === searchParams.get("id"));
    if (job === undefined) return { status: 404, body: { id: "", status: "Task not found", result: null } };
    return { body: this.result(job) };
  }

  protected errorBody(status: number): unknown {
    return { detail: status === 429 ? "Rate limit exceeded" : "Service unavailable" };
  }

  private submit(json: Record<string, unknown>): Said {
    const { prompt } = json;
    if (typeof prompt !== "string" || typeof json["width"] === "string")
      return {
        status: 422,
        body: {
          detail: [{ loc: ["body", "width"], msg: "Input should be a valid integer", type: "int_type" }],
        },
      };
    const { id } = this.enter(prompt, json);
    this.left.set(id, this.polls);
    return { body: { id, polling_url: `${this.otherUrl}/v1/get_result?id=${id}`, cost: 4 } };
  }

  private result({ id, prompt }: Executed): Record<string, unknown> {
    const left = this.left.get(id) ?? 0;
    this.left.set(id, left - 1);
    if (left > 0) return { id, status: "Pending", result: null, progress: 0.5 };
    if (prompt.includes("forbidden picture"))
      return { id, status: "Content Moderated", result: null, details: { "Moderation Reasons": ["x"] } };
    if (prompt.includes("forbidden")) return { id, status: "Request Moderated", result: null };
    if (prompt.includes("odd")) return { id, status: "Transmogrified", result: null };
    return { id, status: "Ready", result: { sample: `${this.otherUrl}/files/${id}.jpeg`, prompt, seed: 1 } };
  }
}
