/**
 * The documentation as plain pages: `npm run site` writes dist/site/. Every page of docs/ becomes one, and so does each
 * file of the repository that a page links to, so that no link leads out of the site. The pages load nothing from
 * elsewhere and have no script.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { Marked } from "marked";

/** The order of the pages in the navigation. Pages that are not named here follow the last group. */
const groups = [
  ["Start", ["README", "tutorial", "pipelines", "recipes"]],
  [
    "Use",
    [
      "models",
      "local-models",
      "serve",
      "manifests",
      "money-and-quota",
      "operations",
      "fleet",
      "sandbox",
      "library",
      "api",
      "agents",
      "json",
      "reference",
    ],
  ],
  ["Trust", ["promises", "security"]],
  ["Change", ["architecture", "decisions/README", "releasing"]],
];

/** Where a file of the repository is in the site: docs/ at the top, other files below files/. */
function placeOf(path) {
  if (isPicture(path)) return path.startsWith("docs/") ? path.slice("docs/".length) : `files/${path}`;
  const page = path.startsWith("docs/") ? path.slice("docs/".length) : `files/${path}`;
  const html = page.endsWith(".md") ? page.replace(/\.md$/, ".html") : `${page}.html`;
  return path === "docs/README.md" || path === "docs/decisions/README.md"
    ? html.replace(/README\.html$/, "index.html")
    : html;
}

function isPicture(path) {
  return /\.(webp|png|svg)$/.test(path);
}

/** The anchor of a heading, as GitHub makes it. */
export function anchorOf(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{Letter}\p{Number}_ -]/gu, "")
    .replaceAll(" ", "-");
}

/** Every file of the site, by its path. Throws when a page links to a file that does not exist. */
export function siteOf(root) {
  const pages = markdownIn(root, "docs");
  const left = [...pages];
  const files = new Map([["site.css", css]]);
  const titles = new Map(pages.map((page) => [page, titleOf(readFileSync(join(root, page), "utf8"), page)]));
  for (let path = left.pop(); path !== undefined; path = left.pop()) {
    const place = placeOf(path);
    if (files.has(place)) continue;
    const content = readFileSync(join(root, path));
    if (isPicture(path)) {
      files.set(place, content);
      continue;
    }
    const text = content.toString("utf8");
    const link = (target) => {
      if (/^[a-z]+:/.test(target) || target.startsWith("#")) return target;
      const [file, anchor] = target.split("#");
      const wanted = posix.join(posix.dirname(path), file);
      if (
        wanted.startsWith("..") ||
        !existsSync(join(root, wanted)) ||
        !statSync(join(root, wanted)).isFile()
      )
        throw new Error(`${path} links to ${target}, which is not a file`);
      left.push(wanted);
      return (
        posix.relative(posix.dirname(place), placeOf(wanted)) + (anchor === undefined ? "" : `#${anchor}`)
      );
    };
    const isPage = path.endsWith(".md");
    const body = isPage
      ? rendered(text, link)
      : `<h1>${escaped(path)}</h1>\n<pre tabindex="0"><code>${escaped(text)}</code></pre>`;
    const title = titles.get(path) ?? (isPage ? titleOf(text, path) : path);
    files.set(place, pageOf({ title, body, place, titles }));
  }
  return files;
}

function markdownIn(root, folder) {
  return readdirSync(join(root, folder), { recursive: true })
    .map((name) => posix.join(folder, name.replaceAll("\\", "/")))
    .filter((path) => path.endsWith(".md"))
    .toSorted();
}

function titleOf(text, path) {
  return (/^# (.*)$/m.exec(text)?.[1] ?? path).replaceAll("`", "");
}

function rendered(text, link) {
  const seen = new Map();
  const marked = new Marked();
  marked.use({
    renderer: {
      heading({ tokens, depth, text: source }) {
        const plain = anchorOf(source.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1"));
        const before = seen.get(plain) ?? 0;
        seen.set(plain, before + 1);
        const id = before === 0 ? plain : `${plain}-${before}`;
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      code({ text: code }) {
        return `<pre tabindex="0"><code>${escaped(code)}</code></pre>\n`;
      },
    },
    walkTokens(token) {
      if (token.type === "link" || token.type === "image") token.href = link(token.href);
    },
  });
  // A wide table scrolls by itself, and by the keyboard too.
  return marked
    .parse(text)
    .replaceAll("<table>", '<div class="table" tabindex="0"><table>')
    .replaceAll("</table>", "</table></div>");
}

function pageOf({ title, body, place, titles }) {
  const to = (path) => posix.relative(posix.dirname(place), path);
  const named = new Set(groups.flatMap(([, names]) => names.map((name) => `docs/${name}.md`)));
  const others = [...titles.keys()].filter((path) => !named.has(path) && !path.startsWith("docs/decisions/"));
  const all = [...groups, ["More", others.map((path) => path.slice("docs/".length, -".md".length))]];
  const entry = (name) => {
    const path = `docs/${name}.md`;
    const current = placeOf(path) === place ? ' aria-current="page"' : "";
    return `<li><a href="${to(placeOf(path))}"${current}>${escaped(titles.get(path))}</a></li>`;
  };
  const navigation = all
    .map(([group, names]) => [group, names.filter((name) => titles.has(`docs/${name}.md`))])
    .filter(([, names]) => names.length > 0)
    .map(([group, names]) => `<h2>${group}</h2>\n<ul>\n${names.map(entry).join("\n")}\n</ul>`)
    .join("\n");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'self'; img-src 'self'">
<title>${escaped(title)}${title === "bulkgen" ? "" : " · bulkgen"}</title>
<link rel="stylesheet" href="${to("site.css")}">
</head>
<body>
<header><a href="${to("index.html")}">bulkgen</a> <a class="narrow" href="#pages">All pages</a></header>
<main>
${body}</main>
<nav id="pages" aria-label="Pages">
${navigation}
</nav>
</body>
</html>
`;
}

function escaped(text) {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

const css = `:root { --ink: #1d2125; --paper: #ffffff; --soft: #f3f4f6; --line: #d5d9de; --link: #0b57a4; --quiet: #555d66 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --paper: #15181c; --soft: #20252b; --line: #3a414a; --link: #8cbcf5; --quiet: #a3adb8 }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.6 system-ui, sans-serif; overflow-wrap: break-word }
header { padding: .75rem 1rem; border-bottom: 1px solid var(--line); font-weight: 600; display: flex; justify-content: space-between }
main { padding: 0 1rem 3rem; max-width: 56rem; min-width: 0 }
nav { padding: 1rem; background: var(--soft) }
nav h2 { font-size: .8rem; margin: 1rem 0 .25rem; color: var(--quiet) }
nav ul { list-style: none; margin: 0; padding: 0 }
nav a { display: block; padding: .2rem 0; text-decoration: none }
nav a[aria-current] { font-weight: 600; color: var(--ink) }
a { color: var(--link) }
h1, h2, h3 { line-height: 1.25; margin: 2rem 0 .75rem }
h1 { font-size: 1.8rem }
h2 { font-size: 1.35rem }
h3 { font-size: 1.1rem }
img { max-width: 100%; height: auto; background: #ffffff }
code { font: .875em/1.5 ui-monospace, Consolas, monospace; background: var(--soft); padding: .1em .25em; border-radius: 3px }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 6px; padding: .75rem 1rem; overflow-x: auto }
pre code { padding: 0; background: none; font-size: .8125rem }
.table { overflow-x: auto }
table { border-collapse: collapse; font-size: .9375rem }
th, td { border: 1px solid var(--line); padding: .35rem .6rem; text-align: left; vertical-align: top; overflow-wrap: normal }
th { background: var(--soft) }
@media (min-width: 60rem) {
  body { display: grid; grid-template-columns: 15rem minmax(0, 1fr); grid-template-rows: auto 1fr }
  header { grid-column: 1 / 3 }
  .narrow { display: none }
  main { grid-column: 2; grid-row: 2; padding: 0 2rem 4rem }
  nav { grid-column: 1; grid-row: 2 }
}
`;

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = dirname(dirname(fileURLToPath(import.meta.url)));
  const target = join(root, "dist", "site");
  const files = siteOf(root);
  rmSync(target, { recursive: true, force: true });
  for (const [path, content] of files) {
    mkdirSync(dirname(join(target, path)), { recursive: true });
    writeFileSync(join(target, path), content);
  }
  console.log(`dist/site: ${files.size} files; open dist/site/index.html`);
}
