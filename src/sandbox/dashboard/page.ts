import { html } from "hono/html";
import prettyMilliseconds from "pretty-ms";
import { limitsOf } from "../../api/plans.js";
import type { KeyListing, NewKey } from "../admin/keys.js";
import { type AccountRecord, fromMicro } from "../state/state.js";
import { document, type Piece } from "./document.js";
import type { ShownTask, TaskPage } from "./recent-tasks.js";

/** How numbers and times read on the page. */

const decimals = new Intl.NumberFormat("en-US", { maximumFractionDigits: 6 });
const days = new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeZone: "UTC" });

/** `1,234.5` */
export function amount(number: number): string {
  return decimals.format(number);
}

/** `1 request`, `3 requests` */
export function counted(number: number, noun: string): string {
  return `${amount(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** `20 November 2026` */
export function day(ms: number): string {
  return days.format(ms);
}

/** `just now`, `4 minutes ago` */
export function ago(ms: number, now: number): string {
  const age = now - ms;
  return age < 1_000 ? "just now" : `${prettyMilliseconds(age, { compact: true, verbose: true })} ago`;
}

/** The exact time, also machine-readable. */
export function stamp(ms: number): string {
  return new Date(ms).toISOString();
}

export interface DashboardPage {
  account: AccountRecord;
  accounts: readonly AccountRecord[];
  keys: readonly KeyListing[];
  made: NewKey | null;
  refused: { why: string; name: string } | null;
  tasks: TaskPage;
  formToken: string;
  now: number;
}

/** The whole dashboard of one user. */
export function dashboardPage(page: DashboardPage): Piece {
  const { account, accounts, keys, made, refused, tasks, now } = page;
  const hidden = html`<input type="hidden" name="token" value="${page.formToken}"><input type="hidden" name="user" value="${account.id}">`;
  const older = tasks.older === null ? null : address({ user: account.id, before: String(tasks.older) });
  return document(
    "Dashboard · bulkgen sandbox",
    html`<header>
<a class="brand" href="${address({ user: account.id })}"><img src="/dashboard/icon.svg" alt="" width="28" height="28"> bulkgen <span>sandbox</span></a>
${accounts.length > 1 ? users(account, accounts) : html`<p class="who">${account.name ?? account.email}</p>`}
</header>
<main>
<h1 class="unseen">Dashboard</h1>
${accountPanels(account, keys)}
${keysPanel({ keys, made, refused, hidden, now })}
${tasksPanel(tasks, older, now)}
</main>
<footer>This service runs on this machine alone. Nothing here costs money.</footer>`,
  );
}

function users(account: AccountRecord, accounts: readonly AccountRecord[]): Piece {
  const links = accounts.map((each) => {
    const name = each.name ?? each.email;
    return each.id === account.id
      ? html`<a href="${address({ user: each.id })}" aria-current="true" title="${each.email}">${name}</a>`
      : html`<a href="${address({ user: each.id })}" title="${each.email}">${name}</a>`;
  });
  return html`<nav class="who" aria-label="Users">${links}</nav>`;
}

function address(query: Record<string, string>): string {
  return `/dashboard?${new URLSearchParams(query)}`;
}

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

export interface KeysPanel {
  keys: readonly KeyListing[];
  /** A key that was just made; this page shows its value, and no later one does. */
  made: NewKey | null;
  /** Why the last form was refused, and the name that was in it. */
  refused: { why: string; name: string } | null;
  /** What every form carries besides its own fields. */
  hidden: Piece;
  now: number;
}

/** The API keys: what there is, a new one, an old one revoked. */
export function keysPanel({ keys, made, refused, hidden, now }: KeysPanel): Piece {
  return html`<section class="panel" aria-labelledby="keys">
<div class="head">
<h2 id="keys">API keys</h2>
<form method="post" action="/dashboard/keys" class="create">
${hidden}
<input name="name" aria-label="Name of the new key" placeholder="Name, such as nightly" maxlength="64" required
 autocomplete="off" spellcheck="false" value="${refused?.name ?? ""}">
<button class="primary">Create new key</button>
</form>
</div>
${refused ? html`<p class="refused" role="alert">${sentence(refused.why)}</p>` : ""}
${made ? madeKey(made) : ""}
<table class="keys">
<thead><tr><th>Name</th><th>Created</th><th class="number">Requests</th><th class="number">Credits used</th><th><span class="unseen">Revoke</span></th></tr></thead>
<tbody>${keys.map((key) => keyRow(key, hidden, now))}</tbody>
</table>
</section>`;
}

function madeKey({ name, value }: NewKey): Piece {
  return html`<div class="made" role="status">
<p><strong>Your new key “${name}”.</strong> Copy it now: it is shown this once only.</p>
<code class="value" data-key>${value}</code>
</div>`;
}

function keyRow(key: KeyListing, hidden: Piece, now: number): Piece {
  return html`<tr class="${key.revokedAt === null ? "good" : "revoked"}" data-id="${key.id}">
<th scope="row">${key.name}${key.isPublic ? html` <span class="badge">public</span>` : ""}</th>
<td data-label="Created"><time datetime="${stamp(key.createdAt)}" title="${stamp(key.createdAt)}">${ago(key.createdAt, now)}</time></td>
<td class="number" data-label="Requests">${amount(key.requestsCount)}</td>
<td class="number" data-label="Credits used">${amount(key.used)}</td>
<td class="action">${action(key, hidden, now)}</td>
</tr>`;
}

function action(key: KeyListing, hidden: Piece, now: number): Piece {
  if (key.revokedAt !== null) {
    const at = stamp(key.revokedAt);
    return html`<span class="badge">revoked <time datetime="${at}" title="${at}">${ago(key.revokedAt, now)}</time></span>`;
  }
  if (key.isPublic) return html`<span class="quiet">in every sandbox</span>`;
  return html`<details>
<summary>Revoke</summary>
<form method="post" action="/dashboard/keys/${encodeURIComponent(key.id)}/revoke">
${hidden}
<p>Whatever uses “${key.name}” will be refused from then on, for good.</p>
<button class="danger">Revoke this key</button>
</form>
</details>`;
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** The newest tasks with what came of them. `older` is the address of the page with those before. */
export function tasksPanel({ tasks }: TaskPage, older: string | null, now: number): Piece {
  const cards = tasks.map((task) => taskCard(task, now));
  return html`<section class="panel" aria-labelledby="tasks">
<div class="head"><h2 id="tasks">Recent tasks</h2></div>
${
  tasks.length > 0
    ? html`<ul class="tasks">${cards}</ul>`
    : html`<p class="empty">No tasks yet. What is generated with one of the keys above appears here.</p>`
}
${older === null ? "" : html`<p class="more"><a href="${older}">Older tasks</a></p>`}
</section>`;
}

function taskCard(task: ShownTask, now: number): Piece {
  const at = stamp(task.createdAt);
  return html`<li class="task" data-task="${task.id}">
<div class="preview ${task.category}">${preview(task)}</div>
<div class="about">
<p class="prompt" title="${task.prompt ?? ""}">${task.prompt ?? html`<span class="quiet">no prompt</span>`}</p>
<p class="quiet"><span class="model">${task.model}</span> · ${counted(task.credits, "credit")} · <time datetime="${at}" title="${at}">${ago(task.createdAt, now)}</time></p>
${task.params.length > 0 ? params(task) : ""}
</div>
</li>`;
}

function params(task: ShownTask): Piece {
  const rows = task.params.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`);
  return html`<details><summary>Details</summary><dl><dt>task</dt><dd>${task.id}</dd>${rows}</dl></details>`;
}

function preview(task: ShownTask): Piece | Piece[] {
  if (task.status === "processing") return html`<p class="waiting">processing</p>`;
  if (task.status === "failed")
    return html`<p class="failed"><strong>failed</strong> ${task.error ?? ""}</p>`;
  return task.outputs.map((path, index) => output(task, path, index + 1));
}

function output({ category, prompt, model }: ShownTask, path: string, number: number): Piece {
  const label = `Output ${number} of ${model}`;
  if (category === "video") {
    return html`<video controls playsinline preload="metadata" src="${path}" aria-label="${label}"></video>`;
  }
  if (category === "audio") {
    return html`<audio controls preload="metadata" src="${path}" aria-label="${label}"></audio>`;
  }
  return html`<a href="${path}"><img src="${path}" alt="${prompt ?? label}" loading="lazy"></a>`;
}
