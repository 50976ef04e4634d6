import { html } from "hono/html";
import type { KeyListing, NewKey } from "../admin/keys.js";
import type { Piece } from "./document.js";
import { ago, amount, stamp } from "./wording.js";

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
