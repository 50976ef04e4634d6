/** The gallery's style: a light table in the colours of the reader's own scheme. Pictures are shown whole. */
export const galleryStyle = `
:root {
  color-scheme: light dark;
  --ground: #f2f2f0; --bar: #fafaf9; --sheet: #fff; --frame: #e7e7e3; --line: #d9d9d4; --ink: #1b1c1e; --quiet: #5d6066;
  --accent: #2f5bd0; --on-accent: #fff; --pick: #1c7a43; --reject: #b3261e; --redo: #8a5a00; --wave: #a9adb5;
  --shade: 0 1px 2px rgb(0 0 0 / .06), 0 4px 14px rgb(0 0 0 / .05); --stage: #e4e4e0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #141516; --bar: #1a1b1d; --sheet: #202123; --frame: #0e0f10; --line: #34363a; --ink: #ececea; --quiet: #a2a6ad;
    --accent: #8fb0ff; --on-accent: #0d1a36; --pick: #6fd197; --reject: #ff8a80; --redo: #f2bb5c; --wave: #595d64;
    --shade: 0 1px 2px rgb(0 0 0 / .5); --stage: #0a0b0c;
  }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 14px/1.45 system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif; -webkit-text-size-adjust: 100%; }
h1, h2, h3, p, ul, dl, dd { margin: 0; padding: 0; }
button, input, select { font: inherit; color: inherit; }
button { cursor: pointer; background: none; border: 0; padding: 0; text-align: inherit; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 6px; }
.icon { width: 16px; height: 16px; display: block; flex: none; fill: none; stroke: currentColor; stroke-width: 1.9; stroke-linecap: round; stroke-linejoin: round; }
.quiet { color: var(--quiet); }
.note, .nothing { padding: 64px 24px; text-align: center; color: var(--quiet); }
.offscreen { position: fixed; top: 0; left: -999px; opacity: 0; }

/* The bar above the cards. */
.head { position: sticky; top: 0; z-index: 5; background: var(--bar); border-bottom: 1px solid var(--line); padding: 14px 24px 12px; }
.title-line { display: flex; align-items: center; gap: 20px; }
.title { min-width: 0; flex: 1; }
h1 { font-size: 19px; line-height: 1.25; font-weight: 650; letter-spacing: -.01em; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; unicode-bidi: isolate; }
.title p { font-size: 13px; font-variant-numeric: tabular-nums; }
.controls { display: flex; align-items: center; gap: 12px; }
.ways { display: flex; flex: none; border: 1px solid var(--line); border-radius: 8px; background: var(--sheet); overflow: hidden; }
.ways:empty { display: none; }
.way { display: flex; align-items: center; gap: 6px; padding: 5px 11px; color: var(--quiet); }
.way + .way { border-left: 1px solid var(--line); }
.way[aria-pressed="true"] { background: var(--frame); color: var(--ink); font-weight: 600; }
.way:focus-visible { outline-offset: -2px; }
input[type="range"] { accent-color: var(--accent); }
.size { width: 92px; }
.review-button { padding: 6px 14px; border-radius: 8px; border: 1px solid var(--line); background: var(--sheet); white-space: nowrap; }
.review-button.filled { background: var(--accent); border-color: var(--accent); color: var(--on-accent); font-weight: 600; }
.help-button { flex: none; width: 30px; height: 30px; border: 1px solid var(--line); border-radius: 50%; text-align: center; color: var(--quiet); background: var(--sheet); }
.filters { display: flex; flex-wrap: wrap; align-items: center; gap: 10px 14px; margin-top: 12px; }
.search { position: relative; flex: 0 1 250px; min-width: 170px; }
.search .icon { position: absolute; left: 9px; top: 8px; color: var(--quiet); }
.search input { width: 100%; height: 32px; border: 1px solid var(--line); border-radius: 8px; background: var(--sheet); padding: 0 8px 0 31px; }
.search input::placeholder { color: var(--quiet); opacity: 1; }
.chips { display: flex; gap: 6px; }
.chip { display: flex; align-items: center; gap: 6px; height: 32px; padding: 0 11px; border-radius: 16px; border: 1px solid var(--line); background: var(--sheet); white-space: nowrap; }
.chip > span { line-height: 30px; }
.chip .number { color: var(--quiet); font-variant-numeric: tabular-nums; font-size: 13px; }
.chip[aria-pressed="true"] { background: var(--ink); border-color: var(--ink); color: var(--ground); }
.chip[aria-pressed="true"] .number { color: inherit; opacity: .8; }
.facets { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 14px; }
.facet { display: flex; align-items: center; gap: 6px; }
.facet > span { color: var(--quiet); font-size: 13px; max-width: 16ch; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
select { height: 32px; max-width: 190px; border: 1px solid var(--line); border-radius: 8px; background: var(--sheet); padding: 0 6px; }
select.set { border-color: var(--accent); box-shadow: inset 0 0 0 1px var(--accent); }
.plain { color: var(--accent); padding: 5px 4px; white-space: nowrap; }
.plain:hover { text-decoration: underline; }
.help-button:hover { text-decoration: none; color: var(--ink); }
.found { color: var(--quiet); font-size: 13px; font-variant-numeric: tabular-nums; }

/* The cards. */
main { padding: 18px 24px 64px; }
.grid { position: relative; list-style: none; overflow-anchor: none; }
.card { position: absolute; top: 0; left: 0; display: flex; flex-direction: column; contain: layout style; }
.preview { position: relative; display: flex; align-items: center; justify-content: center; flex: 1; min-height: 0; width: 100%; background: var(--frame); border-radius: 8px; overflow: hidden; padding: 8px; transition: background-color .12s; }
.preview img, .preview video { max-width: 100%; max-height: 100%; width: auto; height: auto; min-width: 0; object-fit: contain; display: block; border-radius: 3px; }
.preview video { width: 100%; height: 100%; }
.preview:focus-visible { outline-width: 3px; outline-offset: 1px; border-radius: 8px; }
.card.pick .preview { box-shadow: inset 0 0 0 2px var(--pick); }
.card.redo .preview { box-shadow: inset 0 0 0 2px var(--redo); }
.card.marked .preview { box-shadow: inset 0 0 0 2px var(--accent); }
.card.reject .preview > * { opacity: .32; filter: grayscale(.8); }
.caption { height: 50px; padding: 6px 2px 0; overflow: hidden; }
.name, .caption .prompt { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; unicode-bidi: isolate; }
.name { font-weight: 600; font-size: 13px; }
.caption .prompt { color: var(--quiet); font-size: 12.5px; }
.marks { display: flex; flex-wrap: wrap; gap: 4px; }
.card .marks { position: absolute; top: 8px; left: 8px; right: 8px; pointer-events: none; }
.mark { display: inline-flex; align-items: center; gap: 4px; height: 21px; padding: 0 8px; border-radius: 11px; font-size: 11.5px; font-weight: 600; background: var(--sheet); color: var(--ink); box-shadow: 0 0 0 1px var(--line); }
.mark .icon { width: 12px; height: 12px; stroke-width: 2.6; margin-left: -2px; }
.mark.pick, .mark.approved { color: var(--pick); }
.mark.reject, .mark.failed { color: var(--reject); }
.mark.redo, .mark.held, .mark.waiting { color: var(--redo); }
.mark.compared { background: var(--accent); color: var(--on-accent); box-shadow: none; }
.tools { position: absolute; right: 8px; bottom: 58px; display: flex; border-radius: 8px; background: var(--sheet); box-shadow: var(--shade), 0 0 0 1px var(--line); opacity: 0; transition: opacity .12s; }
.card:hover .tools, .card:focus-within .tools { opacity: 1; }
.tool { display: inline-flex; align-items: center; justify-content: center; width: 30px; height: 30px; border-radius: 7px; color: var(--quiet); flex: none; }
.tool:hover { color: var(--ink); background: var(--frame); }
.tool:disabled { opacity: .3; cursor: default; }
.tool[aria-pressed="true"].pick { color: var(--on-accent); background: var(--pick); }
.tool[aria-pressed="true"].reject { color: var(--on-accent); background: var(--reject); }
.tool[aria-pressed="true"].redo { color: var(--on-accent); background: var(--redo); }
.tool[aria-pressed="true"] { color: var(--accent); }
.kind { position: absolute; right: 10px; top: 10px; width: 24px; height: 24px; border-radius: 50%; display: grid; place-items: center; background: rgb(0 0 0 / .55); color: #fff; pointer-events: none; }
.kind .icon { width: 12px; height: 12px; fill: currentColor; }
.preview.playing .kind { opacity: 0; }
.scrub { position: absolute; left: 0; right: 0; bottom: 0; height: 3px; background: var(--accent); transform-origin: left; transform: scaleX(var(--at, 0)); opacity: 0; }
.preview.playing .scrub { opacity: 1; }
.tool.sound { position: absolute; left: 8px; bottom: 58px; background: var(--sheet); box-shadow: 0 0 0 1px var(--line); border-radius: 50%; }
.wave { position: relative; display: block; width: 100%; height: 48%; max-height: 120px; }
.wave svg { position: absolute; inset: 0; width: 100%; height: 100%; stroke: var(--wave); stroke-width: 1.1; stroke-linecap: round; }
.wave .played { stroke: var(--accent); clip-path: inset(0 calc(100% - var(--at, 0) * 100%) 0 0); }
.no-file { display: flex; flex-direction: column; align-items: center; gap: 8px; text-align: center; font-size: 12.5px; color: var(--quiet); padding: 20px 6px 6px; overflow: hidden; max-height: 100%; overflow-wrap: anywhere; }
.no-file .icon { width: 22px; height: 22px; color: var(--reject); }
.no-file.held .icon { color: var(--redo); }
.extension { font-size: 22px; color: var(--quiet); text-transform: uppercase; }

/* The X/Y sheet. */
.axes-choice { display: flex; gap: 16px; align-items: center; margin-bottom: 12px; flex-wrap: wrap; }
.axes-table { overflow: auto; max-height: calc(100vh - 190px); border: 1px solid var(--line); border-radius: 10px; background: var(--sheet); }
.axes-table:has(.nothing) { border: 0; background: none; }
table { border-collapse: separate; border-spacing: 0; min-width: 100%; }
th, td { border-right: 1px solid var(--line); border-bottom: 1px solid var(--line); padding: 8px; vertical-align: top; }
th { background: var(--bar); font-weight: 600; font-size: 13px; text-align: left; position: sticky; }
thead th { top: 0; z-index: 2; }
tbody th { left: 0; z-index: 1; width: 150px; min-width: 120px; max-width: 190px; overflow-wrap: anywhere; }
th span { unicode-bidi: isolate; }
.corner { position: sticky; left: 0; top: 0; z-index: 3; background: var(--bar); color: var(--quiet); font-size: 12px; }
.cell { display: grid; grid-template-columns: repeat(auto-fill, minmax(104px, 1fr)); gap: 6px; min-width: 160px; }
.cell.of-1 { grid-template-columns: minmax(0, 1fr); }
.small { position: relative; display: flex; align-items: center; justify-content: center; width: 100%; height: 104px; border-radius: 6px; background: var(--frame); overflow: hidden; padding: 4px; }
.cell.of-1 .small { height: 180px; }
.small img, .small video { max-width: 100%; max-height: 100%; object-fit: contain; width: auto; height: auto; display: block; border-radius: 3px; }
.small.pick { box-shadow: inset 0 0 0 2px var(--pick); }
.small.redo { box-shadow: inset 0 0 0 2px var(--redo); }
.small.reject > * { opacity: .32; }
.more { color: var(--accent); text-align: center; border-radius: 6px; border: 1px dashed var(--line); min-height: 44px; }

/* Dialogs. */
dialog { border: 0; padding: 0; color: var(--ink); background: var(--sheet); }
dialog::backdrop { background: rgb(0 0 0 / .5); }
dialog:focus-visible { outline: none; }
dialog.large, dialog.compare { width: 100%; height: 100vh; height: 100dvh; max-width: none; max-height: none; overflow: hidden; }
dialog.large[open] { display: grid; grid-template-columns: minmax(0, 1fr) 348px; grid-template-rows: minmax(0, 1fr); }
.stage { position: relative; min-height: 0; background: var(--stage); display: flex; align-items: center; justify-content: center; overflow: hidden; }
.stage > video { width: 100%; height: 100%; object-fit: contain; padding: 28px; }
.picture { width: 100%; height: 100%; display: flex; align-items: center; justify-content: center; padding: 28px; cursor: zoom-in; overflow: hidden; }
.picture img { max-width: 100%; max-height: 100%; object-fit: contain; display: block; }
.picture.full { overflow: auto; cursor: zoom-out; padding: 0; display: grid; place-items: center; }
.picture.full img { max-width: none; max-height: none; }
.picture:focus-visible { outline-offset: -3px; }
.turn { position: absolute; top: calc(50% - 22px); width: 44px; height: 44px; border-radius: 50%; background: var(--sheet); box-shadow: var(--shade); opacity: .85; }
.turn .icon { width: 20px; height: 20px; }
.turn.back { left: 14px; } .turn.on { right: 14px; }
.turn:disabled { opacity: 0; }
.stage .no-file { font-size: 15px; max-width: 56ch; padding: 24px; }
.sound-stage { width: min(86%, 760px); display: flex; flex-direction: column; gap: 22px; }
.sound-stage .wave { height: 130px; max-height: none; cursor: pointer; }
.sound-stage .wave.flat { height: 24px; }
.sound-stage audio { width: 100%; }
.bare { text-decoration: none; }
.details { overflow-y: auto; padding: 14px 20px 28px; border-left: 1px solid var(--line); display: flex; flex-direction: column; gap: 16px; }
.details-head { display: flex; align-items: center; justify-content: space-between; font-variant-numeric: tabular-nums; margin-bottom: -8px; }
.titled { display: flex; align-items: center; justify-content: space-between; gap: 8px; min-height: 30px; }
.details h2 { font-size: 17px; line-height: 1.3; overflow-wrap: anywhere; unicode-bidi: isolate; max-height: 7.8em; overflow-y: auto; }
h3 { font-size: 12px; font-weight: 600; color: var(--quiet); }
.details .marks:empty { display: none; }
.choices { display: flex; gap: 8px; }
.choices .tool { flex: 1; gap: 7px; width: auto; height: 38px; color: var(--ink); border: 1px solid var(--line); border-radius: 8px; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
.prompt-text { max-height: 34vh; overflow-y: auto; }
.text + .text { margin-top: 8px; }
.pair { display: grid; grid-template-columns: minmax(70px, 38%) minmax(0, 1fr); gap: 10px; padding: 3px 0; }
.pair dt { color: var(--quiet); overflow-wrap: anywhere; }
.pair dd { overflow-wrap: anywhere; unicode-bidi: isolate; max-height: 9em; overflow-y: auto; }
.pair.copied { cursor: copy; border-radius: 5px; margin: 0 -6px; padding: 3px 6px; }
.pair.copied:hover { background: var(--frame); }
.file-link { display: flex; gap: 8px; color: var(--accent); text-decoration: none; overflow-wrap: anywhere; }
.file-link span { unicode-bidi: isolate; min-width: 0; }
.file-link:hover span { text-decoration: underline; }
.file-link .icon { margin-top: 2px; }
.takes { display: grid; grid-template-columns: repeat(auto-fill, minmax(84px, 1fr)); gap: 8px; }
.take { height: 84px; border-radius: 6px; background: var(--frame); display: flex; align-items: center; justify-content: center; overflow: hidden; padding: 4px; }
.take:hover { box-shadow: inset 0 0 0 2px var(--accent); }
.take img, .take video { max-width: 100%; max-height: 100%; object-fit: contain; width: auto; height: auto; display: block; }
.command { display: flex; align-items: center; gap: 6px; background: var(--frame); border-radius: 8px; padding: 3px 4px 3px 11px; margin-top: 6px; }
code { font: 12.5px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; flex: 1; min-width: 0; overflow-wrap: anywhere; white-space: pre-wrap; }
dialog.compare[open] { display: grid; grid-template-rows: auto minmax(0, 1fr) auto; }
.compare-head { display: grid; grid-template-columns: minmax(0, 1fr) auto minmax(0, 1fr) auto; align-items: center; gap: 14px; padding: 9px 14px 9px 20px; border-bottom: 1px solid var(--line); }
.side { display: flex; align-items: center; gap: 9px; min-width: 0; }
.side-name { font-weight: 600; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; unicode-bidi: isolate; }
.side-tools { display: flex; }
.pair-stage { position: relative; min-height: 0; background: var(--stage); }
.pair-stage.beside { display: grid; grid-template-columns: 1fr 1fr; grid-template-rows: minmax(0, 1fr); gap: 2px; }
.half { min-width: 0; min-height: 0; display: flex; align-items: center; justify-content: center; padding: 18px; overflow: hidden; }
.half img, .half video { width: 100%; height: 100%; object-fit: contain; display: block; }
.pair-stage.over .half { position: absolute; inset: 0; }
.pair-stage.over .half:first-child { z-index: 1; clip-path: inset(0 calc(100% - var(--split, 50%)) 0 0); background: var(--stage); }
.pair-stage.over::after { content: ""; position: absolute; z-index: 2; top: 0; bottom: 0; left: var(--split, 50%); width: 2px; margin-left: -1px; background: #fff; box-shadow: 0 0 0 1px rgb(0 0 0 / .35); pointer-events: none; }
.divider { position: absolute; z-index: 3; inset: 0; width: 100%; height: 100%; margin: 0; appearance: none; background: none; cursor: ew-resize; }
.divider::-webkit-slider-thumb { appearance: none; width: 38px; height: 38px; border-radius: 50%; background: #fff; box-shadow: 0 0 0 1px rgb(0 0 0 / .25), 0 2px 8px rgb(0 0 0 / .35); }
.divider::-moz-range-thumb { width: 38px; height: 38px; border: 0; border-radius: 50%; background: #fff; }
.divider:focus-visible { outline-offset: -4px; }
.together { display: flex; align-items: center; gap: 12px; padding: 8px 20px; border-top: 1px solid var(--line); }
.together input { flex: 1; }
dialog.sheet { width: min(640px, calc(100vw - 24px)); max-height: calc(100vh - 40px); border-radius: 14px; padding: 18px 24px 24px; box-shadow: 0 20px 60px rgb(0 0 0 / .35); }
.sheet-head { display: flex; align-items: center; justify-content: space-between; margin-bottom: 12px; }
.sheet-head h2 { font-size: 18px; }
.sheet .close { margin-right: -8px; }
.keys { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 9px 18px; align-items: baseline; }
.keys dt { display: flex; gap: 4px; }
kbd { font: inherit; font-size: 12.5px; min-width: 24px; text-align: center; padding: 1px 7px; border-radius: 5px; border: 1px solid var(--line); border-bottom-width: 2px; background: var(--bar); }
.groups { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 7px 16px; margin-bottom: 14px; }
.groups dt { font-weight: 600; white-space: nowrap; }
.groups dd { display: flex; flex-wrap: wrap; gap: 2px 12px; overflow-wrap: anywhere; }
.commands { margin: 14px 0 18px; display: grid; gap: 11px; }
.why { font-size: 13px; }
.buttons { display: flex; align-items: center; gap: 14px; flex-wrap: wrap; }
.main { background: var(--accent); color: var(--on-accent); border-radius: 8px; padding: 9px 18px; font-weight: 600; }
.toasts { position: fixed; z-index: 20; left: 0; right: 0; bottom: 28px; display: flex; justify-content: center; pointer-events: none; }
.toast { background: var(--ink); color: var(--ground); border-radius: 20px; padding: 8px 18px; max-width: 90vw; animation: toast 2.6s forwards; }
@keyframes toast { 0% { opacity: 0; transform: translateY(8px); } 8%, 85% { opacity: 1; transform: none; } 100% { opacity: 0; } }

@media (hover: none) {
  .tools { position: static; order: 1; opacity: 1; background: none; box-shadow: none; justify-content: space-between; height: 36px; }
  .tools .tool { width: 36px; height: 36px; }
  .tool.sound { bottom: auto; top: 8px; left: auto; right: 8px; }
  .help-button { display: none; }
}
@media (max-width: 900px) {
  dialog.large[open] { grid-template-columns: minmax(0, 1fr); grid-template-rows: minmax(0, 56%) minmax(0, 1fr); }
  .details { border-left: 0; border-top: 1px solid var(--line); }
  .prompt-text { max-height: none; }
  .stage > video, .picture { padding: 0; }
}
@media (max-width: 640px) {
  .head { position: static; padding: 10px 14px 9px; }
  .title-line { flex-wrap: wrap; gap: 8px 12px; }
  .controls { width: 100%; gap: 10px; }
  .review-button { margin-left: auto; }
  .size { flex: 0 1 80px; min-width: 0; }
  .filters { gap: 8px; margin-top: 9px; }
  .search { flex: 1 1 100%; }
  .chips, .facets { flex-wrap: nowrap; overflow-x: auto; width: 100%; scrollbar-width: none; }
  .chip { flex: none; } .facet, .found { flex: none; }
  .search input, select { font-size: 16px; }
  main { padding: 12px 14px 48px; }
  .way { padding: 5px 9px; }
  .pair-stage.beside { grid-template-columns: 1fr; grid-template-rows: repeat(2, minmax(0, 1fr)); }
  .half { padding: 6px; }
  .compare-head { grid-template-columns: minmax(0, 1fr) auto; padding: 8px 10px; gap: 4px 8px; }
  .compare-head .side:first-child { grid-area: 1 / 1; } .compare-head .close { grid-area: 1 / 2; justify-self: end; }
  .compare-head .side:nth-child(3) { grid-area: 2 / 1 / auto / span 2; } .compare-head .ways { grid-area: 3 / 1 / auto / span 2; justify-self: center; }
  tbody th { min-width: 84px; width: 84px; }
  dialog.sheet { padding: 14px 16px 18px; }
}
@media (prefers-reduced-motion: reduce) { * { transition: none !important; } @keyframes toast { 0%, 85% { opacity: 1; } 100% { opacity: 0; } } }
@media print { .head { position: static; } .tools, .controls, .filters { display: none; } }
`;
