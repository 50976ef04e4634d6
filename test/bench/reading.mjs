/**
 * What reading commands take in a workspace of many archived items, made as for *Resume*: seconds, in brackets those of the
 * processor, and the most memory that the process had, beside a tenth of the items. The sheet has a row for each. The files themselves are not there, so that
 * `verify` finds every one of them missing, which is the most that it can have to tell. At the end the database is removed,
 * and rebuilt. With `--plans`, saved plans instead: of a sheet of so many rows, up to the question whether to pay, so that
 * a saved plan has been compared. Needs the build in dist/; the folder is on tmpfs where there is one.
 *
 *   node test/bench/reading.mjs [--short] [--items N] [--plans]
 */
import { once } from "node:events";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { makeBigWorkspace } from "./big-workspace.mjs";
import { newFolder, numberOf, short, start, startService, writeSheet } from "./setup.mjs";

const items = numberOf("--items", short ? 500 : 200_000);
const sizes = [items / 10, items];
const others = {
  report: [],
  "find 'number 7'": ["find", "number", "7"],
  export: [],
  "export --sample": ["export", "--sample", "1000"],
  "export to xlsx": ["export", "--format", "xlsx"],
  verify: [],
  "doctor --json": ["doctor", "--json"],
};
/** The first, and what has to be the last; the short form asks nothing else. */
const commands = {
  status: [],
  ...(short ? {} : others),
  "doctor --rebuild": ["doctor", "--rebuild", "--yes"],
};
const ofPlans = {
  "plan SHEET": ["plan", "sheet.csv"],
  "plan SHEET -o PLAN": ["plan", "sheet.csv", "-o", "plan.json"],
  "run SHEET": ["run", "sheet.csv"],
  "run PLAN": ["run", "plan.json"],
};
const isOfPlans = process.argv.includes("--plans");
/** What a command tells of itself when it ends. */
const teller = `data:text/javascript,${encodeURIComponent(`
  import { writeSync } from "node:fs";
  process.on("exit", () => writeSync(3, JSON.stringify(process.resourceUsage())));
`)}`;

const place = newFolder("reading", { onTmpfs: true });
const url = await startService();
for (const size of sizes) {
  const folder = join(place, `${size}`);
  if (isOfPlans) makeSheet(folder, size);
  else await makeBigWorkspace({ folder, url, archived: size });
}
const what = isOfPlans ? "plans of %s rows" : "reading commands with %s archived items";
console.log(`${what.replace("%s", sizes.join(" and "))}, Node ${process.version}`);
for (const [name, words] of Object.entries(isOfPlans ? ofPlans : commands)) {
  const taken = [];
  for (const size of sizes)
    taken.push(await asked(join(place, `${size}`), words.length > 0 ? words : [name]));
  const [few, many] = taken;
  console.log(
    `${name.padEnd(18)} ${secondsOf(few)} and ${secondsOf(many)}, ` +
      `${few.megabytes.toFixed(0)} MB and ${many.megabytes.toFixed(0)} MB`,
  );
}

/** As long as a row of the archive, with four columns. */
function makeSheet(folder, rows) {
  const row = (n) =>
    `n-${n},plain-image,A studio photograph of product number ${n} on a plain background,p-${n}`;
  writeSheet(join(folder, "sheet.csv"), "id,model,prompt,output", rows, row, 1);
}

async function asked(folder, words) {
  if (words.includes("--rebuild"))
    for (const end of ["", "-wal", "-shm"]) rmSync(join(folder, `.bulkgen/state.db${end}`), { force: true });
  const began = performance.now();
  const child = start(folder, url, words, { node: ["--import", teller], stderr: "ignore", more: ["pipe"] });
  let told = "";
  child.stdio[3].on("data", (text) => {
    told += text;
  });
  const [code] = await once(child, "close");
  // 4 and 5: a check that found something. 2: nobody is there to consent to the run.
  if (![0, 4, 5, ...(words[0] === "run" ? [2] : [])].includes(code))
    throw new Error(`bulkgen ${words.join(" ")} ended with ${code}`);
  const { maxRSS, userCPUTime, systemCPUTime } = JSON.parse(told);
  return {
    seconds: (performance.now() - began) / 1_000,
    processor: (userCPUTime + systemCPUTime) / 1e6,
    megabytes: maxRSS / 1_024,
  };
}

function secondsOf({ seconds, processor }) {
  return `${seconds.toFixed(1)} s (${processor.toFixed(1)} s)`;
}
