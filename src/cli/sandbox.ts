import { type Command, InvalidArgumentError } from "commander";
import { type Plan, plans } from "../api/plans.js";
import { interruption } from "./signals.js";
import { amount, oneOf, wholeNumber } from "./values.js";

interface Flags {
  port: number;
  plan: Plan;
  credits: number;
  state?: string;
  taskMs?: { min: number; max: number };
  json?: boolean;
}

export function defineSandbox(program: Command): void {
  program
    .command("sandbox")
    .description("serve the whole service on this machine")
    .option("--port <n>", "port on 127.0.0.1 (default: any free one)", wholeNumber, 0)
    .option("--plan <plan>", `plan of its account: ${plans.join(", ")}`, oneOf(...plans), "Pro")
    .option("--credits <n>", "credits that its account starts with", amount, 500)
    .option("--state <file>", "keep its state in this file (default: in memory)")
    .option("--task-ms <min-max>", "how long tasks take, in ms", range)
    .option("--json", "print {url, key} on one line when it listens")
    .action(serve);
}

async function serve(flags: Flags): Promise<void> {
  const [{ serveSandbox }, { systemClock, systemRandom }] = await Promise.all([
    import("../sandbox/serve.js"),
    import("../system.js"),
  ]);
  const sandbox = await serveSandbox({
    clock: systemClock,
    random: systemRandom,
    file: flags.state ?? ":memory:",
    port: flags.port,
    plan: flags.plan,
    credits: flags.credits,
    inputRoot: process.cwd(),
    ...(flags.taskMs ? { taskMs: flags.taskMs } : {}),
  });
  const { url, key } = sandbox;
  if (flags.json) process.stdout.write(`${JSON.stringify({ url, key })}\n`);
  else {
    process.stdout.write(
      `sandbox listens on ${url} (plan ${flags.plan}, ${flags.credits} credits); Ctrl-C ends it\n`,
    );
    process.stdout.write(`  export BULKGEN_BASE_URL=${url}\n  export BULKGEN_API_KEY=${key}\n`);
  }
  await new Promise<void>((resolve) =>
    interruption().addEventListener("abort", () => resolve(), { once: true }),
  );
  await sandbox.close();
}

function range(text: string): { min: number; max: number } {
  const match = /^(\d+)(?:-(\d+))?$/.exec(text);
  const min = Number(match?.[1]);
  const max = Number(match?.[2] ?? match?.[1]);
  if (!match || min > max)
    throw new InvalidArgumentError(`expected such as 500-1800, got ${JSON.stringify(text)}`);
  return { min, max };
}
