import { html } from "hono/html";

/** A piece of the page. Everything that is put into one is escaped unless it is such a piece itself. */
export type Piece = ReturnType<typeof html>;

/** A whole page around its content. */
export function document(title: string, content: Piece): Piece {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
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
