import { html } from "hono/html";
import type { KeyListing, NewKey } from "../admin/keys.js";
import type { AccountRecord } from "../state/state.js";
import { accountPanels } from "./account-panels.js";
import { document, type Piece } from "./document.js";
import { keysPanel } from "./keys-panel.js";
import type { TaskPage } from "./recent-tasks.js";
import { tasksPanel } from "./tasks-panel.js";

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
