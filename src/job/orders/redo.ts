import { isDeepStrictEqual } from "node:util";
import type { ModelList } from "../../api/records.js";
import { defined } from "../../core/defined.js";
import { EarlyExit } from "../../core/exit.js";
import type { FailureKind } from "../../core/failure.js";
import { offeredPrice, variantKey } from "../../core/identity.js";
import { listPrice } from "../../core/list-price.js";
import { type Credits, sumOf } from "../../core/money.js";
import type { RunOptions } from "../../core/next/options.js";
import type { RequestChange } from "../../core/ports/orders.js";
import type { Item, NewItem, Run } from "../../core/ports/store.js";
import { rowIdOf, variantFileName, variantName } from "../../core/variant.js";
import { isOption, parameterOf, unknownParam, wrongValue } from "../../plan/check-row.js";
import { listsNoPrompt } from "../../plan/findings.js";
import type { Selection } from "../../plan/plan.js";
import { isEverything } from "../../plan/select.js";
import type { Changes, Store, TransactionPart } from "../../store/workspace/workspace.js";
import { count } from "../../text/amounts.js";
import { someOf } from "../../text/reasons.js";
import { shellWord } from "../../text/shell.js";
import { shortText, terminalText } from "../../text/terminal.js";
import { isUnfinished, newestRun } from "../../workspace/find-run.js";
import { whoIsHere } from "../../workspace/lock.js";
import { withVariants } from "../../workspace/takes/sheet-takes.js";
import { itemNamed } from "./item-named.js";
import { eachOnce, type FindItems, type Offered, selectItems } from "./request.js";
import type { ItemName } from "./review.js";

/** An order to submit a run's failed items again: the selected ones of these kinds. Failed items cost nothing. */
export function retryFailed(
  which: number | undefined,
  kinds: readonly FailureKind[],
  selection: Selection,
): FindItems {
  return async (store) => {
    const run = await newestRun(which)(store);
    const failed = await store.items(run.id, ["failed"]);
    const ofKind = failed.filter((item) => kinds.includes(item.failureKind ?? "unknown"));
    if (ofKind.length === 0) {
      const other =
        failed.length === 0
          ? "no item has failed"
          : `${count(failed.length, "item")} failed for other reasons`;
      throw new EarlyExit("done", `nothing to retry in run ${run.id}: ${other}`);
    }
    const items = await selectItems(store, run, ofKind, selection, "failed item");
    const agreed = sumOf(items.map(({ price }) => price));
    return { run, offered: items, order: { do: "retry", items: items.map(({ id }) => id), agreed } };
  };
}

export interface Redo {
  names: readonly ItemName[];
  selection: Selection;
  /** Paths of files start from here. */
  cwd: string;
  /** What the new takes ask for instead; null for the same again. */
  change: RequestChange | null;
  /** The most that the person pays: other params may have another price, which is known only at the service. */
  maxPrice: Credits | null;
}

/**
 * A redo makes a new variant of each item beside the old one: its request with the change, today's price, a name ending in
 * `-v2`. The items are named, or selected among those of the newest run, or both.
 */
export function redoItems({ names, selection, cwd, change, maxPrice }: Redo): FindItems {
  return async (store) => {
    if (change?.prompt !== undefined) checkPrompt(change.prompt);
    const { run, items } =
      names.length === 0 ? await selected(store, selection) : await named(store, names, selection, cwd);
    await refuseRejectedInputs(store, run, items);
    await refusePresentInputs(store, run, items, change);
    const known = sumOf(items.map(({ price }) => price));
    const agreed = change?.params && maxPrice !== null && maxPrice > known ? maxPrice : known;
    const offered = await variantsOf(
      store,
      run,
      items.map((item) => withChange(item, change)),
    );
    const order = { do: "redo" as const, items: items.map(({ id }) => id), agreed };
    return {
      run,
      offered,
      order: change === null ? order : { ...order, change },
      note: await redoNote(store, items, change),
    };
  };
}

/** A retake's prompt is sent as it is. Throws EarlyExit for what can only be meant for a sheet. */
function checkPrompt(prompt: string): void {
  const wrong =
    prompt.trim() === ""
      ? "expected a prompt, got nothing"
      : /\{[{%]/.test(prompt)
        ? "a retake is sent its prompt as it is, without templates; write it out, or change the sheet and run it again"
        : prompt.startsWith("@")
          ? 'a retake is sent its prompt as it is, not that of a file; "$(cat FILE)" passes the text of one'
          : null;
  if (wrong !== null) throw new EarlyExit("usage", `--prompt: ${wrong}. Nothing was changed.`);
}

/** A take that was itself made of a rejected one is nothing to make another item of. Throws EarlyExit. */
async function refuseRejectedInputs(store: Store, { jobId }: Run, items: readonly Item[]): Promise<void> {
  if (!items.some(({ parents = [] }) => parents.length > 0)) return;
  const ofRejected = await store.madeOfRejected(jobId);
  // One that is rejected itself makes way for the take that was approved.
  for (const { id, rowId } of items)
    for (const { key, rowId: parent, approval } of ofRejected.size === 0 ? [] : await store.parentsOf(id))
      if (parent !== null && approval !== "rejected" && ofRejected.has(key))
        throw new EarlyExit(
          "usage",
          `${terminalText(rowId)} would be made of ${terminalText(parent)} again, which was made of a rejected take. ` +
            `Make ${terminalText(parent)} again first, reject it and approve its new take. Nothing was changed.`,
        );
}

/**
 * Of an item and what is made of it, directly or through others, the second would be paid for and made of the first as it is. Throws
 * EarlyExit.
 */
async function refusePresentInputs(
  store: Store,
  run: Run,
  items: readonly Item[],
  change: RequestChange | null,
): Promise<void> {
  if (items.length < 2 || !items.some(({ parents = [] }) => parents.length > 0)) return;
  const takesMax = await store.variantsMax(run.jobId);
  const named = new Map<string, Item>();
  for (const item of items) named.set((await originalOf(store, run, item)).key, item);
  const next: { item: Item; path: readonly Item[] }[] = items.map((item) => ({ item, path: [item] }));
  for (let step = next.shift(); step !== undefined; step = next.shift())
    for (const { id, field } of await store.parentsOf(step.item.id)) {
      if (id === null || field === "canary") continue;
      const parent = await store.item(id);
      const { key } = await originalOf(store, run, parent);
      const used = parent.approval === "rejected" ? await approvedTake(store, run, key, takesMax) : parent;
      // It waits for the take that will be approved in place of the rejected one.
      if (used === undefined) continue;
      const path = [used, ...step.path];
      if (named.has(key)) throw presentInput(run, path, change);
      next.push({ item: used, path });
    }
}

/** The newest approved take of the item with this key. */
async function approvedTake(
  store: Store,
  { jobId }: Run,
  key: string,
  takesMax: number,
): Promise<Item | undefined> {
  const made = await store.made(jobId, withVariants(key, takesMax));
  return made
    .map(({ item }) => item)
    .filter(({ approval, state }) => approval === "approved" && state === "archived")
    .toSorted((a, b) => a.variant - b.variant)
    .at(-1);
}

/** `path` begins with an item that is to be made again, and ends with one that is made of it, through those between. */
function presentInput({ options }: Run, path: readonly Item[], change: RequestChange | null): EarlyExit {
  const [first = "", ...rest] = path.map(({ rowId }) => terminalText(rowId));
  const between = rest.slice(0, -1);
  const through = between.length === 0 ? "" : ` (through ${between.join(" and ")})`;
  const flags = options.sandbox ? " --sandbox" : "";
  const words = path.map(({ rowId }) => shellWord(rowId));
  const changed = change === null ? "" : change.prompt === undefined ? " --param …" : " --prompt …";
  // Only what is archived can be rejected.
  const isAtOnce = change === null && path.every(({ state }) => state === "archived");
  const way = isAtOnce
    ? `\`bulkgen reject ${words.join(" ")} --again${flags}\` makes them anew, each once you have approved the one before it`
    : `Make them one after the other: first \`bulkgen redo ${words[0]}${changed}${flags}\`. Then reject ${first}, approve its new take, and \`bulkgen redo ${words[1]}${flags}\``;
  return new EarlyExit(
    "usage",
    `${rest.at(-1)} would be made of the present ${first}${through}, not of its new take. Nothing was changed. ${way}.`,
  );
}

/** What a person should know before paying for retakes; null if nothing. */
async function redoNote(
  store: Store,
  items: readonly Item[],
  change: RequestChange | null,
): Promise<string | null> {
  const unchanged = items.filter((item) => isDeepStrictEqual(withChange(item, change), { ...item }));
  const notes = [
    ...(change?.prompt === undefined ? [] : [`the prompt: ${shortText(change.prompt, promptMax)}`]),
    fixedSeedNote(unchanged),
    await otherInputNote(store, items),
  ];
  const said = notes.filter((note) => note !== null);
  return said.length === 0 ? null : said.join("\n");
}

/** How much of a prompt is shown (characters). */
const promptMax = 300;

/** An item is made of the same takes again, although a person has picked others. */
async function otherInputNote(store: Store, items: readonly Item[]): Promise<string | null> {
  if (!items.some(({ parents = [] }) => parents.length > 0)) return null;
  for (const id of await store.picks()) {
    const { rowId, variant } = await store.item(id);
    if (variant === 1) continue;
    const used = (await store.madeOfOthers(id)).find(
      (other) => other.approval !== "rejected" && items.some((item) => item.rowId === other.rowId),
    );
    if (used)
      return `${terminalText(used.rowId)} is made of ${terminalText(used.madeOf)} again; reject that first to have it made of ${terminalText(rowId)}`;
  }
  return null;
}

/** The item as it is to be made again. */
export function withChange<Made extends Pick<Item, "prompt" | "params">>(
  item: Made,
  change: RequestChange | null,
): Made {
  if (change === null) return item;
  const params = Object.entries({ ...item.params, ...change.params }).filter(([, value]) => value !== "");
  return { ...item, prompt: change.prompt ?? item.prompt, params: Object.fromEntries(params) };
}

/** A service makes the same file of the same request if its seed is fixed. */
function fixedSeedNote(items: readonly Item[]): string | null {
  const seeded = items.filter(({ params }) => (params["seed"] ?? "") !== "");
  const [first] = seeded;
  if (first === undefined) return null;
  const which = someOf(seeded.map(({ rowId }) => rowId));
  const seed = seeded.length === 1 ? ` (${terminalText(first.params["seed"] ?? "")})` : "";
  return `${which}: the seed is fixed${seed}, so the same request probably makes the same file again; --param seed=N makes another`;
}

async function selected(store: Store, selection: Selection): Promise<{ run: Run; items: Item[] }> {
  const run = await newestRun(undefined)(store);
  const what = selection.onlyFailed ? "failed item" : "archived item";
  return {
    run,
    items: await selectItems(store, run, await redoable(store, run, selection), selection, what),
  };
}

async function named(
  store: Store,
  names: readonly ItemName[],
  selection: Selection,
  cwd: string,
): Promise<{ run: Run; items: Item[] }> {
  const items = eachOnce(await Promise.all(names.map((name) => itemNamed(store, name, cwd))));
  const run = await newestRunOf(store, items);
  return { run, items: await selectItems(store, run, items, selection, "named item") };
}

/** The items that a selection chooses from: the archived or failed ones of the job, whichever run has made them. */
async function redoable(store: Store, run: Run, selection: Selection): Promise<Item[]> {
  if (isEverything(selection)) {
    throw new EarlyExit("usage", "name the items to redo, or select some, such as with --filter id=cup*");
  }
  const wanted = selection.onlyFailed ? "failed" : "archived";
  const found: Item[] = [];
  for await (const page of store.history(run.jobName))
    for (const item of page)
      if (item.state === wanted && !item.vanished && item.edition === run.edition) found.push(item);
  return found;
}

export async function newestRunOf(store: Store, items: readonly Item[]): Promise<Run> {
  const [first] = items;
  const other = items.find((item) => item.jobId !== first?.jobId || item.edition !== first?.edition);
  if (other) {
    throw new EarlyExit(
      "usage",
      `${terminalText(other.rowId)} belongs to another job or edition than ${terminalText(first?.rowId ?? "")}; give one command for each`,
    );
  }
  const run = (await store.runs()).findLast(
    (each) => each.jobId === first?.jobId && each.edition === first.edition,
  );
  if (!run) throw new Error("an item without a run of its job and edition");
  return run;
}

/** Today's prices, or what was charged if that is more. Throws EarlyExit for a model no longer offered. */
export function todaysPrices<Priced extends Offered>(
  things: readonly Priced[],
  { models }: ModelList,
  charges: ReadonlyMap<string, Credits>,
): Priced[] {
  const offered = new Map(models.map((model) => [model.model_key, model]));
  return things.map((thing) => {
    const model = offered.get(thing.model);
    if (model) return { ...thing, price: offeredPrice(thing, listPrice(model, thing.params), charges) };
    throw new EarlyExit(
      "usage",
      `${terminalText(thing.rowId)}: the service does not offer ${thing.model} any more`,
    );
  });
}

/** Throws EarlyExit if a model does not take what a retake changes. */
export function checkChange(items: readonly Offered[], change: RequestChange, { models }: ModelList): void {
  for (const { rowId, model: key, params } of items) {
    const model = models.find(({ model_key }) => model_key === key);
    if (!model?.parameters) continue;
    for (const [name, value] of Object.entries(change.params ?? {})) {
      if (value === "") continue;
      const parameter = parameterOf(model, name, params);
      const wrong =
        parameter === undefined
          ? unknownParam(model, name)
          : isOption(parameter, value)
            ? null
            : wrongValue(parameter, value);
      if (wrong === null) continue;
      const hint = wrong.nearest === undefined ? "." : `; did you mean "${wrong.nearest}"?`;
      throw new EarlyExit(
        "usage",
        `${terminalText(rowId)}: ${wrong.message}; expected ${wrong.expected}${hint} Nothing was changed.`,
      );
    }
  }
}

/** Which retakes ask for another prompt of a model that does not list any; null if none does. */
export function promptNote(
  items: readonly Offered[],
  change: RequestChange | undefined,
  { models }: ModelList,
): string | null {
  if (change?.prompt === undefined) return null;
  const unprompted = models.filter(listsNoPrompt).map(({ model_key: key }) => key);
  const asking = items.filter(({ model }) => unprompted.includes(model));
  if (asking.length === 0) return null;
  const named = [...new Set(asking.map(({ model }) => model))];
  const [model, lists] = named.length === 1 ? ["model", "does"] : ["models", "do"];
  return `${someOf(asking.map(({ rowId }) => rowId))}: ${model} ${named.join(", ")} ${lists} not list prompt as an input; it is sent anyway, and may make the same file again`;
}

/** A new variant of each item, numbered after the existing ones. */
export async function variantsOf(store: Store, run: Run, items: readonly Item[]): Promise<NewItem[]> {
  const made: NewItem[] = [];
  const taken = new Set<string>();
  for (const item of items) {
    const original = await originalOf(store, run, item);
    const variant = await nextVariant(store, run, original.key, taken);
    const key = variantKey(original.key, variant);
    taken.add(key);
    made.push({
      ...requestOf(item),
      key,
      variant,
      rowId: variantName(original.rowId, variant),
      name: variantFileName(original.name, variant),
    });
  }
  return made;
}

/** Puts variants into the job's unfinished run, or a new one. */
export function* addVariants(changes: Changes, run: Run, variants: readonly NewItem[]): TransactionPart<Run> {
  const started = yield* changes.startRun(
    run.jobId,
    isUnfinished(run) ? run : { ...run, options: anew(run.options) },
  );
  yield* changes.add(started.id, variants);
  return started;
}

/**
 * The options of a new run that only has the agreed items. It was started by the person who gives the order, and it
 * does not count as rebuilt, even if the run before it was.
 */
function anew({ rebuilt, forecast: _, manifestSha256: _ofSheet, ...options }: RunOptions): RunOptions {
  return { ...options, ...(rebuilt === true ? { maxCredits: null } : {}), beganBy: whoIsHere() };
}

function requestOf(item: Item): Omit<NewItem, "key" | "variant" | "rowId" | "name"> {
  const { edition, occurrence, position, priority, rowNumber, cells } = item;
  const { model, category, prompt, params, inputs, price } = item;
  return {
    edition,
    occurrence,
    position,
    priority,
    rowNumber,
    cells,
    model,
    category,
    prompt,
    params,
    inputs,
    ...defined({ parents: item.parents, files: item.files }),
    ...(item.approve ? { approve: true as const } : {}),
    price,
  };
}

/** The row's own item, of which `item` may be a variant. */
async function originalOf(store: Store, run: Run, item: Item): Promise<Item> {
  if (item.variant === 1) return item;
  const known = (each: Item) =>
    each.edition === run.edition && each.variant === 1 && variantKey(each.key, item.variant) === item.key;
  const named = (await store.find(rowIdOf(item))).filter(({ jobId }) => jobId === run.jobId);
  const found = named.find(known);
  if (found) return found;
  // Its row may have another id by now. The job may have more items than fit into memory.
  for await (const page of store.history(run.jobName)) {
    const original = page.find(known);
    if (original) return original;
  }
  return item;
}

/** The number of the first variant that the job does not have, and whose key is not taken. */
async function nextVariant(
  store: Store,
  { jobId }: Run,
  key: string,
  taken: ReadonlySet<string>,
): Promise<number> {
  const isTaken = async (wanted: string) => taken.has(wanted) || (await store.has(jobId, wanted));
  for (let variant = 2; ; variant++) if (!(await isTaken(variantKey(key, variant)))) return variant;
}
