import { count } from "../../text/amounts.js";
import type { GalleryCard } from "../../upkeep/archive/gallery.js";
import { brief } from "../parts/visible.js";
import { CommandLine } from "./copy.js";
import { Overlay } from "./overlay.js";
import type { GalleryView } from "./view.js";

const namesMax = 12;

/** What was chosen, as a file for the commands that carry it out. */
export function Review({ view }: { view: GalleryView }) {
  const { choices } = view;
  const all = choices.chosen();
  const forget = () => {
    if (confirm(`Forget ${count(all.length, "choice")}? review.csv, if you saved it, stays.`))
      view.forgetChoices();
  };
  return (
    <Overlay view={view} title="Your choices" class="review" onClose={() => view.show(null)}>
      {all.length === 0 ? (
        <p class="quiet">
          Nothing chosen yet. Go through the files with the arrow keys: P picks, X rejects, R asks for a new
          take, U takes it back.
        </p>
      ) : (
        <>
          <dl class="groups">
            <Group name="Picked" cards={choices.chosen("pick")} />
            <Group name="Rejected" cards={choices.chosen("reject")} />
            <Group name="To redo" cards={choices.chosen("redo")} />
          </dl>
          <p class="quiet">
            Your choices stay in this browser until you carry them out: save review.csv, move it to the folder
            where you use bulkgen, and type the commands that you want.
          </p>
          <div class="commands">
            {commandsOf(view).map(([why, command]) => (
              <div key={command}>
                <p>{why}</p>
                <CommandLine view={view} command={command} />
              </div>
            ))}
          </div>
          <div class="buttons">
            <button type="button" class="main" data-first onClick={() => save(view)}>
              Save review.csv
            </button>
            <button type="button" class="link" onClick={forget}>
              Forget all choices
            </button>
          </div>
        </>
      )}
    </Overlay>
  );
}

/** The commands that have something to do, each with what it does. */
function commandsOf({ choices, page }: GalleryView): [string, string][] {
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
      `bulkgen export ${page.run} --zip picked.zip --files-only --from review.csv`,
    ],
  ];
  return commands.flatMap(([isUseful, why, command]) => (isUseful ? [[why, `${command}${page.flags}`]] : []));
}

function save(view: GalleryView): void {
  const link = document.createElement("a");
  // The address is kept as long as the page: the download may still need it.
  link.href = URL.createObjectURL(new Blob([view.choices.csv()], { type: "text/csv" }));
  link.download = "review.csv";
  link.click();
  view.say("review.csv is saved among your downloads");
}

/** `2 picked · 1 to redo` */
export function choicesInWords({ choices }: GalleryView): string {
  const said = [
    ["picked", choices.chosen("pick").length],
    ["rejected", choices.chosen("reject").length],
    ["to redo", choices.chosen("redo").length],
  ].flatMap(([word, number]) => (number === 0 ? [] : [`${number} ${word}`]));
  return said.join(" · ");
}

function Group({ name, cards }: { name: string; cards: readonly GalleryCard[] }) {
  if (cards.length === 0) return null;
  const rest = cards.length - namesMax;
  return (
    <>
      <dt>{`${name} (${cards.length})`}</dt>
      <dd>
        {cards.slice(0, namesMax).map((card) => (
          <bdi key={card.name}>{brief(card.rowId, 40)}</bdi>
        ))}
        {rest > 0 && <span class="quiet">and {rest} more</span>}
      </dd>
    </>
  );
}
