import { html } from "hono/html";
import { limitsOf } from "../../api/plans.js";
import type { KeyListing } from "../admin/keys.js";
import { fromMicro } from "../state/credits.js";
import type { AccountRecord } from "../state/state.js";
import type { Piece } from "./document.js";
import { amount, counted, day, stamp } from "./wording.js";

/** Credits, subscription and usage, one card each. */
export function accountPanels(account: AccountRecord, keys: readonly KeyListing[]): Piece {
  return html`<div class="cards">${creditsCard(account)}${subscriptionCard(account)}${usageCard(keys)}</div>`;
}

function creditsCard({ balanceMicro, creditsPerMonth }: AccountRecord): Piece {
  const balance = fromMicro(balanceMicro);
  return html`<section class="card" aria-labelledby="credits">
<h2 id="credits">Credits</h2>
<p class="figure">${amount(balance)}</p>
<meter min="0" max="${creditsPerMonth}" value="${balance}" aria-label="Balance against a month's credits"></meter>
<p class="quiet">a month includes ${amount(creditsPerMonth)}</p>
</section>`;
}

const statusWords = { active: "active", canceled: "canceled", past_due: "past due" } as const;

function subscriptionCard(account: AccountRecord): Piece {
  const { plan, subscriptionStatus: status } = account;
  const body =
    status === null
      ? html`<p class="figure">None</p><p class="quiet">Generating needs an active subscription.</p>`
      : html`<p class="figure">${plan} <span class="badge ${status}">${statusWords[status]}</span></p>
<p>${periodWords(account)} <time datetime="${stamp(account.periodEnd)}">${day(account.periodEnd)}</time></p>
<p class="quiet">${limitWords(plan)}</p>`;
  return html`<section class="card" aria-labelledby="subscription"><h2 id="subscription">Subscription</h2>${body}</section>`;
}

function periodWords({ subscriptionStatus: status, cancelAtPeriodEnd }: AccountRecord): string {
  if (status === "past_due") return "Payment is due; the period ends";
  return status === "canceled" || cancelAtPeriodEnd ? "Ends" : "Renews";
}

function limitWords(plan: string): string {
  const { perMinute, perDay } = limitsOf(plan);
  if (perMinute === null || perDay === null) return "requests without limit";
  return `${amount(perMinute)} requests a minute, ${amount(perDay)} a day`;
}

function usageCard(keys: readonly KeyListing[]): Piece {
  const requests = keys.reduce((sum, key) => sum + key.requestsCount, 0);
  const used = keys.reduce((sum, key) => sum + key.used, 0);
  const good = keys.filter((key) => key.revokedAt === null).length;
  return html`<section class="card" aria-labelledby="usage">
<h2 id="usage">Usage</h2>
<p class="figure">${amount(requests)} <small>${requests === 1 ? "request" : "requests"}</small></p>
<p>${counted(used, "credit")} used</p>
<p class="quiet">by ${counted(good, "good key")}${good < keys.length ? `, ${amount(keys.length - good)} revoked` : ""}</p>
</section>`;
}
