import { count } from "../../text/amounts.js";
import type { GalleryCard } from "../../upkeep/archive/gallery.js";
import { commandLine, Dialog, toast } from "./dialog.js";
import { el } from "./dom.js";
import { brief } from "./text.js";
import type { GalleryView } from "./view.js";

const namesMax = 12;

/** What was chosen, as a file for the commands that carry it out. */
export class Review {
  private readonly dialog = new Dialog("sheet review", "Your choices");
  readonly button = el("button", { type: "button", class: "review-button", click: () => this.open() });

  constructor(private readonly view: GalleryView) {
    view.on("choices", () => this.refresh());
    this.refresh();
  }

  open(): void {
    const { choices } = this.view;
    const groups = [
      ["Picked", choices.chosen("pick")],
      ["Rejected", choices.chosen("reject")],
      ["To redo", choices.chosen("redo")],
    ] as const;
    const all = choices.chosen();
    const save = el("button", { type: "button", class: "main", click: () => this.save() }, "Save review.csv");
    const clear = el(
      "button",
      {
        type: "button",
        class: "plain",
        click: () => {
          if (!confirm(`Forget ${count(all.length, "choice")}? review.csv, if you saved it, stays.`)) return;
          choices.clear();
          this.view.tell("choices");
          this.dialog.close();
        },
      },
      "Forget all choices",
    );
    this.dialog.show([
      el("div", { class: "sheet-head" }, el("h2", {}, "Your choices"), this.dialog.closeButton()),
      ...(all.length === 0
        ? [
            el(
              "p",
              { class: "quiet" },
              "Nothing chosen yet. Go through the files with the arrow keys: P picks, X rejects, R asks for a new take, U takes it back.",
            ),
          ]
        : [
            el("dl", { class: "groups" }, ...groups.flatMap(([name, cards]) => group(name, cards))),
            el(
              "p",
              { class: "quiet" },
              "Your choices stay in this browser until you carry them out: save review.csv, move it to the folder where you use bulkgen, and type the commands that you want.",
            ),
            el(
              "div",
              { class: "commands" },
              ...this.commands().map(([why, command]) =>
                el("div", {}, el("p", { class: "why" }, why), commandLine(command)),
              ),
            ),
            el("div", { class: "buttons" }, save, clear),
          ]),
    ]);
    if (all.length > 0) save.focus();
  }

  /** The commands that have something to do, each with what it does. */
  private commands(): [string, string][] {
    const { choices, page } = this.view;
    const waits = ({ state }: GalleryCard) => state !== "archived";
    const picks = choices.chosen("pick");
    const commands: [boolean, string, string][] = [
      [picks.length > 0, "Mark the picked ones", "bulkgen pick --from review.csv"],
      [picks.some(waits), "Approve the picked ones that wait for it", "bulkgen approve --from review.csv"],
      [
        choices.chosen("reject").some(waits),
        "Reject those that wait for approval",
        "bulkgen reject --from review.csv",
      ],
      [
        choices.chosen("redo").length > 0,
        "Make new takes; the price is shown first",
        "bulkgen redo --from review.csv",
      ],
      [
        picks.length > 0,
        "Pack the picked ones",
        "bulkgen export --zip picked.zip --files-only --from review.csv",
      ],
    ];
    return commands.flatMap(([isUseful, why, command]) =>
      isUseful ? [[why, `${command}${page.flags}`]] : [],
    );
  }

  private save(): void {
    const url = URL.createObjectURL(new Blob([this.view.choices.csv()], { type: "text/csv" }));
    // The address is kept as long as the page: the download may still need it.
    el("a", { href: url, download: "review.csv" }).click();
    toast("review.csv is saved among your downloads");
  }

  private refresh(): void {
    const { choices } = this.view;
    const said = [
      ["picked", choices.chosen("pick").length],
      ["rejected", choices.chosen("reject").length],
      ["to redo", choices.chosen("redo").length],
    ].flatMap(([word, number]) => (number === 0 ? [] : [`${number} ${word}`]));
    this.button.textContent = said.length === 0 ? "Your choices" : said.join(" · ");
    this.button.classList.toggle("filled", said.length > 0);
  }
}

function group(name: string, cards: readonly GalleryCard[]): HTMLElement[] {
  if (cards.length === 0) return [];
  const names = cards.slice(0, namesMax).map(({ rowId }) => brief(rowId, 40));
  const rest = cards.length - names.length;
  return [
    el("dt", {}, `${name} (${cards.length})`),
    el(
      "dd",
      {},
      ...names.map((each) => el("bdi", {}, each)),
      rest > 0 ? el("span", { class: "quiet" }, `and ${rest} more`) : null,
    ),
  ];
}
