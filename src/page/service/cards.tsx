import { limitsOf } from "../../api/plans.js";
import type { AccountAnswer, PageAccount } from "../../api/service-page.js";
import { counted, credits, number } from "../parts/amounts.js";

const days = new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeZone: "UTC" });
const statusWords = { active: "active", canceled: "canceled", past_due: "past due" } as const;

/** Credits, subscription and usage. */
export function Cards({ answer, activate }: { answer: AccountAnswer; activate: () => Promise<unknown> }) {
  const { account, keys } = answer;
  const requests = keys.reduce((sum, key) => sum + key.requestsCount, 0);
  const used = keys.reduce((sum, key) => sum + key.used, 0);
  const active = keys.filter((key) => key.revokedAt === null).length;
  const revoked = active < keys.length ? `, ${number(keys.length - active)} revoked` : "";
  return (
    <div class="cards">
      <section class="card" aria-labelledby="credits">
        <h2 id="credits">Credits</h2>
        <p class="figure">{number(account.balance)}</p>
        <p>available now</p>
        <p class="quiet">The plan includes {number(account.creditsPerMonth)} a month</p>
      </section>
      <section class="card" aria-labelledby="subscription">
        <h2 id="subscription">Subscription</h2>
        <Subscription account={account} now={answer.now} />
        {account.subscription !== "active" && (
          <button type="button" class="main" onClick={() => void activate()}>
            Activate subscription
          </button>
        )}
      </section>
      <section class="card" aria-labelledby="usage">
        <h2 id="usage">Usage</h2>
        <p class="figure">
          {number(requests)} <small>{requests === 1 ? "request" : "requests"}</small>
        </p>
        <p>{credits(used)} used</p>
        <p class="quiet">
          {counted(active, "active key")}
          {revoked}
        </p>
      </section>
    </div>
  );
}

function Subscription({ account, now }: { account: PageAccount; now: number }) {
  const { plan, subscription, periodEnd } = account;
  if (subscription === null)
    return (
      <>
        <p class="figure">None</p>
        <p class="quiet">Generating needs an active subscription.</p>
      </>
    );
  return (
    <>
      <p class="figure">
        {plan} <span class={`badge ${subscription}`}>{statusWords[subscription]}</span>
      </p>
      <p>
        {periodWords(account, now)}{" "}
        <time dateTime={new Date(periodEnd).toISOString()}>{days.format(periodEnd)}</time>
      </p>
      <p class="quiet">{limitWords(plan)}</p>
    </>
  );
}

function periodWords({ subscription, cancelAtPeriodEnd, periodEnd }: PageAccount, now: number): string {
  const isOver = periodEnd <= now;
  if (subscription === "past_due")
    return isOver ? "Payment is due; the period ended" : "Payment is due; the period ends";
  if (subscription === "canceled" || cancelAtPeriodEnd) return isOver ? "Ended" : "Ends";
  return "Renews";
}

function limitWords(plan: string): string {
  const { perMinute, perDay } = limitsOf(plan);
  if (perMinute === null || perDay === null) return "Unlimited requests";
  return `${number(perMinute)} requests a minute, ${number(perDay)} a day`;
}
