import type { TaskOutcome } from "../client/answer.js";
import { backoffMs } from "../core/again.js";
import { fetchBy, isFresh } from "../core/pace/poll.js";
import type { Ticket } from "../core/ports/send.js";
import type { Item } from "../core/ports/store.js";
import { isReference } from "../core/reference.js";
import { NotArchivedError, PublishError } from "../publish/publisher.js";
import type { Gate } from "./gate/gate.js";
import type { GatePorts } from "./gate/ports.js";
import type { Publishing } from "./publishing.js";

/**
 * After this many polls in a row without a usable URL, this execution polls the parent no more. A single poll is enough if
 * the service states that it has no such task.
 */
const renewalsMax = 4;
/** The limit for polls that say nothing about the task: the service may be in trouble for a moment. */
const unclearMax = 8;

const tooShort = "its addresses expire before they can be used";

/**
 * Hands outputs on. An item whose inputs are outputs of other items, its parents, is blocked until all of them are
 * ready. It is sent with the signed URLs of that moment. If a URL is too old, one more poll of the parent's task renews
 * it while the child waits; if the service has no URL any more, the parent's archived file is published. A resume needs
 * nothing of this state: it checks the parents again.
 */
export class Chains {
  /** Parents to poll for new URLs, with the number of polls without a usable URL. */
  private readonly waiting = new Map<number, { nextAt: number; tries: number }>();
  /** How often a parent was polled since one of its URLs was sent. */
  private readonly tries = new Map<number, number>();
  /** How often the archived files of a parent were published since one of their addresses was sent. */
  private readonly publishes = new Map<number, number>();
  /** Parents that this execution polls no more, with the reason that their children get. */
  private readonly givenUp = new Map<number, string>();
  /** Parents whose publishing was postponed once, because their files were not archived yet. */
  private readonly putOff = new Set<number>();

  constructor(
    private readonly ports: Pick<GatePorts, "store" | "service" | "clock">,
    private readonly runId: number,
    private readonly gate: Pick<Gate, "polled" | "reach">,
    private readonly publishing: Pick<Publishing, "addressesOf" | "missing" | "interrupted">,
  ) {}

  /**
   * Releases the items whose parents are ready, and requests new URLs for parents whose URLs are too old. Returns the
   * number of these items and parents.
   */
  async begin(): Promise<number> {
    const { store } = this.ports;
    const before = this.waiting.size;
    const stale: number[] = [];
    const parents = await store.handingOn(this.runId);
    // Runs without chains write nothing here.
    if (parents.length === 0) return 0;
    for (const parent of parents) {
      if (this.isFresh(parent)) continue;
      stale.push(parent.id);
      this.want(parent.id);
    }
    return this.waiting.size - before + (await store.release(this.runId, stale));
  }

  /** Parents whose task is to be polled for new URLs. */
  get renewals(): { id: number; nextAt: number }[] {
    return [...this.waiting].map(([id, { nextAt }]) => ({ id, nextAt }));
  }

  renews(itemId: number): boolean {
    return this.waiting.has(itemId);
  }

  /**
   * Whether inputs that were sent earlier can be sent as they were: each is as the row gives it, or the address of another item's
   * output that has not expired.
   */
  async canSendAgain({ id, inputs }: Item, sent: Readonly<Record<string, unknown>>): Promise<boolean> {
    const parents = await this.ports.store.parentsOf(id);
    return Object.entries(inputs).every(([field, value]) => {
      if (!isReference(value)) return sent[field] === value;
      const parent = parents.find((each) => each.field === field);
      const { url = null, addressedAt } = parent ?? {};
      return url !== null && url === sent[field] && this.isFresh({ url, addressedAt: addressedAt ?? null });
    });
  }

  /** The inputs to send. Null if a parent has no URL that can be sent: then the item is blocked again. */
  async inputsOf({ id, inputs }: Item): Promise<Item["inputs"] | null> {
    const references = Object.entries(inputs).filter(([, value]) => isReference(value));
    if (references.length === 0) return inputs;
    const { store } = this.ports;
    const parents = (await store.parentsOf(id)).filter(({ field }) => field !== "canary");
    const sent: Record<string, string> = { ...inputs };
    let complete = references.length === parents.length;
    for (const { id: parentId, field, state, approval, url, addressedAt } of parents) {
      const isMade = state === "ready" || state === "archived";
      if (parentId === null || !url || !isMade || (approval ?? "approved") !== "approved") complete = false;
      else if (this.isFresh({ url, addressedAt })) sent[field] = url;
      else {
        complete = false;
        this.want(parentId);
      }
    }
    if (!complete) {
      await store.wait(id);
      await this.noteGivenUp(parents);
      return null;
    }
    for (const { id: parentId } of parents) {
      this.tries.delete(parentId ?? 0);
      this.publishes.delete(parentId ?? 0);
    }
    return sent;
  }

  /** Polls a parent's task for new URLs. Nothing about the parent changes but its URLs. */
  async renew(itemId: number, ticket: Ticket): Promise<void> {
    const { store, service, clock } = this.ports;
    const attempt = await store.attempt(itemId);
    if (!attempt?.taskId) throw new Error(`item ${itemId} hands on outputs without a task id`);
    const sentAt = clock.now();
    const outcome = await service.task(attempt.taskId, ticket);
    this.gate.polled(outcome);
    const against = await this.reasonAgainst(itemId, outcome);
    const isPause = outcome.kind === "refused" && outcome.stop === "pause";
    if (against === null) this.waiting.delete(itemId);
    // Neither says anything about the parent. Both end by themselves, or end the run.
    else if (isPause || this.gate.reach.wasOut(sentAt)) this.waitFor(itemId, 0);
    else await this.tryAgain(itemId, against, outcome);
  }

  /** Stores the URLs from a poll; returns why they cannot be used, or null. */
  private async reasonAgainst(itemId: number, outcome: TaskOutcome): Promise<string | null> {
    const { store, clock } = this.ports;
    switch (outcome.kind) {
      case "completed": {
        const { urls } = outcome;
        if (!urls.every((url) => this.isFresh({ url, addressedAt: clock.now() })))
          return "the service gives only addresses that have expired";
        const tries = (this.tries.get(itemId) ?? 0) + 1;
        this.tries.set(itemId, tries);
        if (tries > renewalsMax) return tooShort;
        await store.renewed(itemId, { urls, fetchBy: fetchBy(urls, clock.now()) });
        return null;
      }
      case "failed":
        return `its task now says that it failed: ${outcome.message}`;
      case "processing":
        return "its task is unfinished again";
      case "refused":
        return outcome.message ?? "the service refused the poll";
      case "unclear":
        return outcome.reason;
    }
  }

  private async tryAgain(itemId: number, reason: string, outcome: TaskOutcome): Promise<void> {
    const { store } = this.ports;
    const isUnclear = outcome.kind === "unclear";
    const isFinal = reason === tooShort || (isUnclear && outcome.statedMissing);
    const tries = this.waitFor(itemId, 1);
    if (tries < (isUnclear ? unclearMax : renewalsMax) && !isFinal) return;
    const trouble = await this.publish(itemId, reason);
    this.waiting.delete(itemId);
    if (trouble === null) return;
    const { rowId } = await store.item(itemId);
    const note = `the output of ${rowId} cannot be handed on (${trouble}`;
    this.givenUp.set(itemId, note);
    await store.noteChildren(itemId, note);
  }

  /** Polls the parent again after a while, and returns how many polls in vain were counted, with `more`. */
  private waitFor(itemId: number, more: 0 | 1): number {
    const tries = (this.waiting.get(itemId)?.tries ?? 0) + more;
    this.waiting.set(itemId, { nextAt: this.ports.clock.now() + backoffMs(tries), tries });
    return tries;
  }

  /**
   * Hands on archived files instead of the service's URLs, which are not available for that reason. Returns null if
   * that is done or may be done later, otherwise the end of the note that says what to do.
   */
  private async publish(itemId: number, reason: string): Promise<string | null> {
    const { store, clock } = this.ports;
    const isInBucket = (await store.outputs(itemId)).every(({ bucket }) => bucket != null);
    if (this.publishing.missing && !isInBucket) return `${reason}): ${publishAdvice}, or ${ownAdvice}`;
    try {
      const urls = await this.publishing.addressesOf(itemId);
      if (urls === null) return `${reason}): ${ownAdvice}`;
      const times = (this.publishes.get(itemId) ?? 0) + 1;
      this.publishes.set(itemId, times);
      if (times > renewalsMax) throw new PublishError(tooShort);
      // If publishing took longer than an address lives, the loop asks for this parent again.
      if (urls.every((url) => this.isFresh({ url, addressedAt: clock.now() })))
        await store.renewed(itemId, { urls, fetchBy: fetchBy(urls, clock.now()) });
      return null;
    } catch (error) {
      if (!(error instanceof PublishError)) throw error;
      if (this.publishing.interrupted) return null;
      // It is being downloaded. The loop asks for this parent again when nothing else is left to do.
      if (error instanceof NotArchivedError && !this.putOff.has(itemId)) {
        this.putOff.add(itemId);
        return null;
      }
      return `${reason}, nor can its archived file be published: ${error.message}): ${ownAdvice}`;
    }
  }

  /** A released child gets the note again, because its release removed it. */
  private async noteGivenUp(parents: readonly { id: number | null }[]): Promise<void> {
    for (const { id } of parents) {
      const note = id === null ? undefined : this.givenUp.get(id);
      if (id !== null && note !== undefined) await this.ports.store.noteChildren(id, note);
    }
  }

  private want(itemId: number): void {
    if (!this.waiting.has(itemId) && !this.givenUp.has(itemId))
      this.waiting.set(itemId, { nextAt: 0, tries: 0 });
  }

  private isFresh({ url, addressedAt }: { url: string; addressedAt: number | null }): boolean {
    const { clock, service } = this.ports;
    return addressedAt !== null && isFresh(url, clock.now() - addressedAt, service.time.now.latest);
  }
}

const publishAdvice =
  "run it again with --publish s3://bucket/prefix, which puts its archived file where the service can read it";
const ownAdvice =
  "put its file where the service can read it and write that address in place of the reference, or make the chain anew with --fresh";
