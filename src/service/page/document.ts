import { html } from "hono/html";

/** A fragment of HTML. Inserted values are escaped unless they are fragments themselves. */
export type Piece = ReturnType<typeof html>;

/** A whole page around its content, which the browser loads again after `refreshSeconds`. */
export function document(title: string, content: Piece, refreshSeconds: number | null = null): Piece {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${refreshSeconds === null ? "" : html`<meta http-equiv="refresh" content="${refreshSeconds}">`}
<title>${title}</title>
<link rel="icon" href="/dashboard/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/dashboard/style.css">
</head>
<body>${content}</body>
</html>`;
}

/** A page that says why there is nothing else to see. */
export function notice(title: string, text: string): Piece {
  return document(title, html`<main class="notice"><h1>${title}</h1><p>${text}</p></main>`);
}

export const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="9" fill="#4456c7"/><g fill="#fff"><rect x="7" y="7" width="8" height="8" rx="2.4"/><rect x="17" y="7" width="8" height="8" rx="2.4" opacity=".55"/><rect x="7" y="17" width="8" height="8" rx="2.4" opacity=".55"/><rect x="17" y="17" width="8" height="8" rx="4"/></g></svg>`;

/** The dashboard's style sheet: one column that widens into cards, in the colours of the reader's own scheme. */
export const style = `
:root {
  color-scheme: light dark;
  --ground: #f5f5f2; --sheet: #ffffff; --sunken: #f0f0ec; --line: #e4e3dd;
  --ink: #1d1f23; --quiet: #63666d; --accent: #4456c7; --on-accent: #ffffff; --accent-soft: #eceefb;
  --good: #1f7a4d; --good-soft: #e3f3ea; --warn: #8f5a00; --warn-soft: #fbf0d9; --bad: #b3312c; --bad-soft: #fbe9e7;
  --shadow: 0 1px 2px rgb(20 20 30 / .05), 0 6px 20px -12px rgb(20 20 30 / .14);
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #121316; --sheet: #1b1d21; --sunken: #15171a; --line: #2c2f35;
    --ink: #ececea; --quiet: #9da1a9; --accent: #9aa8ff; --on-accent: #14162a; --accent-soft: #252a45;
    --good: #74d3a0; --good-soft: #17301f; --warn: #e8bd6a; --warn-soft: #33290f; --bad: #ff9c94; --bad-soft: #3a1e1c;
    --shadow: none;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif; -webkit-text-size-adjust: 100%; }
header, main, footer { max-width: 1040px; margin: 0 auto; padding: 0 20px; }
header { display: flex; flex-wrap: wrap; gap: 8px 24px; align-items: center; justify-content: space-between; padding-top: 22px; padding-bottom: 18px; }
footer { padding-top: 8px; padding-bottom: 40px; color: var(--quiet); font-size: 13px; }
h1, h2, p { margin: 0; }
h2 { font-size: 13px; font-weight: 600; color: var(--quiet); letter-spacing: .01em; }
a { color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 6px; }
.quiet { color: var(--quiet); font-size: 13px; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }

.brand { display: flex; align-items: center; gap: 10px; color: var(--ink); text-decoration: none; font-weight: 650; font-size: 17px; letter-spacing: -.01em; }
.brand span { color: var(--quiet); font-weight: 400; }
.who { color: var(--quiet); overflow-wrap: anywhere; }
nav.who { display: flex; max-width: 100%; overflow-x: auto; white-space: nowrap; gap: 4px; background: var(--sunken); border: 1px solid var(--line); border-radius: 10px; padding: 3px; }
nav.who a { padding: 4px 12px; border-radius: 7px; color: var(--quiet); text-decoration: none; font-size: 14px; }
nav.who a[aria-current] { background: var(--sheet); color: var(--ink); box-shadow: var(--shadow); }

.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 250px), 1fr)); gap: 16px; }
.card, .panel { background: var(--sheet); border: 1px solid var(--line); border-radius: 14px; box-shadow: var(--shadow); }
.card { padding: 18px 20px; display: flex; flex-direction: column; gap: 4px; }
.figure { font-size: 30px; line-height: 1.25; font-weight: 620; letter-spacing: -.02em; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.figure small { font-size: 15px; font-weight: 400; letter-spacing: 0; color: var(--quiet); }
.badge { display: inline-block; vertical-align: .15em; padding: 1px 9px; border-radius: 99px; background: var(--sunken); color: var(--quiet); font-size: 12px; font-weight: 500; letter-spacing: 0; white-space: nowrap; }
.figure .badge { vertical-align: .4em; margin-left: 4px; }
.badge.active { background: var(--good-soft); color: var(--good); }
.badge.canceled { background: var(--warn-soft); color: var(--warn); }
.badge.past_due { background: var(--bad-soft); color: var(--bad); }

.panel { margin: 16px 0; padding: 18px 20px 20px; }
.head { display: flex; flex-wrap: wrap; gap: 12px; align-items: center; justify-content: space-between; margin-bottom: 14px; }
.head h2 { font-size: 17px; font-weight: 620; color: var(--ink); letter-spacing: -.01em; }
.create { display: flex; flex-wrap: wrap; gap: 8px; }
input[name=name] { flex: 1 1 200px; min-width: 0; }
input, button { font: inherit; color: inherit; border-radius: 9px; border: 1px solid var(--line); padding: 7px 13px; min-height: 38px; }
input { background: var(--sunken); }
input::placeholder { color: var(--quiet); opacity: 1; }
button { cursor: pointer; font-weight: 550; background: var(--sheet); }
button.primary { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
button.danger { background: var(--bad-soft); border-color: transparent; color: var(--bad); }
button:hover { filter: brightness(1.06); }
.refused { margin-bottom: 14px; padding: 10px 14px; border-radius: 10px; background: var(--bad-soft); color: var(--bad); overflow-wrap: anywhere; }
.made { margin-bottom: 16px; padding: 14px 16px; border-radius: 12px; background: var(--accent-soft); overflow-wrap: anywhere; }
code, pre { font: 14px/1.5 ui-monospace, SFMono-Regular, Menlo, "DejaVu Sans Mono", monospace; }
.value { display: block; margin: 10px 0 4px; padding: 10px 12px; border-radius: 9px; background: var(--sheet); border: 1px solid var(--line); font-size: clamp(11px, 3.1vw, 15px); white-space: nowrap; overflow-x: auto; user-select: all; -webkit-user-select: all; }
.connect { margin: 0; grid-template-columns: max-content minmax(0, 1fr); gap: 6px 20px; font-size: 15px; }
.connect code { font-size: clamp(11px, 3.4vw, 14px); user-select: all; -webkit-user-select: all; overflow-wrap: anywhere; }
.command { margin: 10px 0; padding: 12px 14px; border-radius: 9px; background: var(--sunken); border: 1px solid var(--line); overflow-x: auto; user-select: all; -webkit-user-select: all; font-size: 13px; }
.activate { margin-top: 8px; }

table { width: 100%; border-collapse: collapse; }
th, td { text-align: left; font-weight: 400; padding: 11px 20px 11px 0; border-top: 1px solid var(--line); vertical-align: top; }
thead th { border-top: 0; padding-top: 4px; padding-bottom: 8px; font-size: 13px; color: var(--quiet); }
tbody th { font-weight: 550; overflow-wrap: anywhere; }
thead th, tbody td:not(.action), time { white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; padding-right: 24px; }
.action { text-align: right; padding-right: 0; }
.revoked > :is(th, td:not(.action)) { color: var(--quiet); }
.revoked > th { text-decoration: line-through; text-decoration-thickness: 1px; }
summary { display: inline-block; cursor: pointer; color: var(--quiet); font-size: 13px; list-style: none; border-radius: 6px; }
summary::-webkit-details-marker { display: none; }
summary:hover { color: var(--ink); text-decoration: underline; }
.action summary { color: var(--bad); font-size: 14px; }
.action details { position: relative; }
.action details form { position: absolute; z-index: 1; top: 100%; right: 0; width: 290px; margin-top: 6px; padding: 12px 14px; display: grid; gap: 10px; text-align: left; font-size: 13px; background: var(--sheet); border: 1px solid var(--line); border-radius: 10px; box-shadow: 0 8px 28px -8px rgb(0 0 0 / .35); overflow-wrap: anywhere; }

.tasks { list-style: none; margin: 0; padding: 0; display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 218px), 1fr)); gap: 16px; }
.task { display: flex; flex-direction: column; min-width: 0; border: 1px solid var(--line); border-radius: 12px; overflow: hidden; background: var(--sheet); }
.preview { display: grid; grid-auto-flow: column; grid-auto-columns: minmax(0, 1fr); grid-template-rows: minmax(0, 1fr); gap: 2px; height: 190px; background: var(--sunken); border-bottom: 1px solid var(--line); overflow: hidden; place-items: center; }
.preview a { display: block; width: 100%; height: 100%; }
.preview img { display: block; width: 100%; height: 100%; object-fit: contain; color: var(--quiet); font-size: 13px; }
.preview video { display: block; width: 100%; height: 100%; object-fit: contain; background: #0b0b0d; }
.preview audio { width: calc(100% - 24px); }
.preview.audio { grid-auto-flow: row; grid-template-rows: none; grid-auto-rows: auto; align-content: center; gap: 8px; }
.waiting, .failed { padding: 0 18px; text-align: center; font-size: 14px; color: var(--quiet); overflow-wrap: anywhere; }
.failed strong { display: block; color: var(--bad); font-weight: 550; }
.waiting::before { content: ""; display: block; width: 22px; height: 22px; margin: 0 auto 10px; border-radius: 50%; border: 2.5px solid var(--line); border-top-color: var(--accent); animation: turn 1.1s linear infinite; }
@keyframes turn { to { transform: rotate(1turn); } }
@media (prefers-reduced-motion: reduce) { .waiting::before { animation: none; } }
.about { padding: 12px 14px 14px; display: grid; gap: 4px; min-width: 0; }
.prompt { font-weight: 500; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; overflow-wrap: anywhere; }
.model { overflow-wrap: anywhere; }
dl { margin: 8px 0 0; display: grid; grid-template-columns: auto 1fr; gap: 2px 12px; font-size: 13px; }
dt { color: var(--quiet); overflow-wrap: anywhere; }
dd { margin: 0; overflow-wrap: anywhere; }
.empty { padding: 22px 20px; border: 1px dashed var(--line); border-radius: 12px; }
.more { margin-top: 18px; text-align: center; }
.notice { max-width: 460px; padding-top: 18vh; text-align: center; }
.notice h1 { font-size: 22px; letter-spacing: -.01em; margin-bottom: 6px; }
.notice p { color: var(--quiet); }

@media (max-width: 640px) {
  header, main, footer { padding-left: 14px; padding-right: 14px; }
  .panel, .card { padding-left: 16px; padding-right: 16px; }
  .create { width: 100%; }
  .create button { flex: 1 1 auto; }
  table, tbody, tr, tbody th, td { display: block; border: 0; padding: 0; }
  thead { display: none; }
  tr { border-top: 1px solid var(--line); padding: 12px 0; display: grid; gap: 2px; }
  tbody tr:last-child { padding-bottom: 0; }
  td[data-label] { display: flex; justify-content: space-between; gap: 12px; text-align: right; }
  td[data-label]::before { content: attr(data-label); color: var(--quiet); }
  .number { padding-right: 0; }
  .action { text-align: left; margin-top: 6px; }
  .action details form { position: static; width: auto; box-shadow: none; }
  .connect { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .connect dd { margin-bottom: 8px; }
}
`;
