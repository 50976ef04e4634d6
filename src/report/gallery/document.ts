import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { html, raw } from "hono/html";
import { packageFile } from "../../package-file.js";
import type { GalleryPage } from "../../upkeep/archive/gallery.js";

/**
 * The gallery is one page that opens from the disk and can be sent with its folder: style, script and data are inside,
 * and it asks no server for anything. Prompts, names and errors are untrusted: they are data in the page, its script
 * shows them as text alone, and its content policy runs no other script.
 */
export function galleryPage(page: GalleryPage): string {
  const style = built("gallery.css");
  const script = built("gallery.js");
  return String(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policyOf(style, script)}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${page.job}</title>
<style>${raw(style)}</style>
</head>
<body>
<noscript><p class="note">This page needs JavaScript. The files themselves lie beside it, in the same folder.</p></noscript>
<div id="page"></div>
<script type="application/json" id="data">${raw(embedded(page))}</script>
<script>${raw(script)}</script>
</body>
</html>
`);
}

/** A part of the page that the build has made of `src/page/gallery`. */
function built(name: "gallery.css" | "gallery.js"): string {
  return readFileSync(packageFile(`dist/page/gallery/${name}`), "utf8");
}

/** On a disk, `'self'` alone does not allow the page's own pictures. */
function policyOf(style: string, script: string): string {
  return [
    "default-src 'none'",
    "img-src 'self' file:",
    "media-src 'self' file:",
    `script-src 'sha256-${hashOf(script)}'`,
    // No text becomes HTML, whatever the script does.
    "require-trusted-types-for 'script'",
    `style-src 'sha256-${hashOf(style)}'`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}

/** JSON that is safe in a script element, which ends at the first `</script`. */
function embedded(page: GalleryPage): string {
  return JSON.stringify(page).replaceAll("<", "\\u003c");
}
