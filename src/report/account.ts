import { announcedIn } from "../api/announced.js";
import type { Me, Model } from "../api/records.js";
import { budgetText } from "../core/budget.js";
import { asRequestCount } from "../core/charges/readings.js";
import {
  asBalance,
  asCredits,
  type Credits,
  credits,
  inCredits,
  noCredits,
  showCredits,
} from "../core/money.js";
import type { Quota, Window } from "../core/quota/quota.js";
import { count } from "../text/amounts.js";
import { type Cell, labelled, table } from "../text/table.js";
import { plainStyle, type TerminalStyle } from "../text/terminal-style.js";
import { iso, isoOrNull } from "../text/times.js";

/** What `bulkgen account` prints. The quota counts the requests known to this machine. */
export function accountText(
  { me, quota }: { me: Me; quota: Quota },
  style: TerminalStyle = plainStyle,
): string {
  const { user, api_key: key } = me;
  const { balance, used_this_key: used } = me.credits;
  const { budget } = announcedIn(me);
  const left = budget ? `${budgetText(budget)}; ` : `${amount(asBalance(balance))} left, `;
  const requests = asRequestCount(key.requests_count);
  const lines: [string, Cell][] = [
    ["user", [user.name ?? "", `<${user.email}>`].filter(Boolean).join(" ")],
    ["user id", user.id],
    ["credits", `${left}${amount(asCredits(used))} used by this key`],
    ["plan", subscription(me.subscription)],
    ["this minute", usage(quota.minute)],
    ["24 hours", usage(quota.day)],
    [
      "key",
      `${key.name} (${key.id}), ${requests === null ? "requests unknown" : `${count(requests, "request")} in all`}`,
    ],
  ];
  return labelled(lines, style);
}

/** The service's own record, which may have more fields, and the quota. */
interface AccountDocument extends Me {
  quota: { minute: WindowDocument; day: WindowDocument; blockedUntil: string | null };
}

type WindowDocument = ReturnType<typeof windowJson>;

/** An account for programs: the service's own record, and the quota with times as ISO 8601. */
export function accountJson({ me, quota }: { me: Me; quota: Quota }): AccountDocument {
  const { minute, day, blockedUntil } = quota;
  return {
    ...me,
    quota: { minute: windowJson(minute), day: windowJson(day), blockedUntil: isoOrNull(blockedUntil) },
  };
}

function windowJson({ limit, used, nextFreeAt, nextReleaseAt }: Window) {
  return { limit, used, nextFreeAt: iso(nextFreeAt), nextReleaseAt: isoOrNull(nextReleaseAt) };
}

function amount(credits: Credits | null): string {
  return credits === null ? "unknown" : showCredits(credits);
}

function subscription(subscription: Me["subscription"]): Cell {
  if (subscription === null) return { text: "no active subscription: generation needs one", tone: "bad" };
  const { plan, status, credits_per_month: monthly, billing_interval: interval } = subscription;
  const end = subscription.current_period_end.slice(0, 10);
  const until = subscription.cancel_at_period_end ? `ends ${end}` : `renews ${end}`;
  const included = asCredits(monthly);
  // A key may have credits that no month adds to.
  const month =
    included === noCredits ? "" : `${included === null ? "unknown credits" : inCredits(included)} a month, `;
  const text = `${plan}, ${status}, ${month}billed by the ${interval}, ${until}`;
  return status === "active" ? text : { text, tone: "warning" };
}

function usage({ used, limit }: Window): string {
  // Without a limit the requests are not recorded.
  return limit === null ? "no limit" : `${used} of ${count(limit, "request")}, from this machine`;
}

/** More models than anybody reads as a table. */
const modelsShown = 200;

/**
 * What `bulkgen models` prints: the models with their prices, then the parameters that they know. A long list is cut.
 */
export function modelsTable(all: readonly Model[], style: TerminalStyle = plainStyle): string {
  if (all.length === 0) return "The service offers no models.";
  const models = all.slice(0, modelsShown);
  const left = all.length - models.length;
  const rest =
    left === 0
      ? ""
      : `\n\n${count(left, "more model")}. --json prints all, and --save FILE writes them to a file.`;
  const priced = table(
    [
      { title: "model" },
      { title: "name", flexible: true },
      { title: "category" },
      { title: "input" },
      { title: "credits", align: "right" },
    ],
    models.map((model) => [
      model.model_key,
      model.model_name,
      model.category,
      model.input_type,
      showCredits(credits(model.credits_cost)),
    ]),
    style,
  );
  const parameters = models.flatMap((model) =>
    (model.parameters ?? []).map((parameter) => [
      model.model_key,
      `params.${parameter.key}`,
      valuesOf(parameter),
    ]),
  );
  if (parameters.length === 0) return priced + rest;
  const columns = [
    { title: "model" },
    { title: "parameter" },
    { title: "values (* default)", flexible: true },
  ];
  return `${priced}\n\n${table(columns, parameters, style)}${rest}`;
}

function valuesOf({ options, default: preset }: NonNullable<Model["parameters"]>[number]): string {
  if (!options?.length) return preset === undefined ? "any" : `any, ${preset}*`;
  return options
    .map(({ value, credits_cost: cost }) => {
      const shown = value === preset ? `${value}*` : value;
      return typeof cost === "number" ? `${shown} (${showCredits(credits(cost))} credits)` : shown;
    })
    .join(", ");
}
