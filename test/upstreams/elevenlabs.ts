import { type Asked, mp3, type Route, type Said, Upstream } from "./upstream.js";

interface HistoryItem {
  history_item_id: string;
  voice_id: string | null;
  text: string;
  date_unix: number;
  character_count_change_from: number;
  character_count_change_to: number;
  content_type: string;
}

/** Speech, sound effects, and the history. */
export class ElevenLabsUpstream extends Upstream {
  readonly key = "sk_0123456789";
  /** Errors have a code since 2026, and had a status before. */
  errorField: "code" | "status" = "code";
  keepsHistory = true;
  private readonly history: HistoryItem[] = [];

  protected routeOf({ method, path }: Asked): Route {
    if (method === "POST") return "submit";
    return path.endsWith("/audio") ? "poll" : path.startsWith("/v1/history") ? "list" : "other";
  }

  protected refuseKey({ headers }: Asked): Said | null {
    if (headers["xi-api-key"] === this.key) return null;
    return { status: 401, body: this.detail("invalid_api_key", "Invalid API key") };
  }

  protected answer(asked: Asked): Said {
    const { pathname } = new URL(asked.path, this.url);
    const [, voice] = /^\/v1\/text-to-speech\/([\w-]+)$/.exec(pathname) ?? [];
    if (asked.method === "POST" && (voice !== undefined || pathname === "/v1/sound-generation"))
      return this.make(voice ?? null, asked.json);
    if (pathname === "/v1/models") return { body: [{ model_id: "eleven_v3" }] };
    if (pathname === "/v1/history")
      return { body: { history: this.history, has_more: false, last_history_item_id: null } };
    const [, id] = /^\/v1\/history\/([\w-]+)\/audio$/.exec(pathname) ?? [];
    if (this.history.some((one) => one.history_item_id === id)) return sound(mp3);
    return { status: 404, body: { detail: "Not Found" } };
  }

  protected errorBody(status: number): unknown {
    return status === 429
      ? this.detail("system_busy", "The system is experiencing heavy traffic.")
      : this.detail("internal_server_error", "Something went wrong.");
  }

  detail(code: string, message: string): unknown {
    return {
      detail:
        this.errorField === "code" ? { type: "error", code, message, status: "" } : { status: code, message },
    };
  }

  private make(voice: string | null, json: Record<string, unknown>): Said {
    const { text } = json;
    if (typeof text !== "string")
      return {
        status: 422,
        body: { detail: [{ loc: ["body", "text"], msg: "Field required", type: "missing" }] },
      };
    if (voice === "nobody")
      return {
        status: 404,
        body: this.detail("voice_not_found", "A voice for the voice_id nobody was not found."),
      };
    if (text.includes("poor"))
      return { status: 401, body: this.detail("quota_exceeded", "This request exceeds your quota.") };
    if (text.includes("forbidden"))
      return { status: 400, body: this.detail("content_policy_violation", "The text is not allowed.") };
    const { id } = this.enter(text, { ...json, voice });
    if (this.keepsHistory)
      this.history.unshift({
        history_item_id: id,
        voice_id: voice,
        text,
        date_unix: Math.floor(this.now / 1000),
        character_count_change_from: 0,
        character_count_change_to: text.length,
        content_type: "audio/mpeg",
      });
    return {
      ...sound(mp3),
      headers: {
        "content-type": "audio/mpeg",
        "request-id": this.id("el-"),
        "character-cost": String(text.length),
      },
    };
  }
}

function sound(body: Buffer): Said {
  return { headers: { "content-type": "audio/mpeg" }, body };
}
