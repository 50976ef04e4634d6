/** The style sheet of the reference: contents at the side where there is room, above the text otherwise. */
export const style = `
:root { color-scheme: light dark; --ground: #f5f5f2; --sheet: #fff; --line: #e4e3dd; --ink: #1d1f23; --quiet: #63666d; --accent: #4456c7; --code: #f0f0ec; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #121316; --sheet: #1b1d21; --line: #2c2f35; --ink: #ececea; --quiet: #9da1a9; --accent: #9aa8ff; --code: #15171a; }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 16px; }
body { margin: 0 auto; max-width: 1180px; display: grid; grid-template-columns: 220px minmax(0, 1fr); background: var(--ground); color: var(--ink); font: 15px/1.55 system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif; -webkit-text-size-adjust: 100%; }
nav { position: sticky; top: 0; align-self: start; max-height: 100vh; overflow-y: auto; padding: 40px 0 24px 24px; font-size: 14px; }
nav ul { list-style: none; margin: 0; padding: 0; display: grid; gap: 7px; }
main { padding: 32px 24px 96px; min-width: 0; }
h1 { font-size: 28px; line-height: 1.2; letter-spacing: -.02em; margin: 0 0 10px; }
h2 { font-size: 20px; letter-spacing: -.01em; margin: 48px 0 10px; overflow-wrap: anywhere; }
h2 code { font-size: 17px; }
h3 { font-size: 14px; margin: 22px 0 8px; color: var(--quiet); font-weight: 600; }
p { margin: 0 0 12px; max-width: 72ch; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
code, pre { font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; }
p code { overflow-wrap: anywhere; }
pre { background: var(--code); border: 1px solid var(--line); border-radius: 8px; padding: 12px 14px; overflow-x: auto; margin: 0 0 14px; }
table { border-collapse: separate; border-spacing: 0; width: 100%; background: var(--sheet); border: 1px solid var(--line); border-radius: 8px; margin: 0 0 14px; }
th, td { text-align: left; vertical-align: top; padding: 7px 14px; border-top: 1px solid var(--line); }
thead th { border-top: 0; font-size: 12px; font-weight: 600; color: var(--quiet); white-space: nowrap; }
td:first-child { white-space: nowrap; width: 24%; }
td:target, tr:has(:target) { background: var(--code); }
.plain { list-style: none; margin: 0; padding: 0; }
.method { color: var(--accent); font-weight: 650; }
.lead { font-size: 16px; }
.quiet { color: var(--quiet); }
summary { cursor: pointer; color: var(--quiet); font-size: 14px; margin: 0 0 8px; }

@media (max-width: 860px) {
  body { display: block; }
  nav { position: static; max-height: none; padding: 20px 16px 0; }
  nav ul { display: flex; flex-wrap: wrap; gap: 6px 16px; }
  main { padding: 24px 16px 72px; }
}
@media (max-width: 640px) {
  thead { display: none; }
  table, tbody, tr, td { display: block; }
  tr { padding: 10px 12px; border-top: 1px solid var(--line); }
  tbody tr:first-child { border-top: 0; }
  td, td:first-child { width: auto; border: 0; padding: 1px 0; white-space: normal; overflow-wrap: anywhere; }
  td[data-label] { display: grid; grid-template-columns: 84px minmax(0, 1fr); gap: 10px; }
  td[data-label]::before { content: attr(data-label); color: var(--quiet); font-size: 13px; }
  td:first-child code { font-weight: 650; }
}
`;
