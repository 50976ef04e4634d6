import { html } from "hono/html";
import prettyMilliseconds from "pretty-ms";
import { endpoints } from "../../api/endpoints.js";
import { sandboxKey } from "../../api/key.js";
import { limitsOf } from "../../api/plans.js";
import type { KeyListing, NewKey } from "../admin/keys.js";
import { type AccountRecord, fromMicro } from "../state/state.js";
import { document, type Piece } from "./document.js";
import type { ShownTask, TaskPage } from "./recent-tasks.js";

/** How numbers and times read on the page. */

const decimals = new Intl.NumberFormat("en-US", { maximumFractionDigits: 6 });
const days = new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeZone: "UTC" });

/** `1,234.5` */
function amount(number: number): string {
  return decimals.format(number);
}

/** `1 request`, `3 requests` */
function counted(number: number, noun: string): string {
  return `${amount(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** `20 November 2026` */
function day(ms: number): string {
  return days.format(ms);
}

/** `just now`, `4 minutes ago` */
function ago(ms: number, now: number): string {
  const age = now - ms;
  return age < 1_000 ? "just now" : `${prettyMilliseconds(age, { compact: true, verbose: true })} ago`;
}

/** The exact time, also machine-readable. */
function stamp(ms: number): string {
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
  /** Where the service is, for programs. */
  origin: string;
  now: number;
}

const refreshSeconds = 3;

/** The key to show in commands: the public one, if the account has it. */
function shownKey(keys: readonly KeyListing[]): string | null {
  return keys.some((key) => key.isPublic) ? sandboxKey : null;
}

/** The whole dashboard of one user. */
export function dashboardPage(page: DashboardPage): Piece {
  const { account, accounts, keys, made, refused, tasks, origin, now } = page;
  const hidden = html`<input type="hidden" name="token" value="${page.formToken}"><input type="hidden" name="user" value="${account.id}">`;
  const unfinished = tasks.tasks.some(({ status }) => status === "processing");
  // A page that shows a new key, or what somebody typed, stays as it is.
  const refresh = unfinished && made === null && refused === null ? refreshSeconds : null;
  const older = tasks.older === null ? null : address({ user: account.id, before: String(tasks.older) });
  return document(
    "Dashboard · bulkgen sandbox",
    html`<header>
<a class="brand" href="${address({ user: account.id })}"><img src="/dashboard/icon.svg" alt="" width="28" height="28"> bulkgen <span>sandbox</span></a>
${accounts.length > 1 ? users(account, accounts) : html`<p class="who">${account.email}</p>`}
</header>
<main>
<h1 class="unseen">Dashboard</h1>
<div class="cards">${creditsCard(account)}${subscriptionCard(account, hidden, now)}${usageCard(keys)}</div>
${connectPanel(origin, shownKey(keys))}
${keysPanel({ keys, made, refused, hidden, now })}
${tasksPanel(tasks, older, firstCommand(origin, shownKey(keys)), now)}
</main>
<footer>This service runs on this machine alone. Nothing here costs money. Its pictures, clips and tunes stand for a generation; they do not show what the prompt says.</footer>`,
    refresh,
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

function creditsCard({ balanceMicro, creditsPerMonth }: AccountRecord): Piece {
  return html`<section class="card" aria-labelledby="credits">
<h2 id="credits">Credits</h2>
<p class="figure">${amount(fromMicro(balanceMicro))}</p>
<p>available now</p>
<p class="quiet">The plan includes ${amount(creditsPerMonth)} a month</p>
</section>`;
}

const statusWords = { active: "active", canceled: "canceled", past_due: "past due" } as const;

function subscriptionCard(account: AccountRecord, hidden: Piece, now: number): Piece {
  const { plan, subscriptionStatus: status } = account;
  const body =
    status === null
      ? html`<p class="figure">None</p><p class="quiet">Generating needs an active subscription.</p>`
      : html`<p class="figure">${plan} <span class="badge ${status}">${statusWords[status]}</span></p>
<p>${periodWords(account, now)} <time datetime="${stamp(account.periodEnd)}">${day(account.periodEnd)}</time></p>
<p class="quiet">${limitWords(plan)}</p>`;
  const activate = html`<form method="post" action="/dashboard/activate" class="activate">${hidden}<button>Activate subscription</button></form>`;
  return html`<section class="card" aria-labelledby="subscription"><h2 id="subscription">Subscription</h2>${body}${status === "active" ? "" : activate}</section>`;
}

function periodWords(account: AccountRecord, now: number): string {
  const { subscriptionStatus: status, cancelAtPeriodEnd, periodEnd } = account;
  const over = periodEnd <= now;
  if (status === "past_due")
    return over ? "Payment is due; the period ended" : "Payment is due; the period ends";
  if (status === "canceled" || cancelAtPeriodEnd) return over ? "Ended" : "Ends";
  return "Renews";
}

function limitWords(plan: string): string {
  const { perMinute, perDay } = limitsOf(plan);
  if (perMinute === null || perDay === null) return "Unlimited requests";
  return `${amount(perMinute)} requests a minute, ${amount(perDay)} a day`;
}

function usageCard(keys: readonly KeyListing[]): Piece {
  const requests = keys.reduce((sum, key) => sum + key.requestsCount, 0);
  const used = keys.reduce((sum, key) => sum + key.used, 0);
  const active = keys.filter((key) => key.revokedAt === null).length;
  return html`<section class="card" aria-labelledby="usage">
<h2 id="usage">Usage</h2>
<p class="figure">${amount(requests)} <small>${requests === 1 ? "request" : "requests"}</small></p>
<p>${counted(used, "credit")} used</p>
<p class="quiet">${counted(active, "active key")}${active < keys.length ? `, ${amount(keys.length - active)} revoked` : ""}</p>
</section>`;
}

/** Where programs find the service, and the key that everybody has. */
function connectPanel(origin: string, key: string | null): Piece {
  return html`<section class="panel" aria-labelledby="connect">
<div class="head"><h2 id="connect">Connect</h2><a href="/docs">API reference</a></div>
<dl class="connect">
<dt>Base URL</dt><dd><code>${origin}</code></dd>
<dt>API key</dt><dd>${key === null ? "one of the keys below" : html`<code>${key}</code>`}</dd>
</dl>
</section>`;
}

interface KeysPanel {
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
function keysPanel({ keys, made, refused, hidden, now }: KeysPanel): Piece {
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
<p><strong>Your new key “${name}”.</strong> Copy it now: it is shown only this once.</p>
<code class="value" data-key>${value}</code>
<p class="quiet">A click selects all of it.</p>
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
  if (key.isPublic) return html`<span class="quiet">built in</span>`;
  return html`<details>
<summary>Revoke</summary>
<form method="post" action="/dashboard/keys/${encodeURIComponent(key.id)}/revoke">
${hidden}
<p>Programs that use “${key.name}” will be refused from now on. This cannot be undone.</p>
<button class="danger">Revoke this key</button>
</form>
</details>`;
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** The newest tasks with what came of them, or `empty`. `older` is the address of the page with those before. */
function tasksPanel({ tasks }: TaskPage, older: string | null, empty: Piece, now: number): Piece {
  const cards = tasks.map((task) => taskCard(task, now));
  return html`<section class="panel" aria-labelledby="tasks">
<div class="head"><h2 id="tasks">Recent tasks</h2></div>
${tasks.length > 0 ? html`<ul class="tasks">${cards}</ul>` : empty}
${older === null ? "" : html`<p class="more"><a href="${older}">Older tasks</a></p>`}
</section>`;
}

/** What stands where the tasks will be. */
function firstCommand(origin: string, key: string | null): Piece {
  const body = JSON.stringify({ model: "aurora-image-mini", prompt: "A lighthouse at dawn" });
  const command = `curl ${origin}${endpoints.generate.path} \\
  -H "Authorization: Bearer ${key ?? "YOUR_API_KEY"}" \\
  -H "Content-Type: application/json" \\
  -d '${body}'`;
  return html`<div class="empty">
<p>No tasks yet. Paste this into a terminal, then reload the page:</p>
<pre class="command">${command}</pre>
<p class="quiet">More in the <a href="/docs">API reference</a>.</p>
</div>`;
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
