import type { Template } from "liquidjs";
import { z } from "zod";
import { hasKey } from "../api/key.js";
import { EarlyExit } from "../core/exit.js";
import { type NotificationEvent, notificationEvents } from "../core/notification.js";
import type { Notification } from "../documents/schedules.js";
import { boundedLiquid } from "../manifest/templates/template.js";
import { ownVariables } from "../shell.js";
import type { Environment } from "../text/environment.js";

/**
 * Notification targets, read from `--notify` before anything is spent: an address, or a JSON object with details. `$NAME`
 * instead of an address or a header's value is read from the environment, so that secrets need not be in a file or on a
 * command line. Messages name the host of an address and never its path, which may contain secrets.
 */
export type Target = { on: readonly NotificationEvent[] } & (
  | { kind: "webhook"; url: URL; headers: Readonly<Record<string, string>>; shape: Shape }
  | { kind: "email"; to: string; server: string; from: string }
  | { kind: "command"; command: string }
);

/** Makes the body of a webhook and its content type. */
type Shape = (facts: Notification) => { body: string; type: string };

export interface TargetSettings {
  notify?: readonly string[];
  notifyCommand?: string;
  smtpUrl?: string;
  smtpFrom?: string;
}

const wanted = z.strictObject({
  url: z.string().optional(),
  email: z.string().optional(),
  on: z
    .array(z.enum(notificationEvents, `"on" to have only ${notificationEvents.join(", ")}`))
    .min(1)
    .optional(),
  kind: z.enum(["json", "slack", "discord"], '"kind" to be json, slack or discord').optional(),
  body: z.string().optional(),
  type: z.string().optional(),
  headers: z.record(z.string(), z.string()).optional(),
});

type Wanted = z.infer<typeof wanted>;

/** Throws EarlyExit for a target that cannot be read. */
export function targetsOf(settings: TargetSettings, environment: Environment): Target[] {
  const targets = (settings.notify ?? []).map((text) => targetOf(text, settings, environment));
  const { notifyCommand } = settings;
  return notifyCommand === undefined
    ? targets
    : [...targets, { kind: "command", command: notifyCommand, on: notificationEvents }];
}

function targetOf(text: string, settings: TargetSettings, environment: Environment): Target {
  const asked = text.trimStart().startsWith("{") ? readObject(text) : simple(text, environment);
  const on = asked.on ?? notificationEvents;
  if (asked.email !== undefined) return { ...email(asked.email, settings, environment), on };
  if (asked.url === undefined) throw wrong("an address (url or email)", "none");
  const url = addressOf(fromEnvironment(asked.url, environment));
  const headers = Object.entries(asked.headers ?? {}).map(
    ([name, value]) => [name.toLowerCase(), fromEnvironment(value, environment)] as const,
  );
  // The key belongs to the service alone, whatever its variable is called.
  if ([url.href, asked.body ?? "", ...headers.flat()].some(hasKey))
    throw wrong("a target without the API key, which is sent to the service alone", "an API key");
  return {
    kind: "webhook",
    url,
    headers: { ...loginOf(url), ...Object.fromEntries(headers) },
    shape: shapeOf(asked, url),
    on,
  };
}

/** The header for the user and password of an address. */
function loginOf({ username, password }: URL): Record<string, string> {
  if (username === "" && password === "") return {};
  return {
    authorization: `Basic ${Buffer.from(`${decoded(username)}:${decoded(password)}`).toString("base64")}`,
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw wrong(
      "%25 for each % in a user name or password",
      "an address with % in its user name or password",
    );
  }
}

function simple(text: string, environment: Environment): Wanted {
  const address = fromEnvironment(text.trim(), environment);
  const mail = /^mailto:(.+)$/.exec(address)?.[1];
  return mail === undefined ? { url: address } : { email: mail };
}

function readObject(text: string): Wanted {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The error would quote the text, which may have secrets.
    throw wrong("an address or a JSON object", "text that is not JSON");
  }
  const read = wanted.safeParse(value);
  if (read.success) return read.data;
  const choice = read.error.issues.find(({ code }) => code === "invalid_value");
  if (choice !== undefined) {
    const got = choice.path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown>)[key], value);
    throw wrong(choice.message, JSON.stringify(got));
  }
  const issues = read.error.issues.map(({ path, message }) => `${path.join(".")} ${message}`.trim());
  throw wrong("an object with url or email, and on, kind, body, type, headers", issues.join("; "));
}

function fromEnvironment(text: string, environment: Environment): string {
  const name = /^\$(\w+)$/.exec(text)?.[1];
  if (name === undefined) return text;
  const value = environment[name];
  if (name === ownVariables.key || hasKey(value ?? ""))
    throw wrong("a variable without the API key, which is sent to the service alone", name);
  if (value === undefined || value === "")
    throw wrong(`${name} in the environment`, "nothing under that name");
  return value;
}

function addressOf(text: string): URL {
  const expected = "an address such as https://hooks.example/…, or mailto:ops@example.org";
  // The text may be a mistyped secret, so it is not repeated.
  if (!URL.canParse(text)) throw wrong(expected, "text that is not an address");
  const url = new URL(text);
  if (url.protocol !== "https:" && url.protocol !== "http:") throw wrong(expected, `${url.protocol}//…`);
  return url;
}

function shapeOf({ kind, body, type }: Wanted, url: URL): Shape {
  if (body !== undefined) return liquid(body, type);
  const slack = url.hostname === "hooks.slack.com";
  const discord =
    /^(discord|discordapp)\.com$/.test(url.hostname) && url.pathname.startsWith("/api/webhooks");
  return shapes[kind ?? (slack ? "slack" : discord ? "discord" : "json")];
}

const json = "application/json";
const discordCharactersMax = 2_000;

const shapes: Readonly<Record<"json" | "slack" | "discord", Shape>> = {
  json: (facts) => ({ body: JSON.stringify(facts), type: json }),
  slack: (facts) => {
    // Slack reads these three as its own markup.
    const text = lines(facts).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
    return { body: JSON.stringify({ text }), type: json };
  },
  discord: (facts) => {
    const content = lines(facts).slice(0, discordCharactersMax);
    // A job named @everyone must not notify anyone.
    return { body: JSON.stringify({ content, allowed_mentions: { parse: [] } }), type: json };
  },
};

/** The notification as text: what, why, from where, and what to do now. */
export function lines(facts: Notification): string {
  const { summary, why, failures, next } = facts;
  const labelled = [
    ["Why", why],
    ["Failed", failures],
    ["From", originText(facts)],
    ["Next", next],
  ];
  return [summary, ...labelled.flatMap(([label, text]) => (text ? [`${label}: ${text}`] : []))].join("\n");
}

function originText({ schedule, due, workspace, host, sandbox }: Notification): string {
  const scheduled = schedule === null ? "" : `schedule ${schedule}${due === null ? "" : `, due ${due}`}, `;
  return `${scheduled}${workspace} on ${host}${sandbox ? " (a sandbox rehearsal)" : ""}`;
}

function liquid(body: string, type: string | undefined): Shape {
  const engine = boundedLiquid();
  const fill = (template: Template[], facts: Notification) => engine.renderSync(template, facts) as string;
  try {
    const template = engine.parse(body);
    fill(template, example);
    return (facts) => ({
      body: fill(template, facts),
      type: type ?? (/^\s*[[{]/.test(body) ? json : "text/plain; charset=utf-8"),
    });
  } catch (error) {
    throw wrong(`a Liquid body with ${Object.keys(example).join(", ")}`, (error as Error).message);
  }
}

/** Checks a body's variable names before anything is spent. */
const example: Notification = {
  event: "done",
  summary: "",
  why: null,
  failures: null,
  exit: 0,
  host: "",
  workspace: "",
  sandbox: false,
  schedule: null,
  due: null,
  run: 1,
  job: "",
  items: 0,
  archived: 0,
  failed: 0,
  held: 0,
  creditsSpent: 0,
  creditsPending: 0,
  creditsLeft: 0,
  folder: "",
  next: null,
};

function email(to: string, { smtpUrl, smtpFrom }: TargetSettings, environment: Environment) {
  if (!/^[^\s@]+@[^\s@]+$/.test(to)) throw wrong("mailto: and an e-mail address", JSON.stringify(to));
  if (smtpUrl === undefined)
    throw wrong("a mail server for mailto: (--smtp-url smtp://HOST:587, or BULKGEN_SMTP_URL)", "none");
  const server = fromEnvironment(smtpUrl, environment);
  if (hasKey(server))
    throw wrong("--smtp-url without the API key, which is sent to the service alone", "an API key");
  if (!URL.canParse(server) || !/^smtps?:$/.test(new URL(server).protocol))
    throw wrong("--smtp-url smtp://HOST:PORT or smtps://HOST:PORT", "text that is not such an address");
  return { kind: "email", to, server, from: smtpFrom ?? `bulkgen@${new URL(server).hostname}` } as const;
}

function wrong(expected: string, got: string): EarlyExit {
  return new EarlyExit("usage", `--notify: expected ${expected}, got ${got}. Nothing was sent.`);
}
