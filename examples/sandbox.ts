import assert from "node:assert/strict";
import { ChargeUnknown, createClient, createSandbox } from "bulkgen";

/**
 * A test of your own code against the sandbox: the answer to the first paid request is lost, and the code under test must
 * not send it again. Works with any test runner.
 */
export async function testLostAnswer(): Promise<void> {
  const sandbox = await createSandbox({
    credits: 10,
    taskMs: { min: 0, max: 0 },
    faults: { rules: [{ fault: "lost-reply", on: ["generate"], at: [1] }] },
  });
  const client = await createClient({ service: sandbox });
  try {
    const { balance } = (await client.me()).credits;
    await assert.rejects(client.generate({ model: "aurora-image-mini", prompt: "a cup" }), ChargeUnknown);
    const left = (await client.me()).credits.balance;
    assert.equal(Number(balance) - Number(left), 1, "it was charged, once");
  } finally {
    await client.close();
    await sandbox.close();
  }
}
