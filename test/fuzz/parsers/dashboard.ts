import { expect } from "vitest";
import { parseJson } from "../../../src/api/values.js";
import type { DroppedSheet } from "../../../src/documents/page.js";
import { type OpenDashboard, openDashboard } from "../../dashboard/place.js";
import type { Outcome, Parser } from "../cases.js";

/**
 * What a page, or somebody in its place, asks the dashboard: it is answered, or refused with a reason, and is never an
 * error of the server. A case has a line with the method and the path, and one with the body.
 */
const asked = (method: "GET" | "POST", path: string, body: unknown = null) => [[method, path], body];

const run = { model: "plain-image", params: { size: "big" }, filter: "id=cup", maxCredits: 3 };
const samples = [
  "runs?limit=2",
  "runs/1",
  "runs/1/items?state=archived&text=cup&from=0&limit=5",
  "runs/1/progress",
  "account?days=7",
  "items/1",
  "files?run=1&text=cup&before=9&limit=3",
  "waiting?limit=3",
  "schedules",
  "sheets",
  "sheet?file=sheets/autumn.csv",
  "sheet/rows?file=sheets/autumn.csv&from=1&limit=2",
  "models",
].map((path) => asked("GET", `/api/${path}`));
const orders = [
  asked("POST", "/api/sheets?name=spring.csv", "id,model,prompt\na,plain-image,x\n"),
  asked("POST", "/api/check", { file: "sheets/autumn.csv", ...run }),
  asked("POST", "/api/offer", { do: "start", choices: { file: "sheets/autumn.csv", ...run } }),
  asked("POST", "/api/sheet/cells?file=sheets/autumn.csv&version=NOW", [
    { row: 2, column: "prompt", value: "y" },
  ]),
  asked("POST", "/api/act", { do: "pick", items: [1] }),
  asked("POST", "/api/act", { do: "pause", run: 1 }),
  asked("POST", "/api/act", { do: "unschedule", name: "n" }),
  asked("POST", "/api/zip", { files: [{ item: 1, number: 1 }] }),
  asked("GET", "/files/x/1/1"),
];

export const dashboardParser: Parser = {
  samples: () =>
    [...samples, ...orders].map((request) =>
      Buffer.from(request.map((line) => `${JSON.stringify(line)}\n`).join("")),
    ),
  words: [],
  isJson: true,
  cases: 300,
  read: ask,
};

async function ask(bytes: Buffer): Promise<Outcome> {
  const [first = "", ...rest] = bytes.toString("utf8").split("\n");
  const [method, path] = methodAndPath(first);
  const { ask: send, get } = await opened();
  const body = rest.join("\n");
  const { version } = await get<DroppedSheet>("/api/sheet?file=sheets/autumn.csv");
  const now = path.replace("version=NOW", `version=${encodeURIComponent(version)}`);
  const answer = await send(now, method === "GET" ? { method } : { method, body });
  const said = await answer.text();
  expect(answer.status, `${method} ${path} ${body}: ${said}`).toBeLessThan(500);
  if (answer.ok) return "taken";
  if (answer.status !== 404) expect(JSON.parse(said).error.message).toMatch(/./);
  return "refused";
}

function methodAndPath(line: string): [method: string, path: string] {
  const found: unknown = parseJson(line);
  const [method, path] = Array.isArray(found) ? (found as unknown[]) : [];
  const isPath = typeof path === "string" && /^\/(?!api\/events)[\x21-\x7e]*$/.test(path);
  return isPath && (method === "GET" || method === "POST") ? [method, path] : ["POST", "/api/act"];
}

let dashboard: Promise<OpenDashboard> | null = null;

/** A dashboard with a sheet, and a run of it. */
function opened(): Promise<OpenDashboard> {
  dashboard ??= (async () => {
    const made = await openDashboard();
    const body = "id,model,prompt\ncup,plain-image,a cup\njar,plain-image,a jar\n";
    await made.ask("/api/sheets?name=autumn.csv", { method: "POST", body });
    await made.act({ do: "start", choices: { file: "sheets/autumn.csv" }, price: 10 });
    return made;
  })();
  return dashboard;
}
