import { hostname, userInfo } from "node:os";
import { main } from "../e2e/process.js";

/** Numbers that differ from run to run, by their names. */
const measured = ["elapsedMs", "ms", "requests", "requestsPerItem", "bytes", "bytesRead", "pid", "process"];
const sometime = "2026-11-21T02:00:00.000Z";
const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** A document as docs/json.md shows it: of each list its first entry, and fixed values for what differs each time. */
export function exampleOf(value: unknown, folder: string, key = ""): unknown {
  if (typeof value === "number") return measured.includes(key) && value > 0 ? 12 : value;
  if (typeof value === "string") return ["got", "systemd"].includes(key) ? "…" : textOf(value, folder);
  if (Array.isArray(value)) return value.slice(0, 1).map((entry) => exampleOf(entry, folder, key));
  if (typeof value !== "object" || value === null) return value;
  // What a run has to wait for depends on how fast the machine is.
  const isWait = "event" in value && value.event === "waiting";
  const shown = isWait
    ? { ...value, for: "minute", message: "minute quota used up", until: sometime }
    : value;
  const own = Object.entries(shown).map(([name, entry]) => [name, exampleOf(entry, folder, name)]);
  return Object.fromEntries(own);
}

/** The edition of a schedule is named by the time at which it is due, without seconds. */
function textOf(text: string, folder: string): string {
  return text
    .replaceAll(folder, "/srv/campaign")
    .replaceAll(process.execPath, "/usr/bin/node")
    .replaceAll(main, "/usr/lib/bulkgen/bulkgen.js")
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "2026-11-21T02:00:00.000Z")
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\dZ/g, "2026-11-26T00:00Z")
    .replace(/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d+Z/g, "2026-11-21T02-00-00.000Z")
    .replace(/sandbox-[0-9a-f]{16}/g, "sandbox-33dc013f4192f740")
    .replace(uuid, "5f0c1b9e-7a54-4c35-9d6a-2f9f6f1c0e11")
    .replace(/[0-9a-f]{64}/g, "3f2a91c40b7d".padEnd(64, "0"))
    .replace(/svc_[A-Za-z0-9]{32}/g, `svc_${"0".repeat(32)}`)
    .replace(/127\.0\.0\.1:\d+/g, "127.0.0.1:4800")
    .replace(/([?#&]\w+=)[\w-]{16,}/g, "$1…")
    .replace(new RegExp(`^(${[hostname(), userInfo().username].map(quoted).join("|")})$`), "anna");
}

function quoted(text: string): string {
  return text.replace(/[^\w]/g, "\\$&");
}
