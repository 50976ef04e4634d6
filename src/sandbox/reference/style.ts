/** The style sheet of the reference. */
export const style = `
:root { color-scheme: light dark; --ground: #f5f5f2; --sheet: #fff; --line: #e4e3dd; --ink: #1d1f23; --quiet: #63666d; --accent: #4456c7; --code: #f0f0ec; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #121316; --sheet: #1b1d21; --line: #2c2f35; --ink: #ececea; --quiet: #9da1a9; --accent: #9aa8ff; --code: #15171a; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.55 system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
main { max-width: 900px; margin: 0 auto; padding: 32px 20px 80px; }
h1 { font-size: 26px; letter-spacing: -.02em; margin: 0 0 6px; }
h2 { font-size: 19px; letter-spacing: -.01em; margin: 44px 0 10px; padding-top: 8px; }
h3 { font-size: 14px; margin: 20px 0 6px; color: var(--quiet); font-weight: 600; }
p { margin: 0 0 12px; }
nav { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 14px 0 0; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
code, pre { font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; }
pre { background: var(--code); border: 1px solid var(--line); border-radius: 8px; padding: 12px 14px; overflow-x: auto; margin: 0 0 12px; }
.table { overflow-x: auto; background: var(--sheet); border: 1px solid var(--line); border-radius: 8px; margin: 0 0 12px; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 7px 14px; border-top: 1px solid var(--line); }
tr:first-child th { border-top: 0; }
th { font-size: 12px; font-weight: 600; color: var(--quiet); }
td:first-child { white-space: nowrap; }
.method { color: var(--accent); font-weight: 650; }
.quiet { color: var(--quiet); }
`;
