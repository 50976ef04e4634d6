import type { PageRefusal } from "../../../api/service-page.js";
import { request } from "./system.js";

/** Every request of the pages of a service. */

/** The service answered, but not with what was asked for; the message is for people. */
export class RefusedRequest extends Error {
  override readonly name = "RefusedRequest";
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** What the server answers a page at /dashboard at an address below `api/`. Throws RefusedRequest, or what fetch throws. */
export async function get<T>(path: string): Promise<T> {
  return answerOf(await request(`/dashboard/api/${path}`, {}));
}

/** Asks for a change. Throws RefusedRequest, or what fetch throws. */
export async function post<T>(path: string, formToken: string, fields: object): Promise<T> {
  const headers = { "Content-Type": "application/json", "X-Form-Token": formToken };
  const body = JSON.stringify(fields);
  return answerOf(await request(`/dashboard/api/${path}`, { method: "POST", headers, body }));
}

async function answerOf<T>(response: Response): Promise<T> {
  const body = (await response.json()) as T | PageRefusal;
  if (!response.ok) throw new RefusedRequest(response.status, (body as PageRefusal).error.message);
  return body as T;
}
