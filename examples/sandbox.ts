import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, createSandbox, type LocalSandbox, run } from "bulkgen";

/**
 * A test against the sandbox: the answer to the only paid request is lost, and no later run may pay for the row again. Works
 * with any test runner.
 */
export async function testLostAnswer(): Promise<void> {
  const sandbox = await createSandbox({
    credits: 10,
    faults: { rules: [{ fault: "lost-reply", on: ["generate"], at: [1] }] },
  });
  const folder = await mkdtemp(join(tmpdir(), "cups-"));
  try {
    const manifest = join(folder, "cups.csv");
    await writeFile(manifest, "id,model,prompt\ncup,aurora-image-mini,a cup\n");
    assert.equal(await endOf(manifest, sandbox), "held");
    assert.equal(await endOf(manifest, sandbox), "held");
    assert.equal(await balanceOf(sandbox), 9, "it was charged, once");
  } finally {
    await sandbox.close();
    await rm(folder, { recursive: true });
  }
}

async function endOf(manifest: string, service: LocalSandbox): Promise<string | undefined> {
  for await (const event of run(manifest, { service, maxCredits: 5 }))
    if (event.event === "run_finished") return event.exitName;
  return undefined;
}

async function balanceOf(service: LocalSandbox): Promise<number> {
  const client = await createClient({ service });
  const { credits } = await client.me();
  await client.close();
  return Number(credits.balance);
}
