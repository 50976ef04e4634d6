// Hostile names and addresses, counted: 100,000 names of which none may leave its folder or be forbidden on some system,
// and more than 200 addresses of which none may reach a server on this machine's loopback. Needs the build in dist/.
//
//   node test/bench/hostile.mjs [--short]
import { createServer } from "node:http";
import { isIP } from "node:net";
import { posix, resolve, sep } from "node:path";
import { short } from "./setup.mjs";

const { safeName } = await import("../../dist/archive/disk/names.js");
const { undiciDownloads } = await import("../../dist/archive/download/download.js");

names(short ? 10_000 : 100_000);
await addresses();

// --- names --------------------------------------------------------------------------------------------------------

/** A generator of numbers that gives the same ones each time. */
function lots(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % below;
  };
}

function names(count) {
  const pieces = [
    ...[
      "..",
      ".",
      "/",
      "\\",
      "//",
      "C:",
      "~",
      "-",
      " ",
      "\0",
      "\n",
      "\r",
      "\t",
      "\x1b[2J",
      "%2e%2e%2f",
      "\u202e",
    ],
    ...[
      "con",
      "NUL",
      "aux.png",
      "COM1",
      "lpt9.jpg",
      "a",
      "é",
      "e\u0301",
      "👍",
      "\ud800",
      "\uff0e\uff0e",
      "x".repeat(300),
    ],
    ...[
      "_quarantine",
      "_gallery",
      "index.jsonl",
      ".part",
      ".png",
      ":",
      "*",
      "?",
      '"',
      "<",
      ">",
      "|",
      "$(x)",
      "`x`",
    ],
  ];
  const lot = lots(7);
  const root = resolve("/outputs/job");
  const reserved = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;
  let bad = 0;
  for (let made = 0; made < count; made++) {
    const wanted = Array.from({ length: 1 + lot(8) }, () => pieces[lot(pieces.length)]).join("");
    const name = safeName(wanted);
    const path = resolve(root, `${name}.png`);
    const inside = path.startsWith(root + sep) && posix.normalize(name) === name;
    const good = (segment) =>
      !reserved.test(segment) &&
      !/[<>:"|?*\\\p{Cc}]|[. ]$|^\./u.test(segment) &&
      Buffer.byteLength(segment) <= 140;
    if (!inside || !name.split("/").every(good)) bad++;
  }
  console.log(`names      ${count} hostile names, ${bad} escapes`);
}

// --- addresses ----------------------------------------------------------------------------------------------------

async function addresses() {
  let reached = 0;
  const server = createServer((_, reply) => reply.end("reached"));
  server.on("connection", () => reached++);
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const { port } = server.address();
  // Every name but the service's own leads to this machine, as an attacker's name would.
  const lookup = (host, options, callback) => {
    const address = isIP(host) ? host : host === "api.example.com" ? "93.184.216.34" : "127.0.0.1";
    const found = { address, family: isIP(address) };
    if (options.all) callback(null, [found]);
    else callback(null, found.address, found.family);
  };
  const downloads = undiciDownloads({ baseUrl: "https://api.example.com", lookup });
  const urls = hostile(port);
  let answered = 0;
  for (const url of urls) {
    const signal = AbortSignal.timeout(10_000);
    await downloads.download(url, { headers: {}, signal }).then(
      () => answered++,
      () => undefined,
    );
  }
  await downloads.close();
  server.close();
  console.log(`addresses  ${urls.length} hostile addresses, ${reached + answered} escapes`);
}

function hostile(port) {
  const hosts = [
    ...[
      "127.0.0.1",
      "127.1",
      "127.0.1",
      "2130706433",
      "0x7f000001",
      "0x7f.1",
      "0177.0.0.1",
      "017700000001",
      "127.9.9.9",
    ],
    ...[
      "[::1]",
      "[0:0:0:0:0:0:0:1]",
      "[::ffff:127.0.0.1]",
      "[::ffff:7f00:1]",
      "[64:ff9b::7f00:1]",
      "[2002:7f00:1::]",
    ],
    ...[
      "localhost",
      "LOCALHOST",
      "a.localhost",
      "localhost.",
      "127.0.0.1.nip.io",
      "evil.example",
      "１２７.0.0.1",
    ],
    ...[
      "0.0.0.0",
      "0",
      "[::]",
      "10.0.0.1",
      "172.16.0.1",
      "192.168.1.1",
      "100.64.0.1",
      "[fc00::1]",
      "[fe80::1]",
    ],
    ...["169.254.169.254", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "100.100.100.200", "168.63.129.16"],
  ];
  const forms = (host) => [
    ...[`http://${host}:${port}/`, `https://${host}:${port}/`, `http://user:pass@${host}:${port}/a.png`],
    ...[`https://${host}:${port}@evil.example/`, `ftp://${host}:${port}/`, `http:\\\\${host}:${port}\\a.png`],
  ];
  const odd = [
    "file:///etc/passwd",
    "data:image/png;base64,AAAA",
    "javascript:alert(1)",
    "gopher://127.0.0.1:1/",
    "//a",
    "",
  ];
  return [...hosts.flatMap(forms), ...odd];
}
