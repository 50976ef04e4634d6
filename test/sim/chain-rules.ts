import type { BlockedItem, ParentOutput } from "../../src/core/ports/store.js";
import type { Take } from "./chains.js";
import { fileField } from "./publish-rules.js";
import type { Scenario } from "./scenario.js";
import type { SimulatedService } from "./service.js";
import { type Rule, type Sender, type Trip, Violation } from "./watch.js";

/** How far a process may be off (ms) that knows the time by an answer alone: its way, and the second that it names. */
const inexactMs = 3_500;

/**
 * What is handed on, looked at whenever a paid request is put on the wire: an item that takes outputs of others is not
 * paid before those are made, and is sent with addresses of these very outputs that the service still honours.
 */
export class ChainRules implements Rule {
  private readonly takes: ReadonlyMap<string, readonly Take[]>;
  /** Items that take a local file. */
  private readonly files: ReadonlySet<string>;
  /** When the newest request was sent whose answer told a process the time. */
  private readonly told = new Map<Sender, number>();

  constructor(
    { items }: Scenario,
    private readonly service: SimulatedService,
    private readonly now: () => number,
    private readonly clockSetAt: () => number,
  ) {
    this.files = new Set(items.filter(({ file }) => file !== undefined).map(({ id }) => id));
    this.takes = new Map(items.flatMap(({ id, takes }) => (takes === undefined ? [] : [[id, takes]])));
  }

  replied({ sender, sentAt, reply }: Trip): void {
    if (reply?.kind === "answer") this.told.set(sender, sentAt);
  }

  sent({ sender, endpoint, item, inputs }: Trip): void {
    if (endpoint !== "generate" || item === null) return;
    const takes = this.takes.get(item) ?? [];
    const knowsTime = (this.told.get(sender) ?? 0) > this.clockSetAt();
    for (const take of takes) this.check(item, take, inputs[take.field] ?? "", knowsTime);
    const own = Object.keys(inputs).filter((field) => field !== fileField || !this.files.has(item));
    if (own.length > takes.length)
      throw new Violation("chain", `the POST for ${item} has inputs that no row gave it`);
  }

  private check(item: string, { of, output, field }: Take, address: string, knowsTime: boolean): void {
    const found = this.service.output(address, this.now());
    const what = `the ${field} of the POST for ${item}`;
    if (found === null) throw new Violation("chain", `${what} is "${address}", which the service never gave`);
    const { task, number, isExpired, expires } = found;
    const owner = this.service.ledger.madeFor.get(task.id);
    if (owner !== of || number !== output)
      throw new Violation("chain", `${what} is output ${number} of ${owner}, not ${output} of ${of}`);
    if (task.outcome !== "completed" || task.dueAt > this.now())
      throw new Violation("chain", `the POST for ${item} left before ${of} was made`);
    const inexact = this.clockSetAt() > 0 ? inexactMs : 0;
    if (isExpired && knowsTime && this.now() - expires > inexact)
      throw new Violation("P15", `${what} had expired ${this.now() - expires} ms before it left`);
  }
}

/**
 * An address may be renewed as long as its task is there: the least time that it then has to live (ms), and more for the
 * requests that have to be sent while all addresses of an item are good, one for each parent and the item's own.
 */
const livesLong = 65_000;
const requestMs = (rpm: number | null | undefined) => 10_000 + 60_000 / (rpm ?? 60);
/** With fewer requests a day, none may be left for new addresses, day after day: the run tells that as its stop. */
const dayMin = 40;

/** At the end: an item whose parents have all ended well is not left behind, but for a reason that is told. */
export function checkHandedOn(
  blocked: readonly BlockedItem[],
  scenario: Scenario,
  isThere: (address: string) => boolean,
  /** Archived files can be published in place of addresses that cannot be had. */
  publishes: boolean,
): void {
  const { switches, maxCredits, modelCap, dailyCredits, keepCredits, rpm, rpd } = scenario;
  const { urlMs = 0, signing } = switches;
  const isReady = ({ field, state, approval, url }: ParentOutput) => {
    if (approval !== null && approval !== "approved") return false;
    return field === "canary" ? state === "archived" : (state === "ready" || state === "archived") && url;
  };
  const isCapped =
    maxCredits !== null || [modelCap, dailyCredits, keepCredits].some((cap) => cap !== undefined);
  const isTight = typeof rpd === "number" && rpd < dayMin;
  for (const { rowId, note, parents } of blocked) {
    if (parents.length === 0) throw new Violation("chain", `${rowId} is blocked and takes no output`);
    if (!parents.every(isReady)) continue;
    // A cap that is reached is told by the run, and no new address is asked for where nothing may be bought.
    if (note === null && !isCapped && !isTight)
      throw new Violation(
        "chain",
        `${rowId} is left blocked though its parents are made, and nothing says why`,
      );
    const canRenew = signing === "each-look" && urlMs > livesLong + (parents.length + 1) * requestMs(rpm);
    if (note !== null && canRenew && parents.every(({ url }) => isThere(url ?? "")))
      throw new Violation(
        "chain",
        `${rowId} is left blocked though the service gives new addresses: ${note}`,
      );
    if (note !== null && publishes && !isCapped && parents.every(({ state }) => state === "archived"))
      throw new Violation(
        "chain",
        `${rowId} is left blocked though its parents' files can be published: ${note}`,
      );
  }
}
