import { beforeEach, describe, expect, test } from "vitest";
import { variantKey } from "../../../src/core/identity.js";
import { IllegalTransition, type ItemState, transitionList } from "../../../src/core/item.js";
import { credits, noCredits } from "../../../src/core/money.js";
import type { Item, SheetRow } from "../../../src/core/ports/store.js";
import type { Store } from "../../../src/store/workspace/workspace.js";
import { ManualClock } from "../../manual-clock.js";
import { newItem, runStart } from "../item-fixture.js";
import type { OpenDatabase, OpenedDatabase } from "./open.js";

export function workspaceSuite(open: OpenDatabase): void {
  let ask: OpenedDatabase["ask"];
  let clock: ManualClock;
  let store: Store;
  let runId: number;

  beforeEach(async () => {
    clock = new ManualClock();
    ({ store, ask } = await open(clock));
    const job = await store.job("demo");
    runId = (await store.startRun(job.id, runStart)).id;
  });

  async function enrolled(...ids: string[]): Promise<Item[]> {
    await store.enroll(
      runId,
      ids.map((id, index) => newItem(id, { position: index })),
    );
    return store.items(runId);
  }

  const intent = () => ({ runId, sentAt: clock.now(), bodySha256: "00", spendLogId: null });

  async function submitted(id: string, taskId: string): Promise<Item> {
    const item = (await store.items(runId)).find((other) => other.rowId === id) as Item;
    const attempt = await store.intend(item.id, intent());
    await store.conclude(attempt.id, "accepted", {
      taskId,
      charged: credits(4),
      nextAt: clock.now() + 2_000,
    });
    return store.item(item.id);
  }

  const nothingParked = { models: [], prices: [] };
  const facts = { urls: ["https://a/1"], fetchBy: 0, charged: credits(4), createdAt: "c", completedAt: "d" };
  const savedFile = { file: "demo/a.png", bytes: 3, sha256: "ab", mime: "image/png", check: "decoded" };

  test("the files of a run count as arranged until its sheet is read again", async () => {
    expect(await store.run(runId)).toMatchObject({ arranged: false });
    await store.setRun(runId, { arranged: true });
    await store.setRun(runId, { requests: 1 });
    expect(await store.run(runId)).toMatchObject({ arranged: true });
    const { jobId } = (await store.run(runId)) as { jobId: number };
    expect(await store.startRun(jobId, runStart)).toMatchObject({ id: runId, arranged: false });
  });

  test("a run begins with all its items, or not at all", async () => {
    const { id } = await store.job("other");
    function* cut() {
      yield newItem("a");
      throw new Error("the process ends");
    }
    await expect(store.beginRun(id, runStart, cut())).rejects.toThrow("the process ends");
    expect((await store.runs()).filter(({ jobName }) => jobName === "other")).toEqual([]);
    const run = await store.beginRun(id, runStart, [newItem("a"), newItem("b")], ["k1:c"]);
    expect(run).toMatchObject({ jobName: "other", state: "running" });
    expect(await store.counts(run.id)).toMatchObject({ planned: 2 });
  });

  test("P8: a task that is found for an item that was sent twice goes to the request that made it", async () => {
    const [item] = await enrolled("a");
    const id = item?.id ?? 0;
    const lost = async () => {
      const attempt = await store.intend(id, intent());
      await store.conclude(attempt.id, "unanswered", {});
      await store.giveVerdict(id, "charged", "charged, but its task id was lost");
      return attempt;
    };
    const first = await lost();
    await store.apply(id, "resubmit", {});
    clock.advance(60_000);
    const second = await lost();
    await store.adopt(id, { taskId: "t1", charged: credits(4), attempt: first.id });
    expect(await store.attempt(id)).toMatchObject({ id: first.id, number: 2, taskId: "t1" });
    expect((await store.orphans({ item: id })).map((attempt) => [attempt.id, attempt.number])).toEqual([
      [second.id, 1],
    ]);
    expect(await store.spending(runId)).toMatchObject({
      pending: credits(8),
      atService: credits(4),
      inDoubt: 1,
    });
  });

  test("why an output could not be handed on is noted on what takes it, until the run begins anew", async () => {
    const takes = [{ field: "image_url", key: "k1:a", output: 1 }] as const;
    await store.enroll(runId, [
      newItem("a", { position: 1 }),
      newItem("waits for its canary", { position: 2 }),
      newItem("takes it", { position: 3, parents: takes }),
    ]);
    await store.canaries(runId, true);
    const noted = async () => (await store.blocked(runId)).map(({ rowId, note }) => [rowId, note]);
    const [parent] = await store.items(runId);
    await store.noteChildren(parent?.id ?? 0, "its address has expired");
    expect(await noted()).toEqual([
      ["waits for its canary", null],
      ["takes it", "its address has expired"],
    ]);
    await store.publishAgain(runId);
    expect(await noted()).toEqual([
      ["waits for its canary", null],
      ["takes it", null],
    ]);
  });

  describe("an item's life in the database", () => {
    test("the database knows exactly the steps that core knows", async () => {
      const rows = await ask("SELECT from_state, event, to_state FROM transitions");
      const known = transitionList.map((step) => ({
        from_state: step.from,
        event: step.event,
        to_state: step.to,
      }));
      expect(new Set(rows.map((row) => JSON.stringify(row)))).toEqual(
        new Set(known.map((row) => JSON.stringify(row))),
      );
    });

    test("an illegal step is refused by the store and, behind its back, by the database", async () => {
      const [item] = await enrolled("a");
      if (!item) throw new Error("no item");
      await expect(store.apply(item.id, "completed", {})).rejects.toThrow(IllegalTransition);
      for (const state of ["archived", "nonsense"])
        await expect(ask(`UPDATE items SET state = '${state}'`)).rejects.toThrow(
          "illegal transition of an item",
        );
      expect((await store.item(item.id)).state).toBe("planned");
    });

    test("an item that was submitted and dropped never becomes planned again", async () => {
      const [item] = await enrolled("a");
      if (!item) throw new Error("no item");
      const attempt = await store.intend(item.id, intent());
      await store.conclude(attempt.id, "unanswered", {});
      await store.apply(item.id, "undecided", {});
      await store.apply(item.id, "skipped", {});
      await expect(store.apply(item.id, "returned", {})).rejects.toThrow("stays dropped");
    });

    test("a task is of one attempt: a second one that claims it is refused, and nothing is changed", async () => {
      await enrolled("a", "b");
      const first = await submitted("a", "t1");
      await expect(submitted("b", "t1")).rejects.toMatchObject({
        name: "TaskTaken",
        taskId: "t1",
        owner: "a",
      });
      await store.apply(first.id, "task_failed", {});
      await store.apply(first.id, "retry", {});
      await expect(submitted("a", "t1")).rejects.toMatchObject({
        name: "TaskTaken",
        taskId: "t1",
        owner: "a",
      });
      expect((await store.items(runId)).map(({ state }) => state)).toEqual(["submitting", "submitting"]);
    });

    test("from intent to archive every step is kept with its time", async () => {
      await enrolled("a");
      const item = await submitted("a", "t1");
      expect(item.state).toBe("processing");
      clock.advance(5_000);
      await store.complete(item.id, facts);
      await store.saved(item.id, 1, savedFile);
      expect((await store.item(item.id)).state).toBe("archived");
      const events = await ask("SELECT from_state, event, at FROM events ORDER BY id");
      expect(events).toEqual([
        { from_state: "planned", event: "intended", at: clock.now() - 5_000 },
        { from_state: "submitting", event: "accepted", at: clock.now() - 5_000 },
        { from_state: "processing", event: "completed", at: clock.now() },
        { from_state: "ready", event: "saved", at: clock.now() },
      ]);
    });
  });

  describe("outputs", () => {
    test("an item is archived only when its last output is saved", async () => {
      await enrolled("a");
      const item = await submitted("a", "t1");
      await store.complete(item.id, { ...facts, urls: ["https://a/1", "https://a/2"] });
      await store.saved(item.id, 2, savedFile);
      expect((await store.item(item.id)).state).toBe("ready");
      await store.saved(item.id, 1, savedFile);
      expect((await store.item(item.id)).state).toBe("archived");
    });

    test("P4: a task that was paid again has its outputs fetched, all of them and no others", async () => {
      await enrolled("a");
      const { id } = await submitted("a", "t1");
      await store.complete(id, { ...facts, urls: ["https://a/1", "https://a/2", "https://a/3"] });
      await store.saved(id, 1, savedFile);
      await store.apply(id, "unfetchable", { note: "gone" });
      await store.apply(id, "resubmit", { nextAt: 0 });
      await submitted("a", "t2");
      await store.complete(id, { ...facts, urls: ["https://b/1", "https://b/2"] });
      expect(await store.outputs(id)).toEqual([
        { number: 1, url: "https://b/1", file: null, sha256: null, bucket: null },
        { number: 2, url: "https://b/2", file: null, sha256: null, bucket: null },
      ]);
    });

    test("P16: the file of an item that is held can be lost; the item stays held", async () => {
      await enrolled("a");
      const { id } = await submitted("a", "t1");
      await store.complete(id, { ...facts, urls: ["https://a/1", "https://a/2"] });
      await store.saved(id, 1, savedFile);
      await store.apply(id, "unfetchable", { note: "gone" });
      await store.lost(id, 1);
      expect(await store.item(id)).toMatchObject({ state: "held" });
      expect(await store.outputs(id)).toMatchObject([{ file: null }, { file: null }]);
    });

    test("an item whose files were pruned stays archived, without files and with the reason", async () => {
      await enrolled("a", "b");
      const pruned = await submitted("a", "t1");
      const kept = await submitted("b", "t2");
      for (const { id } of [pruned, kept]) {
        await store.complete(id, { ...facts, urls: [`https://a/${id}`] });
        await store.saved(id, 1, savedFile);
      }
      await store.pruned([pruned.id], { check: "pruned 2026-11-28", note: "its files were pruned" });
      expect(await store.item(pruned.id)).toMatchObject({ state: "archived", note: "its files were pruned" });
      expect(await store.outputs(pruned.id)).toMatchObject([{ file: null }]);
      const left = [];
      for await (const page of store.archived()) left.push(...page.map(({ item }) => item.id));
      expect(left).toEqual([kept.id]);
    });

    test("P16: a file's bucket is kept with it, and not once its output is saved on the disk", async () => {
      await enrolled("a");
      const { id } = await submitted("a", "t1");
      await store.complete(id, { ...facts, urls: ["https://a/1"] });
      const places = async () => [
        (await store.outputs(id)).map(({ bucket }) => bucket),
        await archivedBuckets(store),
      ];
      await store.saved(id, 1, { ...savedFile, bucket: "s3://inputs/team" });
      expect(await places()).toEqual([["s3://inputs/team"], ["s3://inputs/team"]]);
      await store.lost(id, 1);
      await store.saved(id, 1, savedFile);
      expect(await places()).toEqual([[null], [null]]);
    });

    test("P15: what is to be fetched comes in the order in which its addresses end", async () => {
      const ids: number[] = [];
      for (const name of ["a", "b", "c"]) {
        await enrolled("a", "b", "c");
        const item = await submitted(name, `task of ${name}`);
        await store.complete(item.id, { ...facts, fetchBy: { a: 300, b: 100, c: 200 }[name] ?? 0 });
        ids.push(item.id);
      }
      const [, b, c] = ids;
      const { ready } = await store.due(runId, 2, nothingParked, null);
      expect(ready).toEqual([
        { id: b, nextAt: 0, fetchBy: 100 },
        { id: c, nextAt: 0, fetchBy: 200 },
      ]);
    });

    test("P15: an expired address makes a poll due, and saved outputs keep their row", async () => {
      await enrolled("a");
      const item = await submitted("a", "t1");
      await store.complete(item.id, { ...facts, urls: ["https://a/1", "https://a/2"] });
      await store.saved(item.id, 1, savedFile);
      await store.expire(item.id, "its address answered 403");
      const due = await store.due(runId, 10, nothingParked, null);
      expect(due).toMatchObject({ tasks: [{ id: item.id }], ready: [], expired: 1 });
      await store.refreshOutputs(item.id, { urls: ["https://b/1", "https://b/2"], fetchBy: 0 });
      expect(await store.outputs(item.id)).toEqual([
        { number: 1, url: "https://b/1", file: "demo/a.png", sha256: savedFile.sha256, bucket: null },
        { number: 2, url: "https://b/2", file: null, sha256: null, bucket: null },
      ]);
      expect(await store.due(runId, 10, nothingParked, null)).toMatchObject({
        tasks: [],
        ready: [{ id: item.id }],
        expired: 0,
      });
    });

    test("P15: a new task's addresses are fresh, also where those of the task before had expired", async () => {
      await enrolled("a");
      const { id } = await submitted("a", "t1");
      await store.complete(id, facts);
      await store.expire(id, "its address answered 403");
      await store.apply(id, "unfetchable", {});
      await store.apply(id, "resubmit", { nextAt: 0 });
      await submitted("a", "t2");
      await store.complete(id, facts);
      expect(await store.due(runId, 10, nothingParked, null)).toMatchObject({
        tasks: [],
        ready: [{ id }],
        expired: 0,
      });
    });
  });

  describe("a manifest that changed between runs", () => {
    test("new rows are added, vanished unsubmitted rows are dropped, submitted ones are completed", async () => {
      await enrolled("a", "b");
      const a = await submitted("a", "t1");
      await store.enroll(runId, [newItem("c")]);
      const states = Object.fromEntries(
        (await store.itemsOf("demo")).map((item) => [item.rowId, item.state]),
      );
      expect(states).toEqual({ a: "processing", b: "dropped", c: "planned" });
      expect((await store.items(runId)).map((item) => item.rowId).sort()).toEqual(["a", "c"]);
      expect((await store.item(a.id)).runId).toBe(runId);
    });

    test("a dropped row that comes back is planned again", async () => {
      await enrolled("a", "b");
      await store.enroll(runId, [newItem("a")]);
      await store.enroll(runId, [newItem("a"), newItem("b")]);
      expect((await store.items(runId)).map((item) => item.state)).toEqual(["planned", "planned"]);
    });
  });

  describe("a part of many items", () => {
    test("those of a run in some states, in the manifest's order", async () => {
      await enrolled("a", "b", "c");
      await submitted("c", "t1");
      const rows = async (...states: ItemState[]) =>
        (await store.items(runId, states)).map(({ rowId }) => rowId);
      expect(await rows("planned")).toEqual(["a", "b"]);
      expect(await rows("processing", "planned")).toEqual(["a", "b", "c"]);
      expect(await rows("failed")).toEqual([]);
      expect((await store.items(runId)).map(({ rowId }) => rowId)).toEqual(["a", "b", "c"]);
    });

    test("those of a job with files, of whatever run, and those that no row asks for any more", async () => {
      await enrolled("a", "b", "c");
      const a = await submitted("a", "t1");
      await store.complete(a.id, { ...facts, urls: ["https://a/1", "https://a/2"] });
      const settled = async () => (await store.toArrange("demo")).map(({ rowId }) => rowId);
      expect(await settled()).toEqual([]);
      await store.saved(a.id, 1, savedFile);
      expect(await settled()).toEqual(["a"]);
      await store.enroll(runId, [newItem("a"), newItem("b")]);
      expect(await settled()).toEqual(["a", "c"]);
      expect(await store.toArrange("another")).toEqual([]);
    });
  });

  describe("items whose rows are not selected", () => {
    test("are neither dropped nor submitted: they wait in no run until they are", async () => {
      await enrolled("a", "b", "c");
      const c = await submitted("c", "t1");
      await store.enroll(runId, [newItem("a")], ["k1:b", "k1:c"]);
      const states = Object.fromEntries((await store.itemsOf("demo")).map((item) => [item.rowId, item]));
      expect(states["b"]).toMatchObject({ state: "planned", runId: null, vanished: false });
      expect((await store.items(runId)).map((item) => item.rowId).sort()).toEqual(["a", "c"]);
      expect((await store.item(c.id)).vanished).toBe(false);
      await store.enroll(runId, [newItem("a"), newItem("b")]);
      expect((await store.items(runId)).map((item) => [item.rowId, item.state, item.vanished])).toEqual([
        ["a", "planned", false],
        ["b", "planned", false],
        ["c", "processing", true],
      ]);
    });
  });

  describe("items of rows that a manifest of some rows does not have", () => {
    test("are left as they are, and those of its own rows are as in any other", async () => {
      await enrolled("a", "b", "c", "d");
      const c = await submitted("c", "t1");
      const changed = newItem("b", { key: "k1:b2" });
      await store.enroll(runId, [changed], [], ["b"]);
      const items = (await store.itemsOf("demo")).map((item) => [item.key, item.state, item.vanished]);
      expect(items.toSorted()).toEqual([
        ["k1:a", "planned", false],
        ["k1:b", "dropped", true],
        ["k1:b2", "planned", false],
        ["k1:c", "processing", false],
        ["k1:d", "planned", false],
      ]);
      expect((await store.items(runId)).map(({ key }) => key).sort()).toEqual(["k1:b2", "k1:c"]);
      expect((await store.item(c.id)).vanished).toBe(false);
    });
  });

  describe("items that wait for outputs of others", () => {
    test("are made once the run goes on, except behind an item that failed, or that a person decides about", async () => {
      const child = (id: string, parent: string) =>
        newItem(id, { parents: [{ field: "image_url", key: `k1:${parent}`, output: 1 }], price: credits(3) });
      await store.enroll(runId, [
        newItem("a"),
        child("a-clip", "a"),
        child("a-more", "a-clip"),
        newItem("b"),
        child("b-clip", "b"),
        child("b-more", "b-clip"),
        newItem("c", { approve: true }),
        child("c-clip", "c"),
      ]);
      const b = (await submitted("b", "t1")).id;
      await store.apply(b, "task_failed", { note: "no capacity", failureKind: "provider" });
      expect(await store.blockedRest(runId, [])).toEqual({ items: 2, credits: credits(6) });
      expect(await store.blockedRest(runId, [b])).toEqual({ items: 4, credits: credits(12) });
      await store.enroll(runId, [child("a-clip", "a"), child("a-more", "a-clip")], ["k1:a"]);
      expect(await store.blockedRest(runId, [])).toEqual({ items: 0, credits: 0 });
    });

    test("wait for the newest approved item of the row instead of a rejected one, also when they are added later", async () => {
      const takes = [{ field: "image_url", key: "k1:a", output: 1 }] as const;
      const variant = (number: number) =>
        newItem(`a-v${number}`, { key: variantKey("k1:a", number), variant: number, approve: true });
      await store.enroll(runId, [newItem("a", { approve: true }), newItem("first", { parents: takes })]);
      await store.add(runId, [variant(2), variant(3)]);
      const made: number[] = [];
      for (const rowId of ["a", "a-v2", "a-v3"]) {
        const { id } = await submitted(rowId, rowId);
        await store.complete(id, facts);
        await store.saved(id, 1, savedFile);
        made.push(id);
      }
      const [a = 0, second = 0, third = 0] = made;
      expect(await store.approve([a], "rejected")).toEqual([]);
      expect(await store.approve([second], "approved")).toEqual([runId]);
      await store.setRun(runId, { state: "finished", exit: "held", endedAt: clock.now() });
      const later = (await store.startRun((await store.job("demo")).id, runStart)).id;
      expect(later).not.toBe(runId);
      await store.add(later, [newItem("second", { parents: takes })]);
      const parentOf = async (rowId: string) => {
        const [item] = await store.find(rowId);
        return (await store.parentsOf(item?.id ?? 0)).map((parent) => parent.rowId);
      };
      expect(await parentOf("second")).toEqual(["a-v2"]);
      await store.approve([second], "rejected");
      expect(await store.approve([third], "approved")).toEqual([later]);
      expect(await parentOf("second")).toEqual(["a-v3"]);
      await store.approve([third], "rejected");
      await store.add(later, [newItem("third", { parents: takes })]);
      expect(await parentOf("third")).toEqual(["a"]);
    });
  });

  test("variants are called as their rows are, and a rejection without an approval stays", async () => {
    await store.enroll(runId, [newItem("a"), newItem("b")]);
    const variant = (id: string) =>
      newItem(`${id}-v2`, { key: variantKey(`k1:${id}`, 2), variant: 2, name: `${id}-v2` });
    await store.add(runId, [variant("a"), variant("b")]);
    const { id } = await submitted("a", "t1");
    await store.complete(id, facts);
    await store.saved(id, 1, savedFile);
    await store.approve([id], "rejected");
    const named = (key: string, rowId: string) => newItem(rowId, { key: `k1:${key}`, position: 4 });
    await store.enroll(runId, [named("a", "b"), named("b", "a"), newItem("c")]);
    const names = async (rowId: string) => (await store.find(rowId)).map(({ key, name }) => [key, name]);
    expect(await names("b-v2")).toEqual([[variantKey("k1:a", 2), "b-v2"]]);
    expect(await names("a-v2")).toEqual([[variantKey("k1:b", 2), "a-v2"]]);
    expect((await store.item(id)).approval).toBe("rejected");
  });

  test("what was made of a rejected item is known, also through others", async () => {
    const child = (rowId: string, parent: string) =>
      newItem(rowId, { parents: [{ field: "image_url", key: `k1:${parent}`, output: 1 }] });
    await store.enroll(runId, [
      newItem("a", { approve: true }),
      child("clip", "a"),
      child("long", "clip"),
      newItem("b", { approve: true }),
      child("other", "b"),
    ]);
    const { id, jobId } = await submitted("a", "t1");
    await store.complete(id, facts);
    await store.saved(id, 1, savedFile);
    expect(await store.madeOfRejected(jobId)).toEqual(new Set());
    await store.approve([id], "approved");
    const clip = await submitted("clip", "t2");
    await store.complete(clip.id, facts);
    await store.saved(clip.id, 1, savedFile);
    await store.approve([id], "rejected");
    expect(await store.madeOfRejected(jobId)).toEqual(new Set(["k1:clip", "k1:long"]));
    expect(await store.madeOf(jobId, ["k1:a"])).toEqual(["clip"]);
    expect(await store.madeOf(jobId, ["k1:b"])).toEqual([]);
  });

  test("what was made of another take is known, unless a take of it waits; and what all takes were charged", async () => {
    const parents = [{ field: "image_url", key: "k1:a", output: 1 }] as const;
    const place = { position: 2, rowNumber: 3 };
    const variant = (id: string, more = {}) =>
      newItem(`${id}-v2`, { key: variantKey(`k1:${id}`, 2), variant: 2, ...more });
    await store.enroll(runId, [newItem("a", { approve: true }), newItem("clip", { parents, ...place })]);
    await store.add(runId, [variant("a", { approve: true })]);
    const make = async (rowId: string) => {
      const { id, jobId } = await submitted(rowId, `task of ${rowId}`);
      await store.complete(id, facts);
      await store.saved(id, 1, savedFile);
      return { id, jobId };
    };
    const { id: a, jobId } = await make("a");
    await store.approve([a], "approved");
    await make("clip");
    const { id: second } = await make("a-v2");
    const clip = { rowId: "clip", madeOf: "a", approval: "approved", own: null, ...place };
    expect(await store.madeOfOthers(second)).toMatchObject([clip]);
    expect((await store.madeOfOthers(second)).map(({ picks }) => Number(picks))).toEqual([0]);
    expect(await store.madeOfOthers(a)).toEqual([]);
    expect(await store.chargedOf(jobId, "")).toBe(credits(12));
    expect(await store.chargedOf(jobId, "other")).toBe(noCredits);
    await store.approve([a], "rejected");
    await store.add(runId, [variant("clip", { parents, ...place })]);
    expect(await store.madeOfOthers(second)).toEqual([]);
  });

  test("P2: items that another job has paid for since the run started are reported, with their price", async () => {
    await enrolled("a", "b", "c");
    await submitted("a", "t1");
    expect(await store.madeElsewhere(runId)).toBeNull();
    clock.advance(1_000);
    const other = (await store.startRun((await store.job("other")).id, runStart)).id;
    await store.enroll(other, [newItem("a"), newItem("c")]);
    expect(await store.madeElsewhere(runId)).toBeNull();
    const c = (await store.items(other)).find(({ rowId }) => rowId === "c");
    await store.intend(c?.id ?? 0, { ...intent(), runId: other });
    expect(await store.madeElsewhere(runId)).toEqual({
      items: 1,
      credits: c?.price,
      rowId: "c",
      jobName: "other",
    });
    // Whoever started it then had been told.
    expect(await store.madeElsewhere(other)).toBeNull();
  });

  describe("the sheet of a run", () => {
    const sheet = {
      columns: ["id", "__proto__", "prompt"],
      rows: [
        { number: 2, cells: JSON.parse('{"id":"a","__proto__":"x"}'), keys: ["k1:a"], problem: null },
        { number: 5, cells: {}, keys: [], problem: "the row has too few cells" },
      ],
    };

    const kept = async (run: number) => {
      const { columns, pages } = (await store.sheetOf(run)) ?? {
        columns: null,
        pages: async function* () {},
      };
      const rows: SheetRow[][] = [];
      for await (const page of pages()) rows.push([...page]);
      return { columns, pages: rows };
    };

    test("comes back as it was, and the same sheet is kept once", async () => {
      expect(await store.sheetOf(runId)).toBeNull();
      await store.keepSheet(runId, sheet);
      await store.setRun(runId, { state: "finished" });
      const second = (await store.startRun(1, runStart)).id;
      await store.keepSheet(second, sheet);
      expect(await kept(second)).toEqual({ columns: sheet.columns, pages: [sheet.rows] });
      expect(await ask("SELECT count(*) AS count FROM sheets")).toEqual([{ count: 1 }]);
      await store.keepSheet(second, { ...sheet, rows: sheet.rows.slice(0, 1) });
      expect((await kept(second)).pages).toEqual([sheet.rows.slice(0, 1)]);
      expect((await kept(runId)).pages).toEqual([sheet.rows]);
    });

    test("comes page by page, as often as it is asked for", async () => {
      const rows = Array.from({ length: 2_500 }, (_, at) => ({
        number: at + 2,
        cells: { id: `r${at}` },
        keys: [`k1:r${at}`],
        problem: null,
      }));
      await store.keepSheet(runId, { columns: ["id"], rows });
      const { pages } = await kept(runId);
      expect(pages.flat()).toEqual(rows);
      expect(pages.map(({ length }) => length)).toEqual([1_000, 1_000, 500]);
      expect((await kept(runId)).pages).toEqual(pages);
    });
  });

  describe("what was made of some keys", () => {
    test("are the items with their attempts, and the files of those that are archived", async () => {
      await enrolled("a", "b", "c");
      const { jobId } = (await store.run(runId)) as { jobId: number };
      const a = await submitted("a", "t1");
      await store.complete(a.id, { ...facts, urls: ["https://a/1", "https://a/2"] });
      await store.saved(a.id, 1, savedFile);
      const b = (await store.items(runId)).find(({ rowId }) => rowId === "b")?.id ?? 0;
      await store.conclude((await store.intend(b, intent())).id, "unanswered", {});
      await store.giveVerdict(b, "undecided", "lost");
      await store.apply(b, "resubmit", { nextAt: 0 });
      await store.intend(b, intent());
      const made = async (...keys: string[]) =>
        (await store.made(jobId, keys)).toSorted((x, y) => x.item.id - y.item.id);
      const keys = ["k1:c", "k1:b", "k1:a", "k1:unknown"];
      const [first, second, third] = await made(...keys);
      expect(await made(...keys)).toHaveLength(3);
      expect(first).toEqual({
        item: await store.item(a.id),
        files: [],
        attempts: [await store.attempt(a.id)],
      });
      expect(second?.attempts.map(({ number, verdict }) => [number, verdict])).toEqual([
        [1, "undecided"],
        [2, null],
      ]);
      expect(second?.attempts.at(-1)).toEqual(await store.attempt(b));
      expect(third).toMatchObject({ item: { rowId: "c" }, files: [], attempts: [] });
      await store.saved(a.id, 2, { ...savedFile, file: "demo/b.png", bucket: "s3://b" });
      expect((await made("k1:a"))[0]?.files).toMatchObject([
        { file: "demo/a.png", bytes: 3, bucket: null },
        { file: "demo/b.png", bytes: 3, bucket: "s3://b" },
      ]);
      expect(await store.made(jobId + 1, ["k1:a"])).toEqual([]);
      expect(await made()).toEqual([]);
    });

    test("and variants up to the highest number of the job", async () => {
      const { jobId } = (await store.run(runId)) as { jobId: number };
      expect(await store.variantsMax(jobId)).toBe(1);
      await enrolled("a");
      await store.add(runId, [newItem("a-v3", { key: "k1:a-v3", variant: 3 })]);
      expect(await store.variantsMax(jobId)).toBe(3);
    });
  });

  describe("what a run has committed", () => {
    test("P7: a request counts with what it was to cost, whatever its item is offered for since", async () => {
      const [a] = await enrolled("a");
      const attempt = await store.intend(a?.id ?? 0, intent());
      await store.conclude(attempt.id, "unanswered", {});
      await store.giveVerdict(a?.id ?? 0, "undecided", "nobody knows");
      await store.apply(a?.id ?? 0, "resubmit", { nextAt: 0, price: credits(1) });
      expect((await store.spending(runId)).pending).toBe(credits(4));
      expect(await store.resubmitted(runId)).toBe(credits(4));
      expect((await store.orphans({ run: runId })).map(({ price }) => price)).toEqual([credits(4)]);
    });

    test("P7: what is in flight or unknown counts with its price, a failed task frees it", async () => {
      await enrolled("a", "b", "c");
      const [, b, c] = await store.items(runId);
      const a = await submitted("a", "t1");
      const stands = async (charged: number, pending: number) => {
        const spending = { charged: credits(charged), pending: credits(pending) };
        expect(await store.spending(runId)).toMatchObject(spending);
      };
      await stands(0, 4);
      const attempt = await store.intend(b?.id ?? 0, intent());
      await stands(0, 8);
      await store.apply(a.id, "task_failed", { charged: noCredits });
      await stands(0, 4);
      const done = await submitted("c", "t3");
      await store.complete(done.id, { ...facts, charged: credits(5) });
      await stands(5, 4);
      await store.conclude(attempt.id, "unanswered", { message: "no answer" });
      await stands(5, 4);
      await store.giveVerdict(b?.id ?? 0, "charged", "the counter moved");
      await stands(5, 4);
      expect(c?.price).toBe(credits(4));
    });

    test("P7: an item that is about to be submitted counts from then on, and once", async () => {
      const [a, b] = (await enrolled("a", "b")).map(({ id }) => id) as [number, number];
      const stands = async (pending: number, counts: object) => {
        const beginning = [a];
        expect(await store.spending(runId, { beginning })).toMatchObject({ pending: credits(pending) });
        const model = (await store.item(a)).model;
        expect(await store.spending(runId, { model, beginning })).toMatchObject({
          pending: credits(pending),
        });
        expect(await store.spending(runId, { model: "another", beginning })).toMatchObject({
          pending: noCredits,
        });
        const due = await store.due(runId, 10, { models: [], prices: [] }, null, beginning);
        expect(due.counts).toMatchObject(counts);
      };
      await stands(4, { planned: 1, submitting: 1 });
      await store.intend(a, intent());
      await stands(4, { planned: 1, submitting: 1 });
      await store.intend(b, intent());
      await stands(8, { planned: 0, submitting: 2 });
    });

    test.each([
      ["what its request was charged", credits(3), credits(3)],
      ["its price, where that is not known either", undefined, credits(4)],
    ])("P7: a task that does not say what it cost leaves %s", async (_, charged, spent) => {
      const [a] = await enrolled("a");
      const attempt = await store.intend(a?.id ?? 0, intent());
      await store.conclude(attempt.id, "accepted", { taskId: "t1", ...(charged && { charged }) });
      await store.complete(a?.id ?? 0, { ...facts, charged: null });
      expect(await store.spending(runId)).toMatchObject({ charged: spent, pending: noCredits });
      expect(await store.attempt(a?.id ?? 0)).toMatchObject({ charged: spent });
    });

    test("P6: what is paid again counts in the run that an item has moved to", async () => {
      const [a] = await enrolled("a");
      const id = a?.id ?? 0;
      const attempt = await store.intend(id, intent());
      await store.conclude(attempt.id, "unanswered", { message: "no answer" });
      await store.setRun(runId, { state: "cancelled" });
      const job = await store.job("demo");
      const next = await store.startRun(job.id, runStart);
      await store.enroll(next.id, [newItem("a")]);
      expect((await store.item(id)).runId).toBe(next.id);
      await store.giveVerdict(id, "charged", "the counter moved");
      expect(await store.resubmitted(next.id)).toBe(noCredits);
      await store.apply(id, "resubmit", { nextAt: 0 });
      expect(await store.resubmitted(next.id)).toBe(credits(4));
      expect(await store.resubmitted(runId)).toBe(credits(4));
    });
  });

  describe("planned items that are parked for their price", () => {
    test("are left out of what is due, in whatever order, while others of their group are not", async () => {
      await store.enroll(runId, [
        ...["a", "b", "c"].map((name, position) => newItem(name, { position })),
        newItem("d", { position: 3, price: credits(9) }),
      ]);
      const [group] = await store.groups(runId);
      expect(group).toMatchObject({ price: credits(4), planned: 3 });
      const parked = { models: [], prices: [{ group: group?.group ?? "", price: credits(4) }] };
      const heads = await store.waiting(runId, parked);
      expect(heads).toEqual([{ group: group?.group, priority: 0, items: 1, credits: credits(9) }]);
      for (const some of [null, heads]) {
        const { planned, parked: left } = await store.due(runId, 1, parked, some);
        expect({ prices: planned.map(({ price }) => price), left }).toEqual({
          prices: [credits(9)],
          left: 3,
        });
      }
    });

    test("P7: one that comes back, never submitted before, comes at the price that is planned now", async () => {
      await enrolled("a");
      await store.cancelRun(runId, new Set());
      const next = await store.startRun(1, runStart);
      await store.enroll(next.id, [newItem("a", { price: credits(9) })]);
      expect(await store.items(next.id)).toMatchObject([{ state: "planned", price: credits(9) }]);
    });
  });

  describe("runs", () => {
    test("tell the row ids of their items alone, in the manifest's order", async () => {
      await store.enroll(runId, [newItem("late", { position: 2 }), newItem("early", { position: 1 })]);
      expect(await store.rowIds(runId)).toEqual(["early", "late"]);
      expect(await store.rowIds(runId + 1)).toEqual([]);
    });

    test("an unfinished run is continued, a finished one is followed by another", async () => {
      const again = await store.startRun(1, runStart);
      expect(again.id).toBe(runId);
      await store.setRun(runId, { state: "finished", exit: "done", endedAt: clock.now() });
      const next = await store.startRun(1, runStart);
      expect(next.id).toBe(runId + 1);
      expect(await store.run("unfinished")).toMatchObject({ id: next.id, state: "running", jobName: "demo" });
      expect(await store.run(runId)).toMatchObject({ exit: "done", endedAt: clock.now() });
    });
  });

  describe("the head of the list", () => {
    test("higher priority first, then the order of the manifest", async () => {
      await store.enroll(runId, [
        newItem("a", { position: 0 }),
        newItem("b", { position: 1, priority: 5 }),
        newItem("c", { position: 2, priority: 5 }),
      ]);
      const due = await store.due(runId, 2, nothingParked, null);
      const ids = (await store.items(runId)).map((item) => item.id);
      expect(due.planned.map((item) => item.id)).toEqual([ids[1], ids[2]]);
    });
  });

  describe("a row's cells", () => {
    const cells = [
      ["id", "cup"],
      ["2027", "numbers keep their place"],
      ["__proto__", "x"],
    ] as const;

    test("are kept with the item in their order, and follow the manifest when it is read again", async () => {
      await store.enroll(runId, [newItem("cup", { cells })]);
      expect((await store.items(runId))[0]?.cells).toEqual(cells);
      await store.enroll(runId, [newItem("cup", { cells: [["id", "cup"]] })]);
      expect((await store.items(runId))[0]?.cells).toEqual([["id", "cup"]]);
    });
  });
}

async function archivedBuckets(store: Store): Promise<(string | null | undefined)[]> {
  const buckets: (string | null | undefined)[] = [];
  for await (const page of store.archived()) for (const { bucket } of page) buckets.push(bucket);
  return buckets;
}
