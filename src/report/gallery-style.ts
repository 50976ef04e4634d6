/** The contact sheet's style: a grid of cards in the colours of the reader's own scheme. Pictures are shown whole. */
export const galleryStyle = `
:root { color-scheme: light dark; --ground: #f4f4f1; --sheet: #fff; --frame: #eaeae5; --line: #e2e1db; --ink: #1d1f23; --quiet: #64676e; --accent: #3f51c0; }
@media (prefers-color-scheme: dark) { :root { --ground: #131417; --sheet: #1c1e22; --frame: #0d0e10; --line: #2d3036; --ink: #ececea; --quiet: #9da1a9; --accent: #9aa8ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 14px/1.5 system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
header, main { max-width: 1440px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 32px; padding-bottom: 20px; }
h1, h2, p, ul { margin: 0; padding: 0; }
h1 { font-size: 26px; line-height: 1.2; letter-spacing: -.02em; overflow-wrap: anywhere; }
header p { color: var(--quiet); margin-top: 6px; }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 280px), 1fr)); gap: 20px; padding-bottom: 56px; align-items: start; }
article { background: var(--sheet); border: 1px solid var(--line); border-radius: 12px; overflow: hidden; content-visibility: auto; contain-intrinsic-size: auto 420px; }
.preview { display: flex; align-items: center; justify-content: center; background: var(--frame); height: 260px; }
.preview img, .preview video { width: 100%; height: 100%; object-fit: contain; display: block; }
.preview.sound { height: 110px; padding: 0 14px; }
.preview audio { width: 100%; }
.preview.bare { color: var(--quiet); font-size: 24px; text-decoration: none; text-transform: uppercase; }
.facts { padding: 14px 16px 14px; display: grid; gap: 9px; }
h2 { font-size: 14px; font-weight: 600; overflow-wrap: anywhere; }
h2 a { color: inherit; text-decoration: none; }
h2 a:hover { color: var(--accent); text-decoration: underline; }
.prompt { white-space: pre-line; overflow-wrap: anywhere; max-height: 9em; overflow-y: auto; }
ul { list-style: none; display: flex; flex-wrap: wrap; gap: 5px; }
li { border: 1px solid var(--line); border-radius: 6px; padding: 0 7px; font-size: 12px; overflow-wrap: anywhere; }
li span, .row, .empty { color: var(--quiet); }
.row { display: flex; justify-content: space-between; gap: 12px; font-size: 12px; overflow-wrap: anywhere; }
.row span:last-child { white-space: nowrap; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; border-radius: 4px; }
@media print { body { background: #fff; } article { break-inside: avoid; } }
`;
