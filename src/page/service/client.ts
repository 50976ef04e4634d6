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

/** The account that the page's address names, or the sandbox's own. Throws RefusedRequest, or what fetch throws. */
export async function getAccount(): Promise<AccountAnswer> {
  return answerOf(await request(`/dashboard/api/account${location.search}`, {}));
}

/** Asks for a change of an account. Throws RefusedRequest, or what fetch throws. */
export async function change<T>(
  path: string,
  answer: AccountAnswer,
  fields: { name?: string } = {},
): Promise<T> {
  const headers = { "Content-Type": "application/json", "X-Form-Token": answer.formToken };
  const body = JSON.stringify({ user: answer.account.id, ...fields });
  return answerOf(await request(`/dashboard/api/${path}`, { method: "POST", headers, body }));
}

async function answerOf<T>(response: Response): Promise<T> {
  const body = (await response.json()) as T | PageRefusal;
  if (!response.ok) throw new RefusedRequest(response.status, (body as PageRefusal).error.message);
  return body as T;
}
