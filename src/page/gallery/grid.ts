import type { GalleryCard } from "../../upkeep/archive/gallery.js";
import { type CardActions, cardElement, type ShownCard } from "./card.js";
import { el } from "./dom.js";
import type { GalleryView } from "./view.js";

/** The least width of a card, by the step of the size control. */
const widths = [112, 150, 200, 260, 340, 460];
export const sizeSteps = widths.length;
const gap = 12;
/** On a screen that is touched, the choices are below the caption. */
const captionHeight = matchMedia("(hover: none)").matches ? 88 : 50;
/** Rows that stay in the document above and below the visible ones. */
const rowsAround = 2;

/**
 * The cards as a grid of equal cells. Only the rows around what can be seen are in the document, whatever the size of the
 * job: a cell's place follows from its number.
 */
export class Grid {
  readonly element = el("ul", { class: "grid", "aria-label": "Files" });
  private readonly made = new Map<number, ShownCard>();
  private columns = 1;
  private cellWidth = 0;
  private rowHeight = 1;
  private focus = 0;
  private size: number;
  private isAsked = false;

  constructor(
    private readonly view: GalleryView,
    private readonly actions: Pick<CardActions, "open" | "compare">,
  ) {
    this.size = innerWidth < 600 ? 1 : 3;
    new ResizeObserver(() => this.arrange()).observe(this.element);
    addEventListener("scroll", () => this.ask(), { passive: true });
    addEventListener("resize", () => this.ask());
    view.on("choices", () => this.refresh());
    view.on("marked", () => this.refresh());
  }

  get step(): number {
    return this.size;
  }

  set step(step: number) {
    this.size = Math.min(sizeSteps - 1, Math.max(0, step));
    const top = this.topCard();
    this.arrange();
    this.reveal(top, "start");
  }

  get current(): GalleryCard | null {
    return this.view.shown[this.focus] ?? null;
  }

  /** Call it when other cards are to be shown; the focus stays on `keep`, if it is among them. */
  restart(keep: GalleryCard | null): void {
    for (const card of this.made.values()) {
      card.close();
      card.element.remove();
    }
    this.made.clear();
    this.focus = Math.max(0, keep === null ? 0 : this.view.shown.indexOf(keep));
    this.arrange();
  }

  /** Moves the focus by this many cards, rows or pages. */
  move(by: number, unit: "card" | "row" | "page" = "card"): void {
    const perPage = Math.max(1, Math.floor((innerHeight - this.headHeight()) / this.rowHeight));
    const steps = by * (unit === "card" ? 1 : this.columns * (unit === "page" ? perPage : 1));
    const last = this.view.shown.length - 1;
    const next = this.focus + steps;
    if (unit === "row" && (next < 0 || next > last)) return;
    this.focusOn(Math.min(last, Math.max(0, next)));
  }

  focusOn(position: number): void {
    if (this.view.shown[position] === undefined) return;
    this.focus = position;
    this.reveal(position, "nearest");
    this.render();
    this.made.get(position)?.button.focus({ preventScroll: true });
  }

  focusOnCard(card: GalleryCard): void {
    this.focusOn(this.view.shown.indexOf(card));
  }

  private refresh(): void {
    for (const card of this.made.values()) card.refresh();
  }

  private arrange(): void {
    const width = this.element.clientWidth;
    if (width === 0) return;
    const least = Math.min(widths[this.size] ?? 200, width);
    this.columns = Math.max(1, Math.floor((width + gap) / (least + gap)));
    this.cellWidth = (width - gap * (this.columns - 1)) / this.columns;
    this.rowHeight = Math.round(this.cellWidth * 0.8) + captionHeight + gap;
    const rows = Math.ceil(this.view.shown.length / this.columns);
    this.element.style.height = `${Math.max(0, rows * this.rowHeight - gap)}px`;
    for (const [position, { element }] of this.made) this.place(position, element);
    this.render();
  }

  /** At most once a frame. */
  private ask(): void {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      this.render();
    });
  }

  private render(): void {
    if (this.element.clientWidth === 0) return;
    const top = -this.element.getBoundingClientRect().top;
    const firstRow = Math.max(0, Math.floor(top / this.rowHeight) - rowsAround);
    const lastRow = Math.floor((top + innerHeight) / this.rowHeight) + rowsAround;
    const first = firstRow * this.columns;
    const last = Math.min(this.view.shown.length, (lastRow + 1) * this.columns) - 1;
    const isKept = (position: number) => (position >= first && position <= last) || position === this.focus;
    for (const [position, card] of this.made) {
      if (isKept(position)) continue;
      card.close();
      card.element.remove();
      this.made.delete(position);
    }
    for (let position = first; position <= last; position++) this.make(position);
    this.make(this.focus);
    for (const [position, { button }] of this.made) button.tabIndex = position === this.focus ? 0 : -1;
  }

  private make(position: number): void {
    const card = this.view.shown[position];
    if (card === undefined || this.made.has(position)) return;
    const focused = () => {
      this.focus = position;
      for (const [other, { button }] of this.made) button.tabIndex = other === position ? 0 : -1;
    };
    const shown = cardElement(this.view, card, position, { ...this.actions, focused });
    this.place(position, shown.element);
    this.made.set(position, shown);
    // The document has the cards in their order, for screen readers.
    const after = [...this.made.keys()].filter((other) => other > position);
    const next = after.length === 0 ? undefined : this.made.get(Math.min(...after));
    this.element.insertBefore(shown.element, next?.element ?? null);
  }

  private place(position: number, element: HTMLElement): void {
    const column = position % this.columns;
    const row = Math.floor(position / this.columns);
    element.style.width = `${this.cellWidth}px`;
    element.style.height = `${this.rowHeight - gap}px`;
    element.style.transform = `translate(${column * (this.cellWidth + gap)}px, ${row * this.rowHeight}px)`;
  }

  private topCard(): number {
    const top = Math.max(0, this.headHeight() - this.element.getBoundingClientRect().top);
    return Math.floor(top / this.rowHeight) * this.columns;
  }

  /** The height of what stays above the cards. */
  private headHeight(): number {
    return Math.max(0, document.querySelector(".head")?.getBoundingClientRect().bottom ?? 0);
  }

  private reveal(position: number, how: "start" | "nearest"): void {
    const top =
      this.element.getBoundingClientRect().top + Math.floor(position / this.columns) * this.rowHeight;
    const head = this.headHeight() + gap;
    if (how === "start") {
      if (scrollY > 0) scrollBy(0, top - head);
    } else if (top < head) scrollBy(0, top - head);
    else if (top + this.rowHeight > innerHeight) scrollBy(0, top + this.rowHeight - innerHeight);
  }
}
