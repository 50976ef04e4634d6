import { planLimits } from "../api/plans.js";
import { exitCodes } from "../core/exit.js";

/** What `bulkgen help TOPIC` explains: a screen each. Where a fact is in the code, it is taken from there. */
export interface HelpTopic {
  name: string;
  describe: string;
  /** At most 76 columns wide. */
  text(): string;
}

export const topics: readonly HelpTopic[] = [
  {
    name: "manifests",
    describe: "what a sheet or job file can hold",
    text: () => `A manifest lists what to make, one row for each item.

A sheet (.csv, .xlsx) has these columns; any other column is a variable for
templates, and is kept in the export:
  id model prompt image_url video_url audio_url output repeat priority
  params.KEY   a parameter of the model, such as params.aspect_ratio

A sheet without models or prompts gets them from flags:
  bulkgen plan products.csv --model aurora-image \\
    --prompt "{{product}} on {{background}}"

A job file (.json, .yaml) adds defaults, combinations and steps:
  name: autumn
  defaults: { model: aurora-image, params: { aspect_ratio: "1:1" } }
  rows: products.csv
  matrix: { background: [white, marble] }
  steps:
    - name: picture
      prompt: "{{product}} on {{background}}"
    - name: clip
      model: reel-image
      prompt: "the camera circles {{product}}"
      image_url: "@picture"

An input is an address, a local file, or @ROW or @STEP: another item's output.
All problems are listed at once, before anything is spent; --skip-invalid
makes only the valid rows. \`bulkgen schema manifest\` prints the JSON Schema.
More: docs/manifests.md`,
  },
  {
    name: "quota",
    describe: "how bulkgen keeps to the plan's request limits",
    text: () => `Submitting, polling and every other request share the account's limits:
${Object.entries(planLimits)
  .map(([plan, { perMinute, perDay }]) => `  ${plan.padEnd(12)}${limits(perMinute, perDay)}`)
  .join("\n")}

All runs on this machine share one ledger for each account, so that several
runs and schedules never exceed the limits together. bulkgen learns how long
each model takes and polls when a result is likely to be ready. It reserves
enough of the day's requests to collect what was submitted.

  --rpm N, --rpd N     send at most N requests a minute, a day
  --share PERCENT      use this share of the limits, leave the rest to others
  --on-daily-limit     stop (exit 8, the default) or wait
  --poll               eager, balanced or frugal

After a refusal (429) bulkgen sends nothing for as long as the service says.
If the refusal came although the limits were kept, bulkgen spaces its
requests further apart from then on.
More: docs/money-and-quota.md`,
  },
  {
    name: "money",
    describe: "how bulkgen spends credits, and how it avoids paying twice",
    text: () => `bulkgen pays for each item when it submits it. \`bulkgen plan\` says what a run
costs and spends nothing; \`run\` asks before it spends, unless you give --yes.

  --max-price N               agree in advance to a price of up to N credits
  --max-credits N             spend at most N credits in this run
  --max-credits-per-model M=N and at most N on one model
  --max-credits-per-day N     and at most N from midnight to midnight
  --keep-credits N            leave at least N credits on the account

bulkgen records a paid request before it sends it, and sends it once. If no
answer comes, it does not send the request again: it reads the key's counters
to find out whether the request was charged. If they cannot tell, the item is
held, and you decide with \`bulkgen resolve\`: adopt its task, submit it again,
or skip it.

You never pay twice for the same item: the same row in the same job is the
same item, whatever happens to the run. --edition NAME or --fresh makes
everything again; \`redo\` makes a new variant of an item.
More: docs/money-and-quota.md`,
  },
  {
    name: "exit-codes",
    describe: "what the exit codes mean",
    text: () => `${exitCodes.map(({ code, meaning }) => `  ${String(code).padStart(3)}  ${meaning.replace("; ", `;\n${" ".repeat(7)}`)}`).join("\n")}

If several codes apply, 1 and 130 come first. 2 and 9 are decided before
anything is sent. Otherwise the first of 3 4 7 10 6 8 5 is the exit code.`,
  },
];

function limits(perMinute: number | null, perDay: number | null): string {
  const most = (count: number | null, of: string) =>
    count === null ? null : `${count.toLocaleString("en")} requests a ${of}`;
  const known = [most(perMinute, "minute"), most(perDay, "day")].filter((text) => text !== null);
  return known.length === 0 ? "no limits" : known.join(", ");
}
