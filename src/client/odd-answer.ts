import { parseJson } from "../api/json.js";
import { errorFacts } from "../api/records.js";
import type { Reply } from "../core/ports/send.js";
import { shortText } from "../text/terminal.js";

type Answer = Extract<Reply, { kind: "answer" }>;

const beginningCharactersMax = 60;
const addressCharactersMax = 100;
const messageCharactersMax = 300;

/** What stands where JSON was expected, such as `text/html beginning "<!doctype html>…"`; null where there is JSON. */
export function oddBody({ headers, body }: Pick<Answer, "headers" | "body">): string | null {
  if (body.trim() === "") return "an empty answer";
  if (parseJson(body) !== null || body.trim() === "null") return null;
  const type = shortText(headers["content-type"]?.split(";")[0] ?? "", 40);
  const named = type === "" || /json/i.test(type) ? "text" : type;
  // Far more than is shown, and far less than a long page.
  return `${named} beginning "${shortText(body.slice(0, 1_000), beginningCharactersMax)}"`;
}

/** The status, and for a redirect where it leads: a login page or another address often explains it. */
export function answerStatus({ status, headers }: Pick<Answer, "status" | "headers">): string {
  const location = headers["location"];
  if (status < 300 || status >= 400 || !location) return String(status);
  // What follows the path may be a secret, and is of no help.
  const [address = ""] = location.split(/[?#]/);
  return `${status}, a redirect to ${shortText(address, addressCharactersMax)}, which is not followed`;
}

/** An answer that is no success, in one line: `401 INVALID_API_KEY: The API key does not exist`. */
export function answerText(answer: Answer): string {
  const { code, message } = errorFacts(parseJson(answer.body));
  const status = answerStatus(answer);
  const said = [code, message].filter((piece) => piece !== null).join(": ");
  if (said !== "") return `${status} ${shortText(said, messageCharactersMax)}`;
  const odd = answer.status < 300 || answer.status >= 400 ? oddBody(answer) : null;
  return odd === null ? status : `${status} with ${odd}`;
}
