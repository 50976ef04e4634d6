import { categoryOf, mediaFields } from "../api/inputs.js";
import { outputOf } from "../core/identity.js";
import type { ResolvedLink } from "../core/ports/draft.js";
import type { Parent } from "../core/ports/store.js";
import type { Place, Problem } from "../core/problem.js";
import { hasReference, isReference, referenceIn } from "../core/reference.js";
import { labelled } from "../manifest/shape/columns.js";
import { cellPlace, type Row } from "../manifest/shape/manifest.js";
import type { Draft } from "../store/draft/draft.js";
import { count } from "../text/amounts.js";
import { nearest } from "../text/nearest.js";
import { shortText } from "../text/terminal.js";
import type { Items } from "./items.js";

/**
 * Chains: items that use the outputs of other items. While the sheet is read, each reference becomes a link in the
 * draft: steps of the same row are found at once, ids only when all rows are known. Then the items are finished from
 * the first of each chain to the last, because an item's key depends on its parents' keys.
 */
export class References {
  private number = 0;
  /** The items of the current source row, by label. */
  private readonly labels = new Map<string, { position: number; repeat: number }>();
  private waiting: { row: Row; position: number; items: number }[] = [];

  constructor(private readonly draft: Draft) {}

  /** Call it when a row is in the draft, with this many items from that position on. */
  add(row: Row, position: number, items: number): void {
    const refers = items > 0 && hasReference(row.inputs);
    if (row.chain === null) {
      if (refers) this.link(row, position, items);
      return;
    }
    if (row.number !== this.number) this.flush();
    this.number = row.number;
    this.labels.set(row.label, { position, repeat: row.repeat });
    if (refers) this.waiting.push({ row, position, items });
  }

  /** Call it when the current source row is complete. */
  flush(): void {
    for (const { row, position, items } of this.waiting.splice(0)) this.link(row, position, items);
    this.labels.clear();
  }

  private link(row: Row, position: number, items: number): void {
    for (const field of mediaFields) {
      const written = row.inputs[field] ?? "";
      const reference = isReference(written) ? referenceIn(written) : null;
      if (reference === null) continue;
      const place = cellPlace(row, field);
      const found = this.sibling(row, reference.name);
      if (found !== null && "message" in found) {
        this.draft.problem({ place, got: written, ...found });
        this.draft.refuseRow(position, found.message);
        return;
      }
      for (let copy = 1; copy <= items; copy++) {
        const of =
          found === null
            ? { names: namesOf(row, reference.name) }
            : { position: found.position, copy: found.repeat === 1 ? 1 : copy };
        this.draft.link({ child: position + copy - 1, field, written, output: reference.output, place, of });
      }
    }
  }

  /** The step with that name in the row's own chain; null if there is none. */
  private sibling(
    row: Row,
    name: string,
  ): { position: number; repeat: number } | Pick<Problem, "message" | "expected"> | null {
    if (row.chain === null) return null;
    const label = [row.chain, name].filter(Boolean).join("-");
    const found = this.labels.get(label);
    if (found !== undefined) {
      if (found.repeat === 1 || found.repeat === row.repeat) return found;
      return {
        message: `step ${name} makes ${found.repeat} copies, and this one ${row.repeat}`,
        expected: `the same repeat for both, or the id of one copy`,
      };
    }
    const varied = [...this.labels.keys()].filter((other) => other.startsWith(`${label}-`));
    if (varied.length === 0) return null;
    const named = varied.map((other) => `@${other.slice(label.length - name.length)}`);
    return { message: `step ${name} makes several items of the row`, expected: oneOf(named) };
  }
}

/** The ids that a reference may mean: as written, and the step of another row in the same combination. */
function namesOf({ chain }: Row, name: string): string[] {
  const dot = name.lastIndexOf(".");
  if (dot < 1) return [name];
  return [name, labelled(name.slice(0, dot), [chain, name.slice(dot + 1)].filter(Boolean).join("-"))];
}

const listedMax = 8;

function oneOf(names: readonly string[]): string {
  const more = names.length - listedMax;
  return `one of: ${names.slice(0, listedMax).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** The nearest name is searched for this many unknown names only: each search reads all ids. */
const nearestMax = 20;

/**
 * Finishes the items with links, in the order of their chains, and finds their problems. `isKnown` says whether the job
 * has items already. Returns notes.
 */
export function finishChains(draft: Draft, items: Items, isKnown: boolean): string[] {
  if (draft.resolveLinks() === 0) return [];
  return new Chains(draft, items, isKnown).finish();
}

class Chains {
  private readonly order: Order;
  private unknown = 0;
  /** Items that use a later output than the first, by the model of their parents. */
  private readonly later = new Map<string, number>();

  constructor(
    private readonly draft: Draft,
    private readonly items: Items,
    private readonly isKnown: boolean,
  ) {
    this.order = new Order(draft);
  }

  finish(): string[] {
    const { items, order } = this;
    let depth = 1;
    for (let wave = order.first; wave.length > 0; wave = order.after(wave), depth++) {
      for (const position of wave) this.item(position, depth);
      // Only items of one wave can be identical, because those have the same parents.
      if (this.isKnown) items.keepOccurrencesOfChildren();
    }
    for (const circle of order.circles()) this.circle(circle);
    for (const position of order.unfinished()) {
      this.refuse(position, ({ written }) => ({
        message: `${written} is part of a circle, or takes an output of one`,
        expected: "an item that can be made",
        got: written,
      }));
    }
    return [...this.later].map(
      ([model, number]) =>
        `${count(number, "item takes", "items take")} a later output of ${model} than the first: whether it exists shows only when it is made`,
    );
  }

  private item(position: number, depth: number): void {
    const slot = this.draft.slotAt(position);
    if (slot === null) return;
    const contents = { ...slot.item.contents };
    const parents: Parent[] = [];
    const links = this.draft.linksOf(position);
    for (const link of links) {
      const problem = this.problemOf(link);
      if (problem !== null) {
        this.put(position, { place: placeOf(link), ...problem });
        return;
      }
      const parent = { field: link.field, key: link.key as string, output: link.output };
      contents[link.field] = outputOf(parent);
      parents.push(parent);
      if (link.output > 1) this.later.set(link.model ?? "", (this.later.get(link.model ?? "") ?? 0) + 1);
    }
    const wrong = this.items.finish(slot, {
      contents,
      parents,
      depth,
      placeOf: () => placeOf(links[0] as ResolvedLink),
    });
    if (wrong !== null) this.put(position, wrong);
  }

  private problemOf(link: ResolvedLink): Omit<Problem, "place"> | null {
    const { written, parent, key, field, model, category } = link;
    const got = written;
    if (parent === null) return this.unknownName(written);
    if (key === null)
      return {
        message: `the item of ${written} cannot be made, because its own row has a problem`,
        expected: "an item that can be made",
        got,
      };
    const wanted = categoryOf[field];
    if (!Object.values(categoryOf).includes(category ?? "") || category === wanted) return null;
    return {
      message: `${field} needs ${wanted}, and ${written} is ${category} (model ${model})`,
      expected: `an item whose model makes ${wanted}`,
      got,
    };
  }

  private unknownName(written: string): Omit<Problem, "place"> {
    const name = referenceIn(written)?.name ?? "";
    const near = ++this.unknown > nearestMax ? undefined : nearest(name, this.draft.rowIds());
    return {
      message: `no item and no step of the row is called "${name}"`,
      expected: "the id of another item, or the name of a step",
      got: written,
      ...(near === undefined ? {} : { nearest: `@${near}` }),
    };
  }

  private circle(positions: readonly number[]): void {
    const names = positions.slice(0, listedMax).map((position) => this.nameOf(position));
    const more = positions.length - names.length;
    const [first] = names;
    const path = [...names, ...(more > 0 ? [`${more} more`] : []), first].join(" → ");
    const problem = {
      message: `the inputs go round in a circle: ${shortText(path, 300)}`,
      expected: "a chain with a first item, which takes no output of the others",
    };
    for (const position of positions) this.refuse(position, ({ written: got }) => ({ ...problem, got }));
  }

  private nameOf(position: number): string {
    const slot = this.draft.slotAt(position);
    return slot === null || slot.id === null ? `row ${slot?.number ?? "?"}` : slot.item.rowId;
  }

  /** Refuses an item that was not reached, for the input that leads into the circle. */
  private refuse(position: number, problemOf: (link: ResolvedLink) => Omit<Problem, "place">): void {
    if (this.draft.slotAt(position) === null) return;
    const links = this.draft.linksOf(position);
    const link = links.find(({ parent }) => parent !== null && this.order.isUnfinished(parent)) ?? links[0];
    if (link !== undefined) this.put(position, { place: placeOf(link), ...problemOf(link) });
  }

  private put(position: number, problem: Problem): void {
    this.draft.problem(problem);
    this.draft.refuseRow(position, problem.message);
  }
}

function placeOf({ place }: ResolvedLink): Place {
  return JSON.parse(place);
}

/** The order in which items can be finished. One byte for each item, because there may be a million. */
class Order {
  /** The items with links whose parents have none. */
  readonly first: number[] = [];
  /** How many parents of an item are not finished yet. */
  private readonly open: Uint8Array;
  private unreached = 0;

  constructor(private readonly draft: Draft) {
    this.open = new Uint8Array(draft.next());
    for (const { child, open } of draft.linked()) {
      this.open[child] = open;
      if (open === 0) this.first.push(child);
      else this.unreached++;
    }
  }

  /** The items that can be finished now that these are. */
  after(wave: readonly number[]): number[] {
    const next: number[] = [];
    if (this.unreached === 0) return next;
    for (const position of wave) {
      for (const child of this.draft.childrenOf(position)) {
        const open = (this.open[child] as number) - 1;
        this.open[child] = open;
        if (open === 0) next.push(child);
      }
    }
    this.unreached -= next.length;
    return next;
  }

  isUnfinished(position: number): boolean {
    return (this.open[position] ?? 0) > 0;
  }

  /** The items that no wave reached. */
  *unfinished(): Generator<number> {
    if (this.unreached === 0) return;
    for (const [position, open] of this.open.entries()) if (open > 0) yield position;
  }

  /** From every item that was not reached, the way from parent to parent ends in a circle. */
  *circles(): Generator<number[]> {
    const walks = new Map<number, number>();
    for (const start of this.unfinished()) {
      let at = start;
      for (; !walks.has(at); at = this.unfinishedParent(at)) walks.set(at, start);
      if (walks.get(at) !== start) continue;
      const circle = [at];
      for (let next = this.unfinishedParent(at); next !== at; next = this.unfinishedParent(next))
        circle.push(next);
      yield circle;
    }
  }

  private unfinishedParent(position: number): number {
    const links = this.draft.linksOf(position);
    const found = links.find(({ parent }) => parent !== null && this.isUnfinished(parent))?.parent;
    if (typeof found !== "number") throw new Error(`item ${position} waits for no other`);
    return found;
  }
}
