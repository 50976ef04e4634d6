import type { AccountAnswer } from "../../api/service-page.js";
import { get, post } from "../parts/service/client.js";

/** The account that the page's address names, or the sandbox's own. Throws as `get` does. */
export function getAccount(): Promise<AccountAnswer> {
  return get(`account${location.search}`);
}

/** Asks for a change of an account. Throws as `post` does. */
export function change<T>(path: string, answer: AccountAnswer, fields: { name?: string } = {}): Promise<T> {
  return post(path, answer.formToken, { user: answer.account.id, ...fields });
}
