import { type Endpoint, endpoints } from "../../api/endpoints.js";
import { ServiceRefusal, type WorldRequest } from "../answers/answers.js";

export interface Route {
  endpoint: Endpoint;
  /** The task id of the path, decoded; empty for the other endpoints. */
  taskId: string;
}

const taskPrefix = endpoints.task.path.replace(":taskId", "");

/**
 * Which endpoint a request means. Throws 404 for a path and 405 for a method that no endpoint has; both come before
 * authentication, because there is nothing there to authenticate for.
 */
export function route(request: WorldRequest): Route {
  const found = match(request.path);
  if (!found) throw new ServiceRefusal(404, "NOT_FOUND", `There is no ${request.path} here.`);
  const { method } = endpoints[found.endpoint];
  if (request.method === method || (request.method === "HEAD" && method === "GET")) return found;
  throw new ServiceRefusal(
    405,
    "METHOD_NOT_ALLOWED",
    `${request.path} answers ${method} only, not ${request.method}.`,
    {
      Allow: method,
    },
  );
}

/** The endpoint of a path, for any method. */
export function endpointOf(path: string): Endpoint | undefined {
  return match(path)?.endpoint;
}

function match(path: string): Route | undefined {
  for (const endpoint of ["generate", "models", "me"] as const) {
    if (path === endpoints[endpoint].path) return { endpoint, taskId: "" };
  }
  const rest = path.startsWith(taskPrefix) ? path.slice(taskPrefix.length) : "";
  if (rest === "" || rest.includes("/")) return undefined;
  return { endpoint: "task", taskId: decoded(rest) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A broken escape names no task; the task endpoint will say so.
    return text;
  }
}
