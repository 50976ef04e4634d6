import { createHash } from "node:crypto";
import { html, raw } from "hono/html";
import { type Credits, inCredits, plus } from "../core/money.js";
import { count, fileSize } from "./amounts.js";
import { galleryStyle } from "./gallery-style.js";
import { minute } from "./status.js";

/**
 * A contact sheet of an archive: one page without a script that opens from the disk and may be sent along with the
 * folder. Prompts and names are text from outside: everything is escaped, and the page's own policy forbids whatever
 * would get through.
 */
export interface GalleryFile {
  /** Relative to the page, with `/` between segments. */
  file: string;
  /** The same of its thumbnail; null where it has none. */
  thumbnail: { file: string; width: number; height: number } | null;
  mime: string;
  bytes: number;
  rowId: string;
  rowNumber: number;
  model: string;
  prompt: string | null;
  params: Readonly<Record<string, string>>;
  credits: Credits | null;
  savedAt: number;
}

export interface GalleryFacts {
  job: string;
  run: number;
  madeAt: number;
  files: readonly GalleryFile[];
}

type Piece = ReturnType<typeof html>;

const styleHash = createHash("sha256").update(galleryStyle).digest("base64");

/** Where the page lies on a disk, `'self'` alone would not allow its own pictures. */
const policy = [
  "default-src 'none'",
  "img-src 'self' file:",
  "media-src 'self' file:",
  `style-src 'sha256-${styleHash}'`,
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

export function galleryPage({ job, run, madeAt, files }: GalleryFacts): string {
  const credits = files.reduce((sum, file) => plus(sum, file.credits ?? (0 as Credits)), 0 as Credits);
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const facts = [count(files.length, "file"), fileSize(bytes), inCredits(credits)];
  return String(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${job}, run ${run}</title>
<style>${raw(galleryStyle)}</style>
</head>
<body>
<header>
<h1 dir="auto">${job}</h1>
<p>Run ${run} · ${facts.join(" · ")} · ${minute(madeAt)} UTC</p>
</header>
<main>${files.length === 0 ? html`<p class="empty">Nothing is archived yet.</p>` : files.map(card)}</main>
</body>
</html>
`);
}

function card(file: GalleryFile): Piece {
  const params = Object.entries(file.params);
  return html`
<article>
${preview(file)}
<div class="facts">
<h2><a href="${address(file.file)}" dir="auto">${file.file}</a></h2>
${file.prompt === null ? "" : html`<p class="prompt" dir="auto">${file.prompt}</p>`}
<ul>
<li>${file.model}</li>
${params.map(([key, value]) => html`<li><span>${key}</span> ${value}</li>`)}
</ul>
<p class="row"><span dir="auto">row ${file.rowNumber} · ${file.rowId}</span><span>${file.credits === null ? "" : inCredits(file.credits)}</span></p>
</div>
</article>`;
}

/** Video and sound are played where they lie; a browser takes a clip's poster from the clip itself. */
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
