import { createHash } from "node:crypto";
import { html, raw } from "hono/html";
import { localTime } from "../core/local-time.js";
import { type Credits, inCredits, plus } from "../core/money.js";
import type { GalleryFailure, GalleryFile, GalleryPage } from "../job/archive/gallery.js";
import { count, fileSize } from "../text/amounts.js";

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
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 280px), 1fr)); gap: 20px; padding-bottom: 56px; }
article { position: relative; display: flex; flex-direction: column; background: var(--sheet); border: 1px solid var(--line); border-radius: 12px; overflow: hidden; content-visibility: auto; contain-intrinsic-size: auto 420px; }
.preview { display: flex; align-items: center; justify-content: center; background: var(--frame); height: 260px; }
.preview img, .preview video { width: 100%; height: 100%; object-fit: contain; display: block; }
.preview.sound { padding: 0 14px; }
.preview audio { width: 100%; }
.preview.bare { color: var(--quiet); font-size: 24px; text-decoration: none; text-transform: uppercase; }
article.picked { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent); }
.mark { position: absolute; top: 10px; left: 10px; background: var(--accent); color: var(--sheet); border-radius: 6px; padding: 1px 9px; font-size: 12px; font-weight: 600; }
.facts { padding: 14px 16px 14px; display: flex; flex-direction: column; flex: 1; gap: 9px; }
h2 { font-size: 14px; font-weight: 600; overflow-wrap: anywhere; }
h2 a { color: inherit; text-decoration: none; }
h2 a:hover { color: var(--accent); text-decoration: underline; }
.prompt { white-space: pre-line; overflow-wrap: anywhere; max-height: 9em; overflow-y: auto; }
ul { list-style: none; display: flex; flex-wrap: wrap; gap: 5px; }
li { border: 1px solid var(--line); border-radius: 6px; padding: 0 7px; font-size: 12px; overflow-wrap: anywhere; }
li span, .row, .empty { color: var(--quiet); }
.row { margin-top: auto; display: flex; justify-content: space-between; gap: 12px; font-size: 12px; overflow-wrap: anywhere; }
.row span:last-child { white-space: nowrap; }
.failed { max-width: 1440px; margin: 0 auto; padding: 0 24px 56px; }
.failed h2 { font-size: 16px; padding-bottom: 10px; }
.failed ol { list-style: none; margin: 0; padding: 0; border-top: 1px solid var(--line); }
.failed ol > li { border: 0; border-bottom: 1px solid var(--line); border-radius: 0; padding: 10px 0; font-size: 14px; display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 3fr) minmax(0, 3fr); gap: 4px 20px; }
.failed li > :nth-child(2) { color: var(--ink); }
@media (max-width: 700px) { .failed ol > li { grid-template-columns: minmax(0, 1fr); } .preview.sound { height: 110px; } }
:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; border-radius: 4px; }
@media print { body { background: #fff; } article { break-inside: avoid; } }
`;
type Piece = ReturnType<typeof html>;

const styleHash = createHash("sha256").update(galleryStyle).digest("base64");

/** On a disk, `'self'` alone does not allow the page's own pictures. */
const policy = [
  "default-src 'none'",
  "img-src 'self' file:",
  "media-src 'self' file:",
  `style-src 'sha256-${styleHash}'`,
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

export function galleryPage({ job, madeAt, files, failed }: GalleryPage): string {
  const credits = files.reduce((sum, file) => plus(sum, file.credits ?? (0 as Credits)), 0 as Credits);
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const picked = files.filter(({ isPicked }) => isPicked).length;
  const facts = [
    count(files.length, "file"),
    ...(picked === 0 ? [] : [`${picked} picked`]),
    ...(failed.length === 0 ? [] : [`${failed.length} failed`]),
    fileSize(bytes),
    ...(files.some((file) => file.credits !== null) ? [inCredits(credits)] : []),
  ];
  return String(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${job}</title>
<style>${raw(galleryStyle)}</style>
</head>
<body>
<header>
<h1 dir="auto">${job}</h1>
<p>${facts.join(" · ")} · ${localTime(madeAt)}</p>
</header>
<main>${files.length === 0 ? html`<p class="empty">Nothing is archived yet.</p>` : files.map(card)}</main>
${failed.length === 0 ? "" : failures(failed)}
</body>
</html>
`);
}

function failures(failed: readonly GalleryFailure[]): Piece {
  const row = ({ rowNumber, rowId, prompt, reason }: GalleryFailure) =>
    html`<li><span dir="auto">row ${rowNumber} · ${rowId}</span><span dir="auto">${prompt ?? ""}</span><span dir="auto">${reason}</span></li>`;
  return html`<section class="failed">
<h2>${count(failed.length, "row")} failed</h2>
<ol>${failed.map(row)}</ol>
</section>`;
}

function card(file: GalleryFile): Piece {
  const params = Object.entries(file.params);
  return html`
<article${file.isPicked ? raw(' class="picked"') : ""}>
${preview(file)}${file.isPicked ? html`<span class="mark">✓ picked</span>` : ""}
<div class="facts">
<h2><a href="${address(file.file)}" dir="auto">${file.file}</a></h2>
${file.prompt === null ? "" : html`<p class="prompt" dir="auto">${file.prompt}</p>`}
<ul>
<li>${file.model}</li>
${marksOf(file).map((mark) => html`<li><strong>${mark}</strong></li>`)}
${params.map(([key, value]) => html`<li><span>${key}</span> ${value}</li>`)}
</ul>
<p class="row"><span dir="auto">row ${file.rowNumber} · ${file.rowId}</span><span>${file.credits === null ? "" : inCredits(file.credits)}</span></p>
</div>
</article>`;
}

/** What tells a file from the others of its row. */
function marksOf({ edition, variant, isEarlier }: GalleryFile): string[] {
  return [
    ...(edition === "" ? [] : [`edition ${edition.replace(/^#/, "")}`]),
    ...(variant === 1 ? [] : [`variant ${variant}`]),
    ...(isEarlier ? ["earlier version"] : []),
  ];
}

/** Video and sound play in the page; a browser takes a clip's poster from the clip itself. */
function preview({ file, thumbnail, mime, rowId }: GalleryFile): Piece {
  const source = address(file);
  if (mime.startsWith("video/"))
    return html`<div class="preview"><video controls preload="metadata" src="${source}#t=0.1" aria-label="${rowId}"></video></div>`;
  if (mime.startsWith("audio/"))
    return html`<div class="preview sound"><audio controls preload="metadata" src="${source}" aria-label="${rowId}"></audio></div>`;
  if (thumbnail === null)
    return html`<a class="preview bare" href="${source}">${file.split(".").at(-1) ?? ""}</a>`;
  const { width, height } = thumbnail;
  return html`<a class="preview" href="${source}"><img loading="lazy" src="${address(thumbnail.file)}" width="${width}" height="${height}" alt="${rowId}"></a>`;
}

/** A relative address: names may hold `#`, `?`, `%` and look like a scheme. */
function address(file: string): string {
  return `./${file.split("/").map(encodeURIComponent).join("/")}`;
}
