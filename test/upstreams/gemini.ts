import { type Asked, png, type Route, type Said, Upstream } from "./upstream.js";

/** `generateContent` of models that make images. */
export class GeminiUpstream extends Upstream {
  readonly key = "AIzaSy0123456789";

  protected routeOf({ method }: Asked): Route {
    return method === "POST" ? "submit" : "other";
  }

  protected refuseKey({ headers }: Asked): Said | null {
    if (headers["x-goog-api-key"] === this.key) return null;
    return {
      status: 400,
      body: failure(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT", [
        {
          "@type": "type.googleapis.com/google.rpc.ErrorInfo",
          reason: "API_KEY_INVALID",
          domain: "googleapis.com",
        },
      ]),
    };
  }

  protected answer(asked: Asked): Said {
    if (asked.method === "GET") return { body: { models: [{ name: "models/gemini-3-pro-image" }] } };
    if (!/^\/v1(beta)?\/models\/[\w.-]+:generateContent/.test(asked.path))
      return { status: 404, body: failure(404, "Requested entity was not found.", "NOT_FOUND") };
    const contents = asked.json["contents"] as { parts: Record<string, unknown>[] }[] | undefined;
    const parts = contents?.[0]?.parts ?? [];
    if (parts.length === 0 || parts.some((part) => Object.keys(part).length === 0))
      return { status: 400, body: failure(400, "contents.parts must not be empty.", "INVALID_ARGUMENT") };
    const prompt = String(parts.find((part) => "text" in part)?.["text"] ?? "");
    if (prompt.includes("forbidden"))
      return {
        body: {
          promptFeedback: { blockReason: "PROHIBITED_CONTENT" },
          usageMetadata: usage(5),
          modelVersion: "x",
        },
      };
    this.enter(prompt, asked.json);
    const candidate = this.candidate(prompt);
    return {
      body: {
        candidates: [candidate],
        usageMetadata: usage(1300),
        modelVersion: "x",
        responseId: this.id("resp-"),
      },
    };
  }

  protected errorBody(status: number): unknown {
    const retry = { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "17s" };
    if (status === 429)
      return failure(429, "You exceeded your current quota.", "RESOURCE_EXHAUSTED", [retry]);
    return failure(
      status,
      "The model is overloaded. Please try again later.",
      status === 503 ? "UNAVAILABLE" : "INTERNAL",
    );
  }

  private candidate(prompt: string): Record<string, unknown> {
    if (prompt.includes("unsafe picture"))
      return { finishReason: "IMAGE_SAFETY", finishMessage: "Unable to show the generated image.", index: 0 };
    const text = { text: "I can only describe it." };
    if (prompt.includes("words"))
      return { content: { role: "model", parts: [text] }, finishReason: "STOP", index: 0 };
    const image = { inlineData: { mimeType: "image/png", data: png.toString("base64") } };
    const draft = {
      thought: true,
      inlineData: { mimeType: "image/png", data: Buffer.from("a draft").toString("base64") },
    };
    return { content: { role: "model", parts: [draft, text, image] }, finishReason: "STOP", index: 0 };
  }
}

function failure(code: number, message: string, status: string, details: unknown[] = []): unknown {
  return { error: { code, message, status, ...(details.length === 0 ? {} : { details }) } };
}

function usage(totalTokenCount: number): unknown {
  return { promptTokenCount: 5, totalTokenCount };
}
