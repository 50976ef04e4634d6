import { Agent } from "undici";
import type { Clock } from "../clock.js";
import { backoffMs, readTriesMax, statedPauseMs } from "../core/again.js";
import type { Notification } from "../documents/schedules.js";
import { proxied } from "../proxy/tunnel.js";
import { proxiesIn } from "../proxy/variables.js";
import { runShell } from "../shell.js";
import { wait } from "../text/amounts.js";
import type { Environment } from "../text/environment.js";
import type { commandVariables } from "./command-variables.js";
import { lines, type Target } from "./target.js";

/**
 * Sends notifications when a run has ended and released its workspace: all at once, each for at most half a minute, so a
 * hanging target delays nothing. An unreachable target is tried again; a final failure is one warning.
 */
export interface Delivery {
  environment: Environment;
  /** Where a command is run (default: the current folder). */
  cwd?: string;
  clock: Clock;
  warn(line: string): void;
}

/** Milliseconds for a notification in all, and for one try. */
const notifyMsMax = 30_000;
const tryMsMax = 10_000;

/** Never throws. */
export async function deliver(
  targets: readonly Target[],
  facts: Notification,
  delivery: Delivery,
): Promise<void> {
  const wanted = targets.filter((target) => target.on.includes(facts.event));
  await Promise.all(wanted.map((target) => deliverTo(target, facts, delivery)));
}

async function deliverTo(target: Target, facts: Notification, delivery: Delivery): Promise<void> {
  const { clock, environment, warn } = delivery;
  const ended = new AbortController();
  const over = new AbortController();
  void clock.sleep(notifyMsMax, ended.signal).then(() => {
    if (!ended.signal.aborted) over.abort();
  });
  try {
    if (target.kind === "command") {
      const { trouble } = await runShell({
        command: target.command,
        cwd: delivery.cwd ?? ".",
        environment,
        facts: environmentOf(facts),
        signal: over.signal,
      });
      if (trouble !== null) warn(`--notify-command ${trouble}`);
      return;
    }
    const trouble = await tried(() => send(target, facts, delivery, over.signal), clock, over.signal);
    if (trouble !== null) warn(`the notification to ${nameOf(target)} was not delivered: ${trouble}`);
  } finally {
    ended.abort();
  }
}

/** Why a try failed, whether to try again, and how long (ms) the receiver asks to be left alone. */
type Failure = { reason: string; again: boolean; pauseMs?: number };
type Sent = Exclude<Target, { kind: "command" }>;

/** Tries until the notification is delivered, cannot be delivered, or time is up. Returns why it failed, or null. */
async function tried(
  attempt: () => Promise<Failure | null>,
  clock: Clock,
  over: AbortSignal,
): Promise<string | null> {
  for (let number = 1; ; number++) {
    const failure = await attempt();
    if (failure === null) return null;
    const tries = number === 1 ? "" : ` (${number} tries)`;
    const { pauseMs = 0 } = failure;
    if (pauseMs > notifyMsMax)
      return `${failure.reason}, and it asks to be left alone for ${wait(pauseMs)}${tries}`;
    if (!failure.again || number === readTriesMax || over.aborted) return failure.reason + tries;
    await clock.sleep(Math.max(backoffMs(number), pauseMs), over);
  }
}

/** One try, with a time limit. */
async function send(
  target: Sent,
  facts: Notification,
  { clock, environment }: Delivery,
  over: AbortSignal,
): Promise<Failure | null> {
  const ended = new AbortController();
  const late = new AbortController();
  void clock.sleep(tryMsMax, ended.signal).then(() => late.abort());
  const signal = AbortSignal.any([late.signal, over]);
  try {
    if (target.kind === "email") return await mail(target, facts, signal);
    return await post(target, facts, { clock, environment }, signal);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ERR_SSL_WRONG_VERSION_NUMBER")
      return { reason: "the server does not speak HTTPS; use http:// in its address", again: false };
    const reason = code ?? message;
    return { reason: signal.aborted ? "no answer in time" : reason, again: true };
  } finally {
    ended.abort();
  }
}

async function post(
  { url, headers, shape }: Extract<Target, { kind: "webhook" }>,
  facts: Notification,
  { clock, environment }: Pick<Delivery, "clock" | "environment">,
  signal: AbortSignal,
): Promise<Failure | null> {
  const { body, type } = shape(facts);
  const proxies = proxiesIn(environment);
  const agent = proxies === null ? new Agent() : proxied(proxies, {});
  try {
    const { statusCode, headers: answered } = await agent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: "POST",
      headers: { "content-type": type, "user-agent": "bulkgen", ...headers },
      body,
      signal,
    });
    if (statusCode >= 200 && statusCode < 300) return null;
    const again = statusCode === 429 || statusCode >= 500;
    const asked = {
      "retry-after": String(answered["retry-after"] ?? ""),
      date: String(answered["date"] ?? ""),
    };
    const pauseMs = again ? statedPauseMs(asked, clock.now()) : null;
    return { reason: `HTTP ${statusCode}`, again, ...(pauseMs === null ? {} : { pauseMs }) };
  } finally {
    await agent.destroy();
  }
}

async function mail(
  { server, from, to }: Extract<Target, { kind: "email" }>,
  facts: Notification,
  signal: AbortSignal,
): Promise<Failure | null> {
  const { createTransport } = await import("nodemailer");
  const transport = createTransport(server);
  try {
    await transport.sendMail({
      from,
      to,
      subject: `bulkgen: ${facts.summary}`,
      text: `${lines(facts)}\n`,
      signal,
    });
    return null;
  } catch (error) {
    const { responseCode, code, syscall, message } = error as NodeJS.ErrnoException & {
      responseCode?: number;
    };
    // The server's message may repeat secrets that were sent to it; the system's own says why there is no connection.
    const reason = signal.aborted
      ? "no answer in time"
      : responseCode
        ? `SMTP ${responseCode}`
        : syscall === undefined
          ? (code ?? "no connection")
          : message;
    return { reason, again: responseCode === undefined || responseCode < 500 };
  }
}

/** The target's name in messages, without path and user, which may be secrets. */
function nameOf(target: Sent): string {
  return target.kind === "email" ? target.to : target.url.host;
}

/** The command's environment variables, one line of text each; empty if unknown. */
function environmentOf(facts: Notification): Record<(typeof commandVariables)[number], string> {
  const text = (value: string | number | boolean | null) => (value === null ? "" : String(value));
  return {
    BULKGEN_EVENT: facts.event,
    BULKGEN_EXIT: text(facts.exit),
    BULKGEN_EXIT_NAME: facts.exit === null ? "" : facts.event,
    BULKGEN_SUMMARY: facts.summary,
    BULKGEN_WHY: text(facts.why),
    BULKGEN_FAILURES: text(facts.failures),
    BULKGEN_HOST: facts.host,
    BULKGEN_WORKSPACE: facts.workspace,
    BULKGEN_REHEARSAL: text(facts.sandbox),
    BULKGEN_SCHEDULE: text(facts.schedule),
    BULKGEN_DUE: text(facts.due),
    BULKGEN_RUN: text(facts.run),
    // BULKGEN_JOB is a setting, which a bulkgen that the command starts would read.
    BULKGEN_JOB_NAME: text(facts.job),
    BULKGEN_ITEMS: text(facts.items),
    BULKGEN_ARCHIVED: text(facts.archived),
    BULKGEN_FAILED: text(facts.failed),
    BULKGEN_HELD: text(facts.held),
    BULKGEN_CREDITS_SPENT: text(facts.creditsSpent),
    BULKGEN_CREDITS_PENDING: text(facts.creditsPending),
    BULKGEN_CREDITS_LEFT: text(facts.creditsLeft),
    BULKGEN_FOLDER: text(facts.folder),
    BULKGEN_NEXT: text(facts.next),
  };
}
