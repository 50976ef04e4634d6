import type { AccountAnswer, PageRefusal } from "../../api/service-page.js";
import { request } from "./system.js";

/** Every request to the service. */

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

/** What a page at /dashboard is told at an address below `api/`. Throws RefusedRequest, or what fetch throws. */
export async function get<T>(path: string): Promise<T> {
  return answerOf(await request(`/dashboard/api/${path}`, {}));
}

/** Asks for a change. Throws RefusedRequest, or what fetch throws. */
export async function post<T>(path: string, formToken: string, fields: object): Promise<T> {
  const headers = { "Content-Type": "application/json", "X-Form-Token": formToken };
  const body = JSON.stringify(fields);
  return answerOf(await request(`/dashboard/api/${path}`, { method: "POST", headers, body }));
}

/** The account that the page's address names, or the sandbox's own. Throws as `get` does. */
export function getAccount(): Promise<AccountAnswer> {
  return get(`account${location.search}`);
}

/** Asks for a change of an account. Throws as `post` does. */
export function change<T>(path: string, answer: AccountAnswer, fields: { name?: string } = {}): Promise<T> {
  return post(path, answer.formToken, { user: answer.account.id, ...fields });
}

async function answerOf<T>(response: Response): Promise<T> {
  const body = (await response.json()) as T | PageRefusal;
  if (!response.ok) throw new RefusedRequest(response.status, (body as PageRefusal).error.message);
  return body as T;
}
