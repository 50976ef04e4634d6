import type { RefusedAnswer } from "../documents/page.js";

/** A request that cannot be done, with why, for the person at the page. */
export class Refused extends Error {
  constructor(
    message: string,
    readonly kind: RefusedAnswer["error"]["kind"] = "refused",
  ) {
    super(message);
  }
}
