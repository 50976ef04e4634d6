import { type Asked, mp3, png, type Route, type Said, Upstream } from "./upstream.js";

/** `/v1/images/generations`, `/v1/images/edits`, `/v1/audio/speech`, `/v1/models`. */
export class OpenAiUpstream extends Upstream {
  readonly key = "sk-proj-0123456789";
  /** Whether results come as addresses, as from some servers that speak the API. */
  asUrls = false;

  protected routeOf({ method }: Asked): Route {
    return method === "POST" ? "submit" : "other";
  }

  protected refuseKey({ headers }: Asked): Said | null {
    const given = headers["authorization"] ?? "";
    if (given === `Bearer ${this.key}`) return null;
    const message = `Incorrect API key provided: ${given.replace("Bearer ", "")}. You can find your API key in your account.`;
    return { status: 401, body: error(message, "invalid_request_error", "invalid_api_key") };
  }

  protected async answer(asked: Asked): Promise<Said> {
    if (asked.method === "GET")
      return { body: { object: "list", data: [{ id: "gpt-image-2", object: "model" }] } };
    if (asked.path === "/v1/audio/speech") return this.speech(asked.json);
    if (asked.path === "/v1/images/generations") return this.images(asked.json);
    if (asked.path === "/v1/images/edits") return this.images(await formFields(asked));
    return { status: 404, body: error(`Invalid URL (POST ${asked.path})`, "invalid_request_error", null) };
  }

  protected errorBody(status: number): unknown {
    if (status === 429)
      return error("Rate limit reached for images per minute", "requests", "rate_limit_exceeded");
    return error("The server had an error while processing your request", "server_error", null);
  }

  private images(fields: Record<string, unknown>): Said {
    const { model, prompt } = fields;
    if (typeof prompt !== "string") return parameter("prompt");
    if (String(model).startsWith("gpt-image") && fields["response_format"] !== undefined)
      return parameter("response_format");
    if (fields["n"] !== undefined && typeof fields["n"] === "string" && fields["image"] === undefined)
      return parameter("n");
    if (prompt.includes("forbidden"))
      return {
        status: 400,
        body: error(
          "Your request was rejected by the safety system.",
          "image_generation_user_error",
          "moderation_blocked",
        ),
      };
    this.enter(prompt, fields);
    const one = this.asUrls
      ? { url: `${this.url}/files/${this.id()}.png` }
      : { b64_json: png.toString("base64") };
    return {
      headers: { "x-request-id": this.id("req_") },
      body: {
        created: this.now / 1000,
        data: prompt.includes("nothing") ? [] : [one],
        usage: { input_tokens: 10, output_tokens: 90, total_tokens: 100 },
      },
    };
  }

  private speech(fields: Record<string, unknown>): Said {
    const { input, voice } = fields;
    if (typeof input !== "string" || typeof voice !== "string") return parameter("voice");
    this.enter(input, fields);
    return { headers: { "content-type": "audio/mpeg", "x-request-id": this.id("req_") }, body: mp3 };
  }
}

function error(message: string, type: string, code: string | null): unknown {
  return { error: { message, type, param: null, code } };
}

function parameter(name: string): Said {
  return {
    status: 400,
    body: error(`Unknown parameter: '${name}'.`, "invalid_request_error", "unknown_parameter"),
  };
}

async function formFields({ headers, body }: Asked): Promise<Record<string, unknown>> {
  const type = headers["content-type"] ?? "";
  if (!type.startsWith("multipart/form-data")) return {};
  const form = await new Response(new Uint8Array(body), { headers: { "content-type": type } }).formData();
  return Object.fromEntries(
    await Promise.all(
      [...form].map(async ([name, value]) => [
        name,
        typeof value === "string"
          ? value
          : { name: value.name, type: value.type, bytes: Buffer.from(await value.arrayBuffer()) },
      ]),
    ),
  ) as Record<string, unknown>;
}
