import { refuse, ServiceRefusal, type WorldRequest } from "./answers.js";

/** The largest body that the sandbox reads, in bytes. */
export const bodyBytesMax = 1024 * 1024;

/** The JSON object in a request's body. Throws 413, 415 or 400 when there is none. */
export function jsonObject(request: WorldRequest): Record<string, unknown> {
  if (request.tooLarge) {
    throw new ServiceRefusal(413, "PAYLOAD_TOO_LARGE", `A body may have ${bodyBytesMax} bytes at most.`);
  }
  const type = (request.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase();
  if (type !== "application/json") {
    throw new ServiceRefusal(
      415,
      "UNSUPPORTED_MEDIA_TYPE",
      "The body must be JSON: send Content-Type: application/json.",
    );
  }
  const value = parsed(request.body ?? "");
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw refuse("INVALID_REQUEST", "The body must be a JSON object.");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw refuse("INVALID_REQUEST", "The body is not valid JSON.");
  }
}
